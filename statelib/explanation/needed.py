"""Follows a result backwards through the nodes of a task: which records may have mattered to it.

This errs on the side of too many records; `statelib.explanation.alone` tells which ones matter. A record that a node
forwards rests on what came in with the same source record, and of a node with state on what came in before with the
same key: in the same window, with the same id, or near enough to meet it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from statelib.explanation.earlier import EVER, RestsOnEarlierError
from statelib.explanation.rows import Rows, ids_of, key_bytes
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.aggregation.table_select import TableSelect
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.operators.joins.stream_stream.operator import StreamJoinSide, StreamStreamJoin
from statelib.operators.joins.stream_stream.self_join import StreamSelfJoin
from statelib.operators.joins.stream_table.buffer import JoinBuffer
from statelib.operators.joins.stream_table.stream_side import StreamSideSpec
from statelib.operators.mappers.fields import columns_for
from statelib.operators.mappers.mapping import evaluate
from statelib.operators.processors.process import Process
from statelib.operators.stateless.branch import Branch, Split
from statelib.operators.stateless.flat_map import FlatMap, FlatMapValues
from statelib.operators.stateless.merge import Merge
from statelib.operators.stateless.operator import Filter, ForEach, MapKeyValue, MapValues, Peek, SelectKey
from statelib.operators.stateless.route import Route
from statelib.operators.suppress.operator import Suppress
from statelib.operators.tables.derived import ToStream
from statelib.operators.windows.definition import TimeWindows
from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec
from statelib.records.key_column import KeyColumn
from statelib.topology import Processor, Source
from statelib.topology.nodes import senders
from statelib.topology.turns import is_shared, turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.explanation.rows import Id, RowKey
    from statelib.operators.mappers.mapping import Mapper
    from statelib.topology import SubTopology
    from statelib.topology.turns import Turn

Wanted = tuple[str, int, "RowKey"]
"""A row that reached a sink: the sink's name, the sequence of its cause, its key."""

Deduplicated = tuple[str, DeduplicateSpec, "set[Id]"]
"""A deduplication, its parameters and ids of it."""

_Span = tuple[bytes | None, int, int]
"""A key, and a time from the first to the last millisecond."""

_KEEPS_KEYS = (MapValues, Filter, Peek, ForEach, Merge, Split, Branch, Route, FlatMapValues, ToStream, StreamJoinSide)
"""What these forward has the key, the window and the time of what came in; and they have no state."""

_CHANGES_KEYS = (SelectKey, MapKeyValue, FlatMap, TableSelect)
_REMEMBERS_ALL = (KeyAggregate, Process)


