"""Ways to look at a store: which columns there are, and where they come from.

`statelib.snapshots.kinds` picks by the kind of the store; each family has its own in a module ``snapshot``. A view
scans a task's store and gives *raw* columns, some thousand rows at a time: times as int64 milliseconds, keys as bytes,
and what is costly to decode as bytes too. Rows are chosen by these, and only what is left and wanted is decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from statelib.columns.windowed_type import archived_type
from statelib.described.stored_values import described_serde
from statelib.serdes import serde_for
from statelib.serdes.windowed import ArchivedKeySerde, WindowedKeySerde

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from statelib.described.description import Described, Place
    from statelib.serdes import Serde

ViewName = Literal["latest", "history"]

TIME = pa.timestamp("ms", "UTC")
Raw: TypeAlias = "Mapping[str, Any]"
"""Columns of one length: numpy arrays, or Arrow arrays."""


class Ask(NamedTuple):
    """What is asked for: columns with these bytes; a time to look at (ms); rows whose time is in a range (ms)."""

    where: Mapping[str, bytes]
    as_of_ms: int | None
    since_ms: int | None
    until_ms: int | None


EVERYTHING = Ask({}, None, None, None)
"""What is asked for by whoever wants all rows."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        type: Of its values.
        decode: Makes Arrow's values of raw ones.
        serde: Makes the serde of keys by which rows can be chosen; None: they cannot.
    """

    type: pa.DataType
    decode: Callable[[Any], pa.Array]
    serde: Callable[[], Serde] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """See the module's docstring.

    Attributes:
        columns: In the order in which they are shown.
        scan: Raw columns of a task's store; may give more rows than are asked for, never fewer.
        routed_by: The column whose bytes decide in which partition a row is; None: a row may be in any.
        time: The column that ``since`` and ``until`` are about; None: there is none.
        takes_as_of: Whether it can be looked at as of a time.
    """

    columns: Mapping[str, Column]
    scan: Callable[[Place, Ask], Iterator[Raw]]
    routed_by: str | None
    time: str | None
    takes_as_of: bool = False

    @property
    def keys(self) -> Mapping[str, Callable[[], Serde]]:
        """The columns by which rows can be chosen, with what makes their serdes."""
        return {name: column.serde for name, column in self.columns.items() if column.serde is not None}


def key_column(described: Described, name: str = "key", setting: str = "key_serde") -> Column:
    """A column of keys in the bytes of their serde; windowed keys as archives have them."""
    arrow_type = described.type(name)

    def serde() -> Serde:
        own = serde_for(arrow_type)
        if isinstance(own, WindowedKeySerde):
            return ArchivedKeySerde(own)
        return described_serde(described.settings.get(setting), arrow_type, of=f"the {name}s of store {described.name}")

    return Column(archived_type(arrow_type), lambda data: serde().deserialize(data), serde)


def value_column(described: Described) -> Column:
    """A column of values in the bytes of the serde of their type."""
    arrow_type = described.type("value")
    return Column(arrow_type, serde_for(arrow_type).deserialize)


def time_column() -> Column:
    """A column of times; a raw one is an int64 array, in Arrow's or numpy's memory."""
    return Column(TIME, lambda raw: pa.array(raw).cast(TIME))


def plain_column(arrow_type: pa.DataType) -> Column:
    """A column whose raw values are the values."""
    return Column(arrow_type, lambda raw: raw if isinstance(raw, pa.Array) else pa.array(raw, arrow_type))


def times_or_null(times_ms: NDArray[np.int64], missing: int) -> pa.Array:
    """Raw times, null where they are ``missing``."""
    return pa.array(times_ms, pa.int64(), mask=times_ms == missing)


def filtered(raw: Raw, keep: NDArray[np.bool_]) -> dict[str, Any]:
    """The rows for which ``keep`` is true."""
    chosen = pa.array(keep)
    return {
        name: column.filter(chosen) if isinstance(column, pa.Array) else column[keep] for name, column in raw.items()
    }
