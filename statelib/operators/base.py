"""What every operator is: a specification that travels, and the running operator that it builds in a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from statelib.operators.mappers.fields import ALL
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.changelog import Changelog
    from statelib.operators.late_records import LateRecords
    from statelib.operators.mappers.fields import Fields
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.records.batch import Batch, Uptake
    from statelib.records.key_table import KeyTable
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.spec import StoreSpec


@dataclass(slots=True)
class OperatorContext:
    """What a task gives an operator to work with.

    Attributes:
        node: The node's name in the topology.
        backend: The task's one RocksDB (or memory).
        keys: The dictionary of the task's record keys, shared by all its operators; cleared by the task together with
            all working sets.
        metrics: The node's ledger and figures.
        clocks: The node's clocks as of the last commit, by name; what the operator sets here is saved with the state.
        semantics: See `Semantics`.
        sources: The task's source topics, by `Uptake.source`.
        late: Takes the records that are dropped because they are late; None: the job has no topic for them.
        task_id: ``<sub-topology>_<partition>``.
        children: The names of the nodes that take what it forwards.
        changelogs: By name, the changelogs of stores that have one.
        wanted: The fields of the values it forwards that others look at (`statelib.operators.mappers.fields`).
        shared: What operators of the task share, by name.
        in_turns: Whether its visits alternate with those of others (`statelib.topology.turns`).
        clocks_of: The clocks of all nodes of the task, for those that look into their stores.
        is_looked_into: Whether others look into the node's table.
        on_failure: Told of a record for which a function fails, which is left out then; None: its error ends the run.
    """

    node: str
    backend: Backend
    keys: KeyTable
    metrics: NodeMetrics
    clocks: dict[str, int] = field(default_factory=dict)
    semantics: Semantics = "kip"
    sources: Sequence[str] = ()
    late: LateRecords | None = None
    task_id: str = "0_0"
    children: Sequence[str] = ()
    changelogs: Mapping[str, Changelog] = field(default_factory=dict)
    wanted: Fields = ALL
    shared: dict[str, Any] = field(default_factory=dict)
    in_turns: bool = False
    clocks_of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_looked_into: bool = False
    on_failure: OnFailure | None = None

    def clock(self, name: str = "stream_time") -> int:
        """A clock of this node, `NO_TIMESTAMP` if it has never moved."""
        return self.clocks.get(name, NO_TIMESTAMP)

    def drop_late(
        self,
        batch: Batch,
        late: NDArray[np.int64],
        uptake: Uptake,
        lateness_ms: NDArray[np.int64],
        *,
        reason: str,
        clock: str = "stream_time",
        account: str = "late",
    ) -> None:
        """Says that records are dropped because they are late: accounts for them, keeps them aside if the job asks.

        Args:
            batch: Any records; those that are not late are not looked at.
            late: int64, which of them are dropped, whole. (A record that some windows still take is not.)
            uptake: What the batch was processed with.
            lateness_ms: int64, one a record: what the clock said minus the record's timestamp.
            reason: Why, in a word or two for people: ``window closed``.
            clock: The clock's name.
            account: Of the ledger.
        """
        dropped = len(late)
        self.metrics.drop(account, dropped)
        if dropped and self.late is not None:
            records = batch.take(late)
            clock_ms = records.timestamp + lateness_ms[late]
            self.late.add(self.node, records, uptake, clock_ms=clock_ms, clock=clock, reason=reason)
            self.metrics.count("late-record-to-topic", dropped)


class Operator(Protocol):
    """A running operator of one task: takes batches, keeps a working set over the task's stores."""

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """Takes up one batch from each parent (any may be empty) and gives what goes to the children.

        All inputs belong to the same run of source records, ``uptake``. An operator with several inputs sees them in
        order of sequence, ties in the order of its parents.
        """

    def flush(self, write: WriteBatch) -> None:
        """Adds every change since the last flush to ``write`` and forgets the working set.

        Whoever reads an operator is flushed before it: see `CondensingOperator`.
        """

    def memory_bytes(self) -> int:
        """Size of the working set; at best as it will be after another batch like the last.

        Who spills before arrays grow, which takes twice their memory for a while, need not copy what is about to go.
        """


