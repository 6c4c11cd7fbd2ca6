"""Ways to look at a store: which columns there are, and where they come from.

`statelib.snapshots.kinds` picks by the kind of the store; `tables`, `windows`, `buffers` and `joins` beside it have the
views. A view scans a task's store and gives *raw* columns, some thousand rows at a time: times as int64 milliseconds,
keys as bytes, and what is costly to decode as bytes too. Rows are chosen by these, and only what is left and wanted is
decoded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from statelib.columns.windowed_type import archived_type
from statelib.serdes import serde_for
from statelib.serdes.windowed import ArchivedKeySerde, WindowedKeySerde
from statelib.snapshots.stored_values import described_serde

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from statelib.documents.manifests import NodeDescription, StoreDescription
    from statelib.serdes import Serde
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend

ViewName = Literal["latest", "history"]
VIEWS: tuple[ViewName, ...] = ("latest", "history")

TIME = pa.timestamp("ms", "UTC")
Raw: TypeAlias = "Mapping[str, Any]"
"""Columns of one length: numpy arrays, or Arrow arrays."""


@dataclass(frozen=True, slots=True)
class Described:
    """A store as its description has it.

    Attributes:
        store: The description.
        schema: Its schema, decoded.
        siblings: The stores of the same node, itself included, by name, with their schemas.
        semantics: Of the commit.
        nodes: All nodes of the topology, by name.
        tasks: How many tasks each sub-topology has.
    """

    store: StoreDescription
    schema: pa.Schema
    siblings: Mapping[str, tuple[StoreDescription, pa.Schema]]
    semantics: Semantics
    nodes: Mapping[str, NodeDescription] = field(default_factory=dict)
    tasks: Mapping[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The store's name."""
        return self.store.name

    @property
    def settings(self) -> Mapping[str, Any]:
        """See `StoreDescription`."""
        return self.store.settings

    @property
    def is_global(self) -> bool:
        """Whether each task has the whole of it."""
        return any("reading" in self.nodes[parent].settings for parent in self.nodes[self.store.node].parents)

    @property
    def is_of_processor(self) -> bool:
        """Whether a custom processor puts what it holds: under keys of its choice, in bytes of the job's serdes."""
        return "value_serde" in self.settings

    @property
    def is_repartitioned(self) -> bool:
        """Whether its records come through a repartition topic, where they are placed by their keys.

        Answers of foreign-key joins go back to where the question came from.
        """
        sinks = {of.settings["topic"]: of for of in self.nodes.values() if of.settings.get("node") == "sink"}
        waiting = [self.nodes[self.store.node]] if self.store.node in self.nodes else []
        while waiting:
            node = waiting.pop()
            waiting += [self.nodes[parent] for parent in node.parents]
            sink = sinks.get(node.settings.get("topic"))
            if node.settings.get("node") == "source" and sink is not None and sink.settings["partition_by"] is None:
                return all(self.nodes[parent].settings.get("operator") != "foreign_key_join" for parent in sink.parents)
        return False

    def type(self, name: str) -> pa.DataType:
        """The type of a field of the schema."""
        return self.schema.field(name).type


class Place(NamedTuple):
    """A task's state: its stores, and the clocks of the node that owns the store, and of the task (ms)."""

    backend: Backend
    clocks: Mapping[str, int]
    stream_time_ms: int


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
    """A column: its type, and how raw values become Arrow's."""

    type: pa.DataType
    decode: Callable[[Any], pa.Array]


@dataclass(frozen=True, slots=True)
class View:
    """See the module's docstring.

    Attributes:
        columns: In the order in which they are shown.
        scan: Raw columns of a task's store; may give more rows than are asked for, never fewer.
        keys: The columns by which rows can be chosen, with their serdes (made when they are needed).
        routed_by: The column whose bytes decide in which partition a row is; None: a row may be in any.
        time: The column that ``since`` and ``until`` are about; None: there is none.
        takes_as_of: Whether it can be looked at as of a time.
    """

    columns: Mapping[str, Column]
    scan: Callable[[Place, Ask], Iterator[Raw]]
    keys: Mapping[str, Callable[[], Serde]]
    routed_by: str | None
    time: str | None
    takes_as_of: bool = False


def key_column(
    described: Described, name: str = "key", setting: str = "key_serde"
) -> tuple[Column, Callable[[], Serde]]:
    """A column of keys in the bytes of their serde, and that serde; windowed keys as archives have them."""
    arrow_type = described.type(name)

    def serde() -> Serde:
        own = serde_for(arrow_type)
        if isinstance(own, WindowedKeySerde):
            return ArchivedKeySerde(own)
        return described_serde(described.settings.get(setting), arrow_type, of=f"the {name}s of store {described.name}")

    return Column(archived_type(arrow_type), lambda data: serde().deserialize(data)), serde


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
