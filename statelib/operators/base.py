"""What every operator is: a specification that travels, and the running operator that it builds in a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from statelib.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.batch import Batch, Uptake
    from statelib.kernels.key_table import KeyTable
    from statelib.metrics import NodeMetrics
    from statelib.semantics import Semantics
    from statelib.stores.backend import Backend, WriteBatch


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
    """

    node: str
    backend: Backend
    keys: KeyTable
    metrics: NodeMetrics
    clocks: dict[str, int] = field(default_factory=dict)
    semantics: Semantics = "kip"
    sources: Sequence[str] = ()

    def clock(self, name: str = "stream_time") -> int:
        """A clock of this node, `NO_TIMESTAMP` if it has never moved."""
        return self.clocks.get(name, NO_TIMESTAMP)


class Operator(Protocol):
    """A running operator of one task: takes batches, keeps a working set over the task's stores."""

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """Takes up one batch from each parent (any may be empty) and gives what goes to the children.

        All inputs belong to the same run of source records, ``uptake``. An operator with several inputs sees them in
        order of sequence, ties in the order of its parents.
        """

    def flush(self, write: WriteBatch) -> None:
        """Adds every change since the last flush to ``write`` and forgets the working set."""

    def memory_bytes(self) -> int:
        """Size of the working set."""


class OperatorSpec(Protocol):
    """An operator's parameters: immutable, picklable, the part of the topology that the fingerprint covers."""

    def build(self, context: OperatorContext) -> Operator:
        """The running operator for one task."""

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters as plain data (JSON), for the fingerprint and for people."""

    def families(self) -> Sequence[str]:
        """The backend families that belong to it; empty for a stateless operator."""