class Needs:
    """What some rows that reached sinks rest on.

    Args:
        sub_topology: Of the task.
        rows: What was kept of each node.
        recency: How many records of a key, the last ones, to look at where an operator keeps the last one, or the last
            ones of an interval; None: all.
        earlier: By node, the latest time of what it can have forwarded before the replay began; of others nothing came.
        also_dropped: Whether to look for records that were dropped on the way as well: those that would have counted.
    """

    def __init__(
        self,
        sub_topology: SubTopology,
        rows: Mapping[str, Rows],
        *,
        recency: int | None,
        earlier: Mapping[str, int],
        also_dropped: bool = False,
    ) -> None:
        self._nodes = sub_topology.nodes
        self._rows = rows
        self._recency = recency
        self._earlier = earlier
        self._also_dropped = also_dropped
        self._chosen: dict[str, set[int]] = {node.name: set() for node in self._nodes}
        self._spans: dict[str, set[_Span]] = {node.name: set() for node in self._nodes}
        self._id_cache: dict[tuple[str, str], list[Id]] = {}
        self._looked_up: dict[str, list[bytes | None]] = {}
        self.keys: set[bytes | None] = set()
        """All keys that were looked for."""
        self.sequences: set[int] = set()
        """The source records that caused what is needed anywhere."""
        self.ids: dict[str, Deduplicated] = {}
        """All ids that were looked for: by the parent of a deduplication, its name, its parameters and the ids."""

    def follow(self, wanted: Iterable[Wanted]) -> set[int]:
        """The sequences of the records of the task's sources that may matter.

        Raises:
            RestsOnEarlierError: Some may have come before the replay began.
        """
        for sink, sequence, key in wanted:
            (node,) = (node for node in self._nodes if node.name == sink)
            self.keys.add(key[0])
            self.sequences.add(sequence)
            for parent in node.parents:
                rows = self._of(parent)
                found = rows.by_sequence.get(sequence, ())
                self._choose(parent, [row for row in found if rows.keys[row] == key])
        for turn in reversed(turns(self._nodes)):
            if is_shared(turn):
                self._through_together(turn)
            elif isinstance(turn[0], Processor):
                self._through(turn[0])
        sources = [node for node in self._nodes if isinstance(node, Source)]
        for node in sources:
            self._choose(node.name, self._in_spans(node.name))
        return {int(self._of(node.name).sequence[row]) for node in sources for row in self._chosen[node.name]}

    def _of(self, node: str) -> Rows:
        return self._rows.get(node) or Rows()

    def _choose(self, node: str, rows: Iterable[int]) -> None:
        self._chosen[node].update(rows)

    def _through(self, node: Processor) -> None:
        """Chooses, of what its parents forwarded, what the chosen rows of a node rest on."""
        self._choose(node.name, self._in_spans(node.name))
        rows, chosen = self._of(node.name), sorted(self._chosen[node.name])
        self.sequences.update(rows.sequence[chosen].tolist())
        self._span(node, chosen)
        self._of_global_stores(node, chosen)
        keys = [{rows.keys[row][0]} for row in chosen]  # under which the node may have looked for something
        for slot, parent in enumerate(node.parents):
            self._choose(parent, self._direct(node, slot, chosen, keys))
        if isinstance(node.spec, (*_KEEPS_KEYS, *_CHANGES_KEYS)):
            return
        for asked in keys:
            self.keys |= asked
        for slot, parent in enumerate(node.parents):
            self._choose(parent, self._remembered(node, slot, chosen, keys))

    def _of_global_stores(self, node: Processor, chosen: Sequence[int]) -> None:
        """Chooses all that is in global stores that a custom processor reads."""
        if not chosen or not isinstance(node.spec, Process):
            return
        writers = node.parents[len(senders(node)) :]
        for parent in (parent for of in self._nodes if of.name in writers for parent in of.parents):
            self._choose(parent, range(len(self._of(parent))))

    def _through_together(self, turn: Turn) -> None:
        """The same for nodes that share stores: what any has put may matter to the others, whatever its key."""
        inside = {node.name for node in turn}
        last = -1
        for node in turn:
            sequence = self._of(node.name).sequence[sorted(self._chosen[node.name])]
            self.sequences.update(sequence.tolist())
            last = max(last, int(sequence.max(initial=-1)))
        if last < 0:
            return
        for node in turn:
            if isinstance(node, Processor):
                self._of_global_stores(node, [last])
        until = EVER if self._also_dropped else last
        for parent in (parent for node in turn for parent in node.parents if parent not in inside):
            rows = self._of(parent)
            self._nothing_earlier(parent, -EVER)
            found = np.flatnonzero(rows.sequence <= until).tolist()
            self.keys.update(rows.keys[row][0] for row in found)
            self._choose(parent, found)

    def _direct(self, node: Processor, slot: int, chosen: Sequence[int], keys: list[set[bytes | None]]) -> list[int]:
        """What came in with the same source record; adds the keys of that to ``keys``."""
        rows, parent, found = self._of(node.name), self._of(node.parents[slot]), []
        keeps = isinstance(node.spec, _KEEPS_KEYS)
        releases = isinstance(node.spec, (Suppress, JoinBuffer)) or (
            isinstance(node.spec, WindowedAggregateSpec) and node.spec.final
        )
        by = node.spec.key if isinstance(node.spec, StreamSideSpec) and slot == 0 else None
        for at, row in enumerate(chosen):
            for source in parent.by_sequence.get(int(rows.sequence[row]), ()):
                if keeps and parent.keys[source] != rows.keys[row]:
                    continue
                # It has moved the clock: what happened to other records like it did not matter.
                if self._also_dropped and releases and parent.keys[source] != rows.keys[row]:
                    continue
                found.append(source)
                keys[at].add(parent.keys[source][0])
                if by is not None:
                    keys[at].add(self._lookup_keys(node, by)[source])
        return found

    def _lookup_keys(self, node: Processor, by: Mapper) -> list[bytes | None]:
        """Under which key each record of the first parent looks into a global table."""
        if node.name not in self._looked_up:
            found: list[bytes | None] = []
            for batch in self._of(node.parents[0]).batches:
                keys = evaluate(by, columns_for(by, batch), node.name, batch.sequence)
                found += key_bytes(KeyColumn(keys)).to_pylist()
            self._looked_up[node.name] = found
        return self._looked_up[node.name]

    def _remembered(
        self, node: Processor, slot: int, chosen: Sequence[int], keys: Sequence[set[bytes | None]]
    ) -> set[int]:
        """What came in with other source records, and is remembered."""
        rows, parent, spec = self._of(node.name), self._of(node.parents[slot]), node.spec
        if isinstance(spec, DeduplicateSpec):
            return self._same_id(node, spec, chosen)
        found: set[int] = set()
        name = node.parents[slot]
        for row, asked in zip(chosen, keys, strict=True):
            sequence, key, timestamp = int(rows.sequence[row]), rows.keys[row], int(rows.timestamp[row])
            until = EVER if self._also_dropped else sequence
            if isinstance(spec, WindowedAggregateSpec) and key[1] is not None:
                self._nothing_earlier(name, key[1])
                found.update(_between(parent, key[0], key[1], rows.ends[row] or key[1], until))
            elif isinstance(spec, Distinct) and isinstance(spec.windows, TimeWindows):
                size = spec.windows.size_ms
                self._nothing_earlier(name, timestamp - size)
                found.update(_between(parent, key[0], timestamp - size, timestamp + size, until))
            elif isinstance(spec, Suppress):
                windowed = key[1] is not None and self._is_windowed(node)
                self._nothing_earlier(name, key[1] if windowed and key[1] is not None else -EVER)
                found.update(of for of in _before(parent, key[0], until).tolist() if parent.keys[of] == key)
            elif isinstance(spec, StreamStreamJoin | StreamSelfJoin):
                reach = max(abs(spec.windows.before_ms), abs(spec.windows.after_ms))
                self._nothing_earlier(name, timestamp - reach)
                for one in asked:
                    found.update(_between(parent, one, timestamp - reach, timestamp + reach, sequence))
            else:
                recency = None if isinstance(spec, _REMEMBERS_ALL) else self._recency
                for one in asked:
                    before = _before(parent, one, sequence)
                    self._nothing_earlier(name, _reach(parent, before, timestamp, recency))
                    found.update(_last(parent, before, timestamp, recency))
        return found

    def _same_id(self, node: Processor, spec: DeduplicateSpec, chosen: Sequence[int]) -> set[int]:
        """The records with an id of one that was forwarded, and near enough to it."""
        name, rows, parent = node.parents[0], self._of(node.name), self._of(node.parents[0])
        ids = self._ids(node, spec, name)
        own = {row for at in chosen for row in parent.by_sequence.get(int(rows.sequence[at]), ())}
        own.update(self._in_spans(name))  # they may have been duplicates
        wanted: dict[Id, list[int]] = {}
        for row in own:
            if ids[row] is not None:
                wanted.setdefault(ids[row], []).append(row)
        for of in chain.from_iterable(wanted.values()):
            self._nothing_earlier(name, int(parent.timestamp[of]) - spec.interval_ms)
        self.ids.setdefault(name, (node.name, spec, set()))[2].update(wanted)
        found = set()
        for row, one in enumerate(ids):
            for of in wanted.get(one, ()):
                near = abs(int(parent.timestamp[row] - parent.timestamp[of])) <= spec.interval_ms
                if near and (self._also_dropped or parent.sequence[row] <= parent.sequence[of]):
                    found.add(row)
        return found

    def _ids(self, node: Processor, spec: DeduplicateSpec, parent: str) -> list[Id]:
        name = (node.name, parent)
        if name not in self._id_cache:
            self._id_cache[name] = [one for batch in self._of(parent).batches for one in ids_of(node.name, spec, batch)]
        return self._id_cache[name]

    def _span(self, node: Processor, chosen: Sequence[int]) -> None:
        """Tells parents the keys and times of what would count, though it may never have come this far."""
        if not self._also_dropped:
            return
        rows, spans = self._of(node.name), self._spans[node.name]
        if isinstance(node.spec, WindowedAggregateSpec):
            spans = {
                (key, start, _last_of(node.spec, end)) for key, start, end in
                ((*rows.keys[row], rows.ends[row]) for row in chosen) if start is not None and end is not None
            }  # fmt: skip
        elif isinstance(node.spec, KeyAggregate) and not node.spec.of_table:
            spans = {(rows.keys[row][0], -EVER, EVER) for row in chosen}
        elif isinstance(node.spec, (*_CHANGES_KEYS, Process, Suppress)):
            return
        for parent in node.parents[: len(node.parents) - node.looks_into]:
            if isinstance(node.spec, StreamSideSpec) and parent != node.parents[0]:
                continue
            self._spans[parent] |= spans

    def _nothing_earlier(self, node: str, since_ms: int) -> None:
        """Makes sure that what a node forwarded before the replay began was all earlier than some time."""
        if self._earlier.get(node, since_ms - 1) >= since_ms:
            raise RestsOnEarlierError

    def _is_windowed(self, node: Processor) -> bool:
        """Whether the windows of a node's keys are those of an aggregation above it: their records are within them."""
        above = [of for of in self._nodes if of.name in node.parents and isinstance(of, Processor)]
        return any(isinstance(of.spec, WindowedAggregateSpec) or self._is_windowed(of) for of in above)

    def _in_spans(self, node: str) -> list[int]:
        rows = self._of(node)
        for _, start, _ in self._spans[node]:
            self._nothing_earlier(node, start)
        return [row for key, start, end in self._spans[node] for row in _between(rows, key, start, end, EVER)]


