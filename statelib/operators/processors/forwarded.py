"""What a custom processor forwards, one record at a time, as a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.windowed import Windowed
from statelib.columns.windowed_type import WindowedType
from statelib.errors.kinds import ConfigurationError
from statelib.operators.mappers.python_values import column_of, own
from statelib.records.batch import Batch
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.processors.definition import FixedKeyRecord, Headers

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TO_ALL = -1
"""The addressee of what goes to all children."""


@dataclass(slots=True)
class Forwarded:
    """Columns in the making; what they are made of may change afterwards.

    Attributes:
        key_type: Arrow type of the keys; those of a `WindowedType` are `Windowed`.
        value_type: Arrow type of the values.
        addressee: For each record the number of the child that it goes to, or `TO_ALL`.
    """

    key_type: pa.DataType
    value_type: pa.DataType
    addressee: list[int] = field(default_factory=list)
    _keys: list[Any] = field(default_factory=list)
    _values: list[Any] = field(default_factory=list)
    _timestamps: list[int] = field(default_factory=list)
    _headers: list[list[tuple[str, bytes | None]] | None] = field(default_factory=list)
    _sequences: list[int] = field(default_factory=list)

    def add(self, record: FixedKeyRecord, sequence: int, addressee: int) -> None:
        """Takes a record that was caused by the source record with that sequence.

        Raises:
            ConfigurationError: Its key has no window where the others have, or one where they have none.
        """
        windowed = isinstance(self.key_type, WindowedType)
        if isinstance(record.key, Windowed) is not windowed:
            raise ConfigurationError(
                f"a processor forwarded {record.key!r} as a key {'without' if windowed else 'with'} a window",
                next_step="forward Windowed keys where the records have such, unless process() is told a key type",
            )
        self._keys.append(own(record.key))
        self._values.append(own(record.value))
        self._timestamps.append(record.timestamp)
        self._headers.append(list(record.headers) or None)
        self._sequences.append(sequence)
        self.addressee.append(addressee)

    def batch(self, functions: Sequence[object] = ()) -> Batch:
        """All of them; ``functions``: the user's that have forwarded them, for errors.

        Raises:
            ConfigurationError: A key or value is not of the declared type.
        """

        def column(items: Sequence[Any], arrow_type: pa.DataType, what: str) -> pa.Array:
            return column_of(
                items,
                arrow_type,
                who=f"a processor forwarded the {what}",
                next_step=f"declare another {what}_type, or forward what it says",
                functions=functions,
                sequence_of=self._sequences.__getitem__,
            )

        return Batch(
            _key_column(self._keys, self.key_type, column),
            None,
            column(self._values, self.value_type, "value"),
            np.array(self._timestamps, np.int64),
            np.array(self._sequences, np.int64),
            headers=pa.array(self._headers, HEADERS_TYPE),
        )


def headers_of(headers: pa.Array | None, count: int) -> list[Headers]:
    """The headers of each record of a batch."""
    if headers is None:
        return [()] * count
    return [tuple((header["key"], header["value"]) for header in of or ()) for of in headers.to_pylist()]


def sent_to(batch: Batch, addressee: NDArray[np.int64], child: int) -> Batch:
    """Those records that go to one child."""
    return batch.filter((addressee == child) | (addressee == TO_ALL))


def _key_column(
    keys: list[Any], key_type: pa.DataType, column: Callable[[Sequence[Any], pa.DataType, str], pa.Array]
) -> KeyColumn:
    if not isinstance(key_type, WindowedType):
        return KeyColumn(column(keys, key_type, "key"))
    start, end = (np.array([key[i] for key in keys], np.int64) for i in (1, 2))
    return WindowedKeys(
        _key_column([key.key for key in keys], key_type.key_type, column), Windows(start, end), key_type.windows
    )