@runtime_checkable
class CallingFirst(Operator, Protocol):
    """An operator that calls the user's functions before it does anything: if one fails, nothing has been done."""

    calls_first: ClassVar[bool]


class StorelessOperator:
    """Base of the running operators that keep nothing."""

    calls_first: ClassVar[bool] = True

    def flush(self, write: WriteBatch) -> None:
        """Nothing to write."""

    def memory_bytes(self) -> int:
        """Nothing is kept."""
        return 0


@runtime_checkable
class HoldingOperator(Operator, Protocol):
    """An operator that may hold results back: the others have nothing to let go at the end of the input."""

    def seal(self, nothing: Sequence[Batch]) -> Batch:
        """Lets everything go that waits, as if stream time went on for ever; called once, after the last batch.

        Args:
            nothing: An empty batch from each parent, for its types.

        Returns:
            The records in the order in which they would have left. Their ``sequence`` is (here, and only here) the
            stream time at which each would have, in ms, ascending. Accounted for as any that leave.
        """


@runtime_checkable
class SpillingOperator(Operator, Protocol):
    """An operator that can forget what outgrows memory without writing it to its store before the next flush."""

    def spill(self, file: Path, write: WriteBatch) -> None:
        """Forgets the working set.

        Args:
            file: Not there yet. Whoever writes it has it for itself; what is left of it dies with the task.
            write: Takes what is written to the store all the same.

        Raises:
            OSError: The file cannot be written or removed.
        """


@runtime_checkable
class RoutingOperator(Operator, Protocol):
    """An operator that does not send everything to all its children."""

    def sent_to(self, child: str, forwarded: Batch) -> Batch:
        """Of what `process` has just given, what goes to the child of that name (of ``context.children``)."""


class Told(NamedTuple):
    """What those are told that look into a table which is not what it forwards.

    Attributes:
        changes: Of what they see, in order; sequences as of what is forwarded.
        behind: int64, for each: it comes behind all that the forwarded record of this number causes; -1: before that of
            the first one. Ascending.
    """

    changes: Batch
    behind: NDArray[np.int64]


@runtime_checkable
class ViewedOperator(Operator, Protocol):
    """An operator that tells those who look into its table something else than it forwards."""

    def told(self, forwarded: Batch) -> Told:
        """What they are told beside what has just been ``forwarded``; only asked if there are any."""


@runtime_checkable
class ClosingOperator(Operator, Protocol):
    """An operator that holds something beside its state, which nobody else lets go of."""

    def close(self) -> None:
        """Lets go of it: no more is asked of the operator."""


@runtime_checkable
class WindowedOperator(Operator, Protocol):
    """An operator that keeps windows."""

    def open_windows(self) -> int:
        """How many of its windows still take records; asked for when all that was flushed has been written."""


class OperatorSpec(Protocol):
    """An operator's parameters: immutable, picklable, the part of the topology that the fingerprint covers."""

    def build(self, context: OperatorContext) -> Operator:
        """The running operator for one task."""

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters as plain data (JSON), for the fingerprint and for people."""

    def state_stores(self) -> Sequence[StoreSpec]:
        """The stores that it writes; empty for a stateless operator."""


class StorelessSpec:
    """Base of the parameters of operators that write no store: they have none, or read what belongs to a table."""

    __slots__ = ()

    def state_stores(self) -> Sequence[StoreSpec]:
        """None."""
        return ()


@runtime_checkable
class NullKeySpec(OperatorSpec, Protocol):
    """An operator that may do something with records without a key; the others drop them."""

    @property
    def takes_null_keys(self) -> bool:
        """Whether it does; then a repartition before it keeps them (`statelib.dsl.null_keys`)."""


@runtime_checkable
class CheckedSpec(OperatorSpec, Protocol):
    """An operator's parameters that may not go together; a topology with such ones is refused when it is built."""

    def check(self, node: str) -> None:
        """Looks whether they do; ``node`` is the node's name.

        Raises:
            ConfigurationError: They do not. It says how to mend that.
        """
