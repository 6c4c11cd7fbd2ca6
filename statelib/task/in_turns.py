"""Runs nodes that take a turn together (`statelib.topology.turns`) as Kafka Streams runs all: record by record.

A record goes through one node after the other, depth first: what a processor forwards has taken all its ways within the
turn before the processor goes on. Custom processors get records as they are; any other operator gets a batch of one,
and writes what it has for a store that a custom processor uses as soon as it is done. What leaves the turn goes on in
batches, each result under a number of its own (`statelib.task.numbering`).

Scheduled calls of all of these processors are in one queue, as they are for a task in Kafka Streams.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from statelib.operators.base import RoutingOperator
from statelib.operators.processors.definition import FixedKeyRecord, Record
from statelib.operators.processors.forwarded import TO_ALL
from statelib.operators.processors.operator import ProcessOperator
from statelib.operators.processors.punctuation import PunctuationQueue, begin
from statelib.operators.processors.visits import Visit, Visits, records_of
from statelib.records.batch import Batch, Uptake
from statelib.stores.backend import WriteBatch
from statelib.task.collected import Parts, Records
from statelib.task.numbering import Numbering, Passing, met, results_numbered
from statelib.task.table_stores import opened_store
from statelib.topology import addressed_name
from statelib.topology.nodes import Processor, senders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from statelib.operators.base import Operator, OperatorContext
    from statelib.operators.processors.punctuation import Schedule
    from statelib.records.batch import UptakeOfVisits
    from statelib.state import StateStore
    from statelib.task.processing_errors import ProcessingErrors
    from statelib.topology import Node

Placing: TypeAlias = "Callable[[str, Uptake | None], AbstractContextManager[None]]"
"""Says where an error of a node was (`statelib.task.error_places.ErrorPlaces.placing`)."""


class _Edge(NamedTuple):
    """From a node of the turn to one of those that take what it forwards.

    Attributes:
        child: That one.
        slot: Which of its parents the node is.
        number: Which of the node's children it is.
        is_inside: Whether it has the same turn.
    """

    child: Node
    slot: int
    number: int
    is_inside: bool


class _Event(NamedTuple):
    """Something that happens to a node: a record comes in, or leaves it because it has been sealed."""

    number: int
    happen: Callable[[Any, Visit], None]
    what: Any


class InTurns:
    """Some running nodes.

    Args:
        turn: The nodes.
        nodes: All of the sub-topology.
        operators: By node.
        contexts: By node.
        run_one: Runs any operator but a custom processor, given what each of its parents has sent.
        placing: See `Placing`.
        keeps_all: Whether somebody wants to see all that each node forwards.
    """

    def __init__(
        self,
        turn: Sequence[Processor],
        nodes: Sequence[Node],
        operators: Mapping[str, Operator],
        contexts: Mapping[str, OperatorContext],
        run_one: Callable[[Processor, Sequence[Passing]], Passing],
        placing: Placing,
        *,
        keeps_all: bool,
    ) -> None:
        self.nodes = turn
        self.names = frozenset(node.name for node in turn)
        self.sent: dict[tuple[str, int], Passing] = {}
        """What has left the turn, by node and number of its parent: since the last `run`."""
        self._operators = {node.name: operators[node.name] for node in turn}
        self._processors = [operator for operator in self._operators.values() if isinstance(operator, ProcessOperator)]
        self._contexts = contexts
        self._backend = contexts[turn[0].name].backend
        self._metrics = {node.name: contexts[node.name].metrics for node in turn}
        self._topics = contexts[turn[0].name].sources
        self._nodes = {node.name: node for node in turn}
        self._run_one = run_one
        self._placing = placing
        self._keeps_all = keeps_all
        self.entries: list[tuple[Processor, int]] = [
            (node, slot)
            for node in turn
            for slot, parent in enumerate(self._parents_of(node))
            if parent not in self._operators
        ]
        """The nodes that get something from outside, and the numbers of the parents from whom."""
        self._edges = {node.name: self._edges_of(node, nodes) for node in turn}
        of_tables = any(processor.tables for processor in self._processors)
        self._writes_at_once = {
            node.name
            for node in turn
            if of_tables
            and not self._is_custom(node.name)
            and self.names.issuperset(node.parents[len(senders(node)) :])
        }
        """But for those that look into tables that are not written then: they have to remember what has changed."""
        self._inputs: dict[str, list[Batch]] = {}  # by node, of each parent: nothing
        self._queue = PunctuationQueue()
        if self._processors:
            self._queue = begin([processor.scheduler for processor in self._processors])
            self._hand_over()
        for name, operator in self._operators.items():
            if isinstance(operator, ProcessOperator):
                operator.deliver_to(partial(self._forward, name))

    def _edges_of(self, node: Processor, nodes: Sequence[Node]) -> list[_Edge]:
        """Those from a node: first to those that look into it: they know what it has put before a child is called."""
        children = [child for child in nodes if node.name in child.parents]
        edges = [
            (_Edge(child, slot, number, child.name in self._operators), slot < len(senders(child)))
            for number, child in enumerate(children)
            for slot, parent in enumerate(child.parents)
            if parent == node.name
        ]
        return [edge for edge, _ in sorted(edges, key=lambda edge: edge[1])]

    def _parents_of(self, node: Processor) -> tuple[str, ...]:
        """Those whose records it takes: a custom processor reads the stores of those that it only looks into."""
        return senders(node) if self._is_custom(node.name) else node.parents

    def _is_custom(self, name: str) -> bool:
        return isinstance(self._operators[name], ProcessOperator)

    # -------------------------------------------------------------------------------------------------------------

    def run(
        self,
        inputs: Sequence[Passing],
        task: Uptake,
        number: int,
        sealed: Mapping[str, Batch],
        errors: ProcessingErrors | None,
    ) -> dict[str, Passing]:
        """Takes up what comes to each of `entries`.

        Args:
            inputs: That, in their order.
            task: The task's uptake.
            number: The place of the first node in the order of declaration.
            sealed: By node, what it forwards beside that, since it has been sealed.
            errors: Takes records for which a processor fails; None: the first ends the run.

        Returns:
            By node, what it has forwarded, if that is to be kept, else nothing; of the right types.
        """
        if not self._inputs:
            self._find_types([passing.batch for passing in inputs])
        let_go = {name: Passing(batch, Numbering(task)) for name, batch in sealed.items()}
        together = met([*inputs, *let_go.values()], task, number)
        self._numbering = together[0].numbering
        self._uptake = cast("UptakeOfVisits", self._numbering.uptake)
        self._visits = Visits(self._uptake, self._topics)
        for name in self._operators:
            on_failure = errors.of_node(name, self._uptake, self._metrics[name]) if errors else None
            self._contexts[name].on_failure = on_failure
        if self._processors:
            self._processors[0].begin_clock(Visits(task, self._topics))
        self._leaving = {
            (edge.child.name, edge.slot): self._collect(name)
            for name, edges in self._edges.items()
            for edge in edges
            if not edge.is_inside
        }
        self._forwarded = {name: self._collect(name) for name in self._operators}
        self._rows: list[int] = []  # by result that has left the turn: the row of the visit that has caused it
        batches = [passing.batch for passing in together]
        for event in sorted(self._events(batches, list(let_go)), key=lambda event: event.number):
            self._punctuate(before=event.number)
            event.happen(event.what, self._visits.at(event.number))
        self._punctuate(before=len(self._uptake))
        self._hand_over()
        self._leave(task, number)
        return {name: Passing(kept.batch(), self._numbering) for name, kept in self._forwarded.items()}

    def _find_types(self, inputs: Sequence[Batch]) -> None:
        """Runs all nodes over nothing: it has the types of what they get and forward."""
        none = np.empty(0, np.int64)
        uptake = Uptake(0, none, none.astype(np.int16), none.astype(np.int32), none)
        from_outside = {
            (node.name, slot): batch.slice(0, 0) for (node, slot), batch in zip(self.entries, inputs, strict=True)
        }
        self._nothing: dict[str, Batch] = {}
        for node in self.nodes:
            got = [
                self._nothing[parent] if parent in self._nothing else from_outside[node.name, slot]
                for slot, parent in enumerate(self._parents_of(node))
            ]
            self._inputs[node.name] = got
            operator = self._operators[node.name]
            with self._placing(node.name, None):
                if isinstance(operator, ProcessOperator):
                    self._nothing[node.name] = operator.nothing_forwarded(got[0]).batch()
                else:
                    self._nothing[node.name] = operator.process(got, uptake)

        for processor in self._processors:
            for name, of_table in processor.tables.items():
                of_table.bind(partial(self._open, name, processor))

    def _open(self, name: str, processor: ProcessOperator) -> StateStore[Any]:
        """The store of a table, for a processor."""
        (owner,) = (node for node in self.nodes if name in {store.name for store in node.spec.state_stores()})
        store = opened_store(owner, name, self._nothing[owner.name], self._contexts[owner.name])
        store.log_to(processor.log_of(name))
        return store

    def _events(self, batches: Sequence[Batch], let_go: Sequence[str]) -> Iterator[_Event]:
        for (node, slot), batch in zip(self.entries, batches, strict=False):
            operator, numbers = self._operators[node.name], batch.sequence.tolist()
            if isinstance(operator, ProcessOperator):
                visit = partial(self._visit, node.name)
                with self._placing(node.name, self._uptake):
                    records = records_of(batch, fixed_key=operator.fixed_key)
                yield from (_Event(at, visit, record) for at, record in zip(numbers, records, strict=True))
            else:
                happen = partial(self._process, node.name, slot)
                yield from (_Event(at, happen, batch.slice(row, row + 1)) for row, at in enumerate(numbers))
        for name, batch in zip(let_go, batches[len(self.entries) :], strict=True):
            leave = partial(self._forward_all, name)
            yield from (_Event(at, leave, batch.slice(r, r + 1)) for r, at in enumerate(batch.sequence.tolist()))

    # --- what happens to one record ------------------------------------------------------------------------------

    def _visit(self, name: str, record: FixedKeyRecord, visit: Visit) -> None:
        """A custom processor gets a record."""
        operator, metrics = self._operators[name], self._metrics[name]
        metrics.records_in += 1
        with self._placing(name, self._uptake):
            succeeds = operator.visit(record, visit)  # type: ignore[attr-defined]
        metrics.account("processed", int(succeeds))
        if self._writes_at_once:
            operator.hand_over()  # type: ignore[attr-defined]

    def _process(self, name: str, slot: int, batch: Batch, visit: Visit) -> None:
        """Any other operator gets a batch of one record."""
        numbering = Numbering(self._uptake.of_visit(visit.sequence))
        inputs = [Passing(nothing, numbering) for nothing in self._inputs[name]]
        inputs[slot] = Passing(replace(batch, sequence=np.zeros(1, np.int64)), numbering)
        made = self._run_one(self._nodes[name], inputs).batch
        if name in self._writes_at_once:
            write = WriteBatch(passed_to=self._backend)
            self._operators[name].flush(write)
            self._backend.write(write)
        self._forward_all(name, made, visit)

    def _punctuate(self, *, before: int) -> None:
        """Makes the calls that come due at rows of the uptake from the current one to ``before``, exclusive."""
        while (row := self._visits.due_at(self._queue.next_due_ms)) is not None and row < before:
            visit = self._visits.call_at(row)
            self._queue.punctuate(visit.stream_time, partial(self._call, visit))
            self._processors[0].log_schedule()

    def _call(self, visit: Visit, schedule: Schedule) -> None:
        with self._placing(schedule.node, self._uptake):
            self._operators[schedule.node].call(schedule, visit)  # type: ignore[attr-defined]

    # --- what is forwarded ---------------------------------------------------------------------------------------

    def _forward(self, name: str, record: FixedKeyRecord, addressee: int, visit: Visit) -> None:
        """A custom processor forwards a record: now it takes all its ways."""
        self._metrics[name].records_out += 1
        if self._keeps_all:
            self._add(self._forwarded[name], record, visit)
        for edge in self._edges[name]:
            if addressee not in {TO_ALL, edge.number}:
                continue
            if not edge.is_inside:
                self._add(self._leaves(edge, visit), record, visit)
            elif isinstance(operator := self._operators[edge.child.name], ProcessOperator):
                self._visit(edge.child.name, _as(record, fixed_key=operator.fixed_key), visit)
            else:
                one = self._collect(name)
                self._add(one, record, visit)
                with self._placing(name, self._uptake):
                    batch = one.batch()
                self._process(edge.child.name, edge.slot, batch, visit)

    def _forward_all(self, name: str, made: Batch, visit: Visit) -> None:
        """Any other operator has made some records: one after the other takes all its ways."""
        if self._keeps_all and len(made):
            self._add(self._forwarded[name], made, visit)
        operator = self._operators[name]
        for row in range(len(made)):
            one = made.slice(row, row + 1)
            for edge in self._edges[name]:
                routed = isinstance(operator, RoutingOperator)
                sent = operator.sent_to(addressed_name(edge.child), one) if routed else one  # type: ignore[attr-defined]
                if len(sent):
                    self._send(edge, sent, visit)

    def _send(self, edge: _Edge, one: Batch, visit: Visit) -> None:
        child = edge.child.name
        if not edge.is_inside:
            self._add(self._leaves(edge, visit), one, visit)
        elif isinstance(operator := self._operators[child], ProcessOperator):
            for record in records_of(one, fixed_key=operator.fixed_key):
                self._visit(child, record, visit)
        else:
            self._process(child, edge.slot, one, visit)

    # --- what leaves the turn ------------------------------------------------------------------------------------

    def _leaves(self, edge: _Edge, visit: Visit) -> Records | Parts:
        """What one more result goes to, which leaves the turn along an edge."""
        leaving = self._leaving[edge.child.name, edge.slot]
        leaving.numbers.append(len(self._rows))
        self._rows.append(visit.sequence - self._uptake.first_sequence)
        return leaving

    def _leave(self, task: Uptake, number: int) -> None:
        """Numbers what has left the turn."""
        rows = np.array(self._rows, np.int64)
        numbering, numbers = results_numbered(rows, self._numbering, task, number)
        for name, edges in self._edges.items():
            with self._placing(name, self._uptake):
                for edge in edges:
                    if not edge.is_inside:
                        at = edge.child.name, edge.slot
                        leaving = self._leaving[at]
                        batch = replace(leaving.batch(), sequence=numbers[leaving.numbers])
                        self.sent[at] = Passing(batch, numbering)

    def _collect(self, name: str) -> Records | Parts:
        """Nothing so far, of what a node forwards."""
        operator = self._operators[name]
        if isinstance(operator, ProcessOperator):
            return Records(operator.nothing_forwarded(self._inputs[name][0]), operator.functions)
        return Parts(self._nothing[name])

    @staticmethod
    def _add(collected: Records | Parts, what: Any, visit: Visit) -> None:
        if isinstance(collected, Records):
            collected.add(what, visit.sequence)
        else:
            collected.parts.append(what)

    def _hand_over(self) -> None:
        for processor in self._processors:
            processor.hand_over()


def _as(record: FixedKeyRecord, *, fixed_key: bool) -> FixedKeyRecord:
    """The record as a processor of the one kind or the other gets it."""
    kind = FixedKeyRecord if fixed_key else Record
    if type(record) is kind:
        return record
    return kind(record.key, record.value, record.timestamp, record.headers)