def _last_of(spec: WindowedAggregateSpec, end: int) -> int:
    """The last time that is in a window."""
    return end - 1 if spec.operator == "window_aggregate" else end


def _before(rows: Rows, key: bytes | None, sequence: int) -> NDArray[np.int64]:
    """The rows of a key that some source record or those before it caused."""
    of_key = rows.by_key.get(key)
    if of_key is None:
        return np.empty(0, np.int64)
    return of_key[: int(np.searchsorted(rows.sequence[of_key], sequence, side="right"))]


def _between(rows: Rows, key: bytes | None, start: int, end: int, sequence: int) -> list[int]:
    """Of these, those with a time from ``start`` to ``end``."""
    found = _before(rows, key, sequence)
    times = rows.timestamp[found]
    return [int(row) for row in found[(times >= start) & (times <= end)]]


def _reach(rows: Rows, found: NDArray[np.int64], timestamp: int, recency: int | None) -> int:
    """Since what time `_last` would also take rows from before those that were found."""
    earlier = np.sort(rows.timestamp[found][rows.timestamp[found] <= timestamp])
    if recency is None or len(earlier) < recency:
        return -EVER
    return int(earlier[-recency]) + 1


def _last(rows: Rows, found: NDArray[np.int64], timestamp: int, recency: int | None) -> list[int]:
    """The last rows by arrival, and the last ones by time that are not behind ``timestamp``."""
    if recency is None or len(found) <= recency:
        return [int(row) for row in found]
    earlier = found[rows.timestamp[found] <= timestamp]
    latest = earlier[np.argsort(rows.timestamp[earlier], kind="stable")[-recency:]]
    return [*found[-recency:].tolist(), *latest.tolist()]
