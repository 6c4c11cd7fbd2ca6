"""Runs a sub-topology's nodes over one run of records after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import (
    CallingFirst,
    ClosingOperator,
    HoldingOperator,
    RoutingOperator,
    SpillingOperator,
    ViewedOperator,
    WindowedOperator,
)
from statelib.operators.mappers.function_errors import UserFunctionError
from statelib.operators.suppress.operator import RunningSuppress
from statelib.records.batch import Batch, Uptake, concat_in_order
from statelib.records.key_table import KeyTable
from statelib.stores.backend import WriteBatch
from statelib.task.contexts import contexts_of
from statelib.task.error_places import ErrorPlaces
from statelib.task.held_once import hold_windows_once
from statelib.task.in_turns import InTurns
from statelib.task.numbering import Numbering, Passing, in_task, met, parted
from statelib.task.sampling import Sampling
from statelib.topology import Processor, Sink, Source, addressed_name
from statelib.topology.leeway import with_leeway
from statelib.topology.nodes import senders
from statelib.topology.paths import paths_through
from statelib.topology.projection import wanted_fields
from statelib.topology.turns import is_shared, turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from statelib.documents.plans import Leeway
    from statelib.operators.base import Operator
    from statelib.operators.changelog import Changelog
    from statelib.operators.late_records import LateRecords
    from statelib.operators.mappers.fields import Fields
    from statelib.records.key_sample import KeySample
    from statelib.settings.semantics import EndOfInput, Semantics
    from statelib.stores.backend import Backend
    from statelib.task.observers import NodeSeconds, Tap
    from statelib.task.processing_errors import ProcessingErrors
    from statelib.task.source_records import Records
    from statelib.topology import Node, SubTopology


class Graph:
    """The running operators of one task, which are closed with the context.

    Args:
        sub_topology: What to run.
        backend: The task's stores.
        clocks: The operators' clocks as of the last commit, by node; kept up to date as the task goes on.
        semantics: See `Semantics`.
        late: Takes late records; None: they are dropped and counted, nothing else.
        partition: The task's.
        changelogs: By store, what takes its changes.
        only_wanted: Whether what nobody looks at is left out of values that are put together.
        wanted: What is looked at, by node; None: what these nodes do.
        spent: Takes the seconds that each source and processor took to make what it forwards; None: nobody asks.
        tap: Told what each node forwards, and what reaches each sink; None: nobody asks. Then no update of a window is
            spared.
        sample: The keys of which results are wanted; None: all.
        leeway: What some operators let in that the topology does not; None: nothing.
    """

    def __init__(
        self,
        sub_topology: SubTopology,
        backend: Backend,
        *,
        clocks: Mapping[str, Mapping[str, int]],
        semantics: Semantics,
        late: LateRecords | None = None,
        partition: int = 0,
        changelogs: Mapping[str, Changelog] | None = None,
        only_wanted: bool = True,
        wanted: Mapping[str, Fields] | None = None,
        spent: NodeSeconds | None = None,
        tap: Tap | None = None,
        sample: KeySample | None = None,
        leeway: Leeway | None = None,
    ) -> None:
        self._backend = backend
        self.errors: ProcessingErrors | None = None
        """What becomes of records for which the user's functions fail; None: the first of them ends the task."""
        self._is_sealing = False
        self._spent = spent
        self._tap = tap
        self.nodes = sub_topology.nodes
        self._sources = {source.name: index for index, source in enumerate(sub_topology.all_sources)}
        self._topics = [source.topic for source in sub_topology.all_sources]
        self.placing = ErrorPlaces(self.nodes, self._topics).placing
        self._encode_keys = sub_topology.stateful
        self.keys = KeyTable()
        self._new_keys = 0  # of the last records
        self.metrics = {node.name: NodeMetrics() for node in self.nodes}
        self.clocks = {p.name: dict(clocks.get(p.name, {})) for p in sub_topology.processors}
        self._contexts = contexts_of(
            sub_topology,
            backend,
            self.keys,
            self.metrics,
            self.clocks,
            semantics=semantics,
            late=late,
            partition=partition,
            changelogs=changelogs or {},
            wanted=(wanted_fields(self.nodes) if wanted is None else wanted) if only_wanted else {},
        )
        self.operators: dict[str, Operator] = {
            processor.name: with_leeway(processor, leeway).build(self._contexts[processor.name])
            for processor in sub_topology.processors
        }
        # Looked at once: isinstance goes through all of a protocol's attributes each time.
        self._routing = {name: o for name, o in self.operators.items() if isinstance(o, RoutingOperator)}
        self._closing = [operator for operator in self.operators.values() if isinstance(operator, ClosingOperator)]
        self._viewed = {
            name: operator
            for name, operator in self.operators.items()
            if self._contexts[name].is_looked_into and isinstance(operator, ViewedOperator)
        }
        for name in self._viewed:
            if self._contexts[name].in_turns:
                raise ConfigurationError(
                    "a suppressed table is joined between processors that share the store of a table above it",
                    node=name,
                    next_step="put to_stream().to_table() behind the suppression, which has what it has let go",
                )
        in_order = turns(self.nodes)
        self._paths = paths_through(self.nodes)
        self._sampling = None if sample is None else Sampling(sample, self.nodes, self.metrics)
        of_all = [turn for turn in in_order if self._sampling is None or turn[0].name not in self._sampling]
        # What is taken for the sake of time depends on all that comes of the sample.
        self._order = [*of_all, *(turn for turn in in_order if turn not in of_all)]
        self._first_sampled = len(of_all)
        self._in_turns = [self._together(turn) for turn in in_order if is_shared(turn)]
        self._turn_of = {node.name: running for running in self._in_turns for node in running.nodes}
        if tap is None and leeway is None:  # with some, windows take records whose final results have been given
            hold_windows_once(
                self.nodes,
                self.operators,
                clock=lambda name: self._contexts[name].clock(),
                in_turns=self._turn_of,
                leaves_out=self._leaves_out,
            )

    def _together(self, turn: Sequence[Node]) -> InTurns:
        """The nodes of a turn that has several."""
        return InTurns(
            [node for node in turn if isinstance(node, Processor)],
            self.nodes,
            self.operators,
            self._contexts,
            self._run,
            self.placing,
            keeps_all=self._tap is not None,
        )

    def _leaves_out(self, parent: str, node: str) -> bool:
        """Whether a node gets a part of what its parent forwards, so that it has to be forwarded."""
        return self._sampling is not None and parent not in self._sampling and node in self._sampling

    def process(
        self,
        parts: Sequence[Records],
        ranks: Sequence[NDArray[np.int64]],
        uptake: Uptake,
        sealed: Mapping[str, Batch] | None = None,
    ) -> dict[str, Batch]:
        """Takes up some records of each source, in the order of ``Topology``'s sources.

        Args:
            parts: The records of each source.
            ranks: int64, by source: the place of each of its records in the uptake.
            uptake: What the task knew at each record.
            sealed: By node, what it forwards beside that, since it has been sealed.

        Returns:
            By sink node, what reached it, in order.
        """
        self._is_sealing = sealed is not None  # what is let go then was caused by no source record
        if self.errors is not None:
            self.errors.take_up(parts, ranks, uptake)
        return self._process(parts, ranks, uptake, sealed or {})

    def call(self, nothing: Sequence[Records], uptake: Uptake) -> dict[str, Batch]:
        """What reaches the sinks of callbacks that are due behind all that the last record has caused.

        Args:
            nothing: No records, of the types of each source.
            uptake: That of the last `process`.
        """
        return self._process(nothing, [np.empty(0, np.int64)] * len(nothing), uptake, {})

    def _process(
        self,
        parts: Sequence[Records],
        ranks: Sequence[NDArray[np.int64]],
        uptake: Uptake,
        sealed: Mapping[str, Batch],
    ) -> dict[str, Batch]:
        known = len(self.keys)
        made = self._run_all(parts, ranks, uptake, sealed)
        self._new_keys = len(self.keys) - known
        arrived = {node.name: self._arrived(node, made, uptake) for node in self.nodes if isinstance(node, Sink)}
        if self._tap is not None:
            for name, batch in arrived.items():
                self._tap(name, batch)
        return arrived

    def seal(
        self, nodes: Sequence[str], nothing: Sequence[Records], *, leeway: Leeway | None = None
    ) -> dict[str, Batch]:
        """Seals some nodes whose parents have nothing more to give: see `HoldingOperator.seal`.

        Args:
            nodes: Their names.
            nothing: No records, of the types of each source.
            leeway: Nothing is sealed, and what they hold for its sake alone is let go; None: they are sealed.
        """
        empty = self.forwarded_of_nothing(nothing)
        held: dict[str, Batch] = {}
        for node in self.nodes:
            operator = self.operators.get(node.name)
            if node.name not in nodes or not isinstance(operator, HoldingOperator):
                continue
            inputs = [empty[parent] for parent in node.parents]
            with self.placing(node.name, None):
                if leeway is None:
                    held[node.name] = operator.seal(inputs)
                    self.metrics[node.name].count("sealed-results", len(held[node.name]))
                elif node.name in leeway.nodes and isinstance(operator, RunningSuppress):
                    held[node.name] = operator.let_go(inputs)
        return held

    def forwarded_of_nothing(self, nothing: Sequence[Records]) -> dict[str, Batch]:
        """What each node forwards of no records: an empty batch, which has its types.

        Args:
            nothing: No records, of the types of each source.
        """
        none = np.empty(0, dtype=np.int64)
        uptake = Uptake(0, none, none.astype(np.int16), none.astype(np.int32), none)
        made = self._run_all(nothing, [none] * len(nothing), uptake, {})
        return {name: passing.batch for name, passing in made.items()}

    def _run_all(
        self,
        parts: Sequence[Records],
        ranks: Sequence[NDArray[np.int64]],
        uptake: Uptake,
        sealed: Mapping[str, Batch],
    ) -> dict[str, Passing]:
        """What each node forwards."""
        made: dict[str, Passing] = {}
        task = Numbering(uptake)
        for place, (node, *_) in enumerate(self._order):
            self._begin(place, node, made)
            if node.name in self._turn_of:
                self._run_together(self._turn_of[node.name], made, uptake, sealed)
                continue
            match node:
                case Source():
                    index = self._sources[node.name]
                    passing = Passing(self._source(parts[index], _sequence(ranks[index], uptake)), task)
                    self._count(node.name, len(passing.batch), len(passing.batch))
                    self.metrics[node.name].account("forwarded", len(passing.batch))
                case Processor() if node.name in sealed:
                    passing = Passing(sealed[node.name], task)  # its parents have nothing more to give
                case Processor():
                    passing = self._run(node, self._inputs(node, made, uptake))
                case Sink():
                    continue
            if self._tap is not None:
                self._tap(node.name, in_task(passing))
            made[node.name] = self._forwarded(node, passing, uptake)
        if self._spent is not None:
            self._spent.end()
        return made

    def _forwarded(self, node: Node, passing: Passing, uptake: Uptake) -> Passing:
        """What a node forwards, as its children get it, and those that look into its table."""
        told = self._viewed[node.name].told(passing.batch) if node.name in self._viewed else None
        if node.name in self._paths.partings:
            return parted(passing, uptake, self._paths.number[node.name], told)
        return passing if told is None else replace(passing, told=replace(passing, batch=told.changes))

    def _run_together(
        self, running: InTurns, made: dict[str, Passing], uptake: Uptake, sealed: Mapping[str, Batch]
    ) -> None:
        """Adds to ``made`` what nodes forward that take a turn together."""
        inputs = [
            self._sent(node.parents[slot], node, slot, made[node.parents[slot]]) for node, slot in running.entries
        ]
        let_go = {node.name: sealed[node.name] for node in running.nodes if node.name in sealed}
        forwarded = running.run(inputs, uptake, self._paths.number[running.nodes[0].name], let_go, self._tolerant())
        made |= forwarded
        if self._tap is not None:
            for name, passing in forwarded.items():
                self._tap(name, in_task(passing))

    def _begin(self, place: int, node: Node, made: Mapping[str, Passing]) -> None:
        """A node is about to run; ``place``: in the order in which they do."""
        if self._sampling is not None and place == self._first_sampled:
            self._sampling.begin({edge: self._sent(*edge, made[edge[0]]) for edge in self._sampling.edges})
        if self._spent is not None:
            self._spent.begin(node.name)

    def _inputs(self, node: Node, made: Mapping[str, Passing], uptake: Uptake) -> list[Passing]:
        """What each parent has sent to ``node``, all of it in one numbering."""
        inputs = [self._sent(parent, node, slot, made[parent]) for slot, parent in enumerate(node.parents)]
        if self._sampling is not None:
            inputs = [self._sampling.taken(node, slot, passing) for slot, passing in enumerate(inputs)]
        is_called = node.name in self._paths.calls and inputs[0].numbering.places is None
        if is_called or not all(passing.is_comparable(inputs[0]) for passing in inputs[1:]):
            return met(inputs, uptake, self._paths.number[node.name])
        return inputs

    def _sent(self, parent: str, node: Node, slot: int, passing: Passing) -> Passing:
        """What a parent has sent to ``node``, of which it is the parent with the number ``slot``."""
        if parent in self._turn_of and node.name not in self._turn_of[parent].names:
            return self._turn_of[parent].sent[node.name, slot]
        if passing.told is not None and slot >= len(senders(node)):
            return passing.told
        if parent in self._routing:
            sent = self._routing[parent].sent_to(addressed_name(node), passing.batch)
            passing = replace(passing, batch=sent)
        if parent in self._paths.partings:
            return replace(passing, child=self._paths.place(parent, node, slot))
        return passing

    def _arrived(self, sink: Sink, made: Mapping[str, Passing], uptake: Uptake) -> Batch:
        """What has reached a sink, with the sequences of the source records that caused it."""
        inputs = self._inputs(sink, made, uptake)
        merged, _ = concat_in_order([passing.batch for passing in inputs])
        return in_task(replace(inputs[0], batch=merged))

    def flush(self, write: WriteBatch) -> None:
        """Adds every operator's unwritten changes to ``write`` and forgets all working sets and key codes."""
        for operator in reversed(self.operators.values()):
            operator.flush(write)
        self.keys.clear()

    def spill(self, new_file: Callable[[], Path]) -> None:
        """As `flush`, but writes the changes, one operator's after the other: all at once would take more memory.

        Args:
            new_file: Gives a file of its own to each operator that may put its changes aside: see `SpillingOperator`.
        """
        for operator in reversed(self.operators.values()):
            write = WriteBatch(passed_to=self._backend)
            if isinstance(operator, SpillingOperator):
                operator.spill(new_file(), write)
            else:
                operator.flush(write)
            self._backend.write(write)
        self.keys.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the operators; of several errors the first one counts."""
        for operator in self._closing:
            try:
                operator.close()
            except HindstreamError:
                if error is None:
                    raise

    def count_windows(self, end_of_input: EndOfInput) -> None:
        """Counts the windows that are still open, or have been sealed; after what was flushed has been written."""
        for name, operator in self.operators.items():
            if isinstance(operator, WindowedOperator):
                windows = operator.open_windows()
                if end_of_input == "seal":
                    self.metrics[name].count("sealed-windows", windows)
                else:
                    self.metrics[name].gauges["open-windows"] = windows

    def memory_bytes(self) -> int:
        """Size of all working sets: see `Operator.memory_bytes`."""
        return self.keys.memory_bytes(self._new_keys) + sum(o.memory_bytes() for o in self.operators.values())

    def _run(self, node: Processor, inputs: Sequence[Passing]) -> Passing:
        first, batches = inputs[0], tuple(passing.batch for passing in inputs)
        uptake, errors, metrics = first.numbering.uptake, self._tolerant(), self.metrics[node.name]
        operator = self.operators[node.name]
        self._contexts[node.name].on_failure = errors.of_node(node.name, uptake, metrics) if errors else None
        with self.placing(node.name, uptake):
            try:
                batch = operator.process(batches, uptake)
            except UserFunctionError as error:
                if errors is None or len(inputs) > 1 or not isinstance(operator, CallingFirst):
                    raise
                return self._run(node, [errors.without_failing(node.name, first, error, metrics)])
        return replace(first, batch=batch, told=None)

    def _tolerant(self) -> ProcessingErrors | None:
        """Takes records for which a function fails; None: the first ends the run."""
        return None if self._is_sealing else self.errors

    def _source(self, records: Records, sequence: NDArray[np.int64]) -> Batch:
        encodes = self._encode_keys and records.keys.windows is None  # of windows not all operators have codes
        codes = self.keys.encode(records.keys.serialized()) if encodes else None
        return Batch(records.keys, codes, records.value, records.timestamp, sequence, headers=records.headers)

    def _count(self, node: str, records_in: int, records_out: int) -> None:
        metrics = self.metrics[node]
        metrics.records_in += records_in
        metrics.records_out += records_out


def _sequence(rank: NDArray[np.int64], uptake: Uptake) -> NDArray[np.int64]:
    """int64, the sequences of records, given their places; a source that is alone has all places."""
    first = uptake.first_sequence
    return np.arange(first, first + len(rank)) if len(rank) == len(uptake) else rank + first
