"""A stream split into branches (Kafka's ``KStreamBranch``, KIP-418).

A record goes to the branch of the first predicate that is true for it; the later ones do not see it. One that no
predicate is true for goes to the default branch, or is dropped if there is none. A predicate that is null is
not true: see `holds`.

Kafka's processor names the child that a record is forwarded to; here `Split` marks each record with the number of its
branch, and a `Branch` below it takes its own. Account: ``forwarded``, of a split also ``unmatched``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.errors.kinds import InternalError
from statelib.operators.base import StorelessOperator, StorelessSpec
from statelib.operators.mappers.fields import both, fields_of_mapper
from statelib.operators.mappers.function_errors import among
from statelib.operators.mappers.mapping import Mapper, holds
from statelib.operators.stateless.operator import Stateless
from statelib.records.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.fields import Fields
    from statelib.records.batch import Uptake

NO_BRANCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBatch(Batch):
    """What a split forwards to its branches, and to nothing else.

    Attributes:
        branch: int64, one a record: the number of its branch, or `NO_BRANCH`.
    """

    branch: NDArray[np.int64]

    @classmethod
    def of(cls, batch: Batch, branch: NDArray[np.int64]) -> SplitBatch:
        """The batch with each record's branch."""
        return cls(**_columns(batch), branch=branch)

    def of_branch(self, number: int) -> Batch:
        """The records of one branch."""
        return Batch(**_columns(self)).filter(self.branch == number)


def _columns(batch: Batch) -> dict[str, Any]:
    return {column.name: getattr(batch, column.name) for column in fields(Batch)}


@dataclass(frozen=True, slots=True)
class Split(StorelessSpec):
    """Chooses each record's branch.

    Attributes:
        predicates: Of the branches 0, 1, 2, ...
        has_default: Whether the branch after the last one takes what is left.
    """

    predicates: tuple[Mapper, ...] = ()
    has_default: bool = False

    def build(self, context: OperatorContext) -> RunningSplit:
        """The running operator."""
        return RunningSplit(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and predicates in order."""
        predicates = [predicate.describe() for predicate in self.predicates]
        return {"operator": "split", "predicates": predicates, "has_default": self.has_default}

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent
        return both([*map(fields_of_mapper, self.predicates), wanted])


class RunningSplit(StorelessOperator):
    """The running operator."""

    def __init__(self, spec: Split, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> SplitBatch:
        """The records with their branches."""
        del uptake
        (batch,) = inputs
        branch = np.full(len(batch), NO_BRANCH, dtype=np.int64)
        left = np.arange(len(batch))
        for number, predicate in enumerate(self._spec.predicates):
            rest = batch.take(left)
            with among(branch == NO_BRANCH):
                is_chosen = holds(predicate, rest.as_record_batch(), self._context.node, rest.sequence)
            branch[left[is_chosen]] = number
            left = left[~is_chosen]
        if self._spec.has_default:
            branch[left] = len(self._spec.predicates)
            left = left[:0]
        metrics = self._context.metrics
        metrics.records_in += len(batch)
        metrics.records_out += len(batch) - len(left)
        metrics.account("forwarded", len(batch) - len(left))
        metrics.account("unmatched", len(left))
        return SplitBatch.of(batch, branch)


@dataclass(frozen=True, slots=True)
class Branch(StorelessSpec):
    """Takes the records of one branch from the `Split` above it.

    Attributes:
        number: The branch's.
    """

    number: int

    def build(self, context: OperatorContext) -> RunningBranch:
        """The running operator."""
        return RunningBranch(self.number, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and number."""
        return {"operator": "branch", "number": self.number}

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent
        return wanted


class RunningBranch(Stateless):
    """The running operator."""

    def __init__(self, number: int, context: OperatorContext) -> None:
        super().__init__(lambda batch: batch, context)
        self._number = number
        self._node = context.node

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The branch's records; the others are not in this node's ledger."""
        (split,) = inputs
        if not isinstance(split, SplitBatch):
            raise InternalError("a branch is no child of a split", node=self._node)
        return super().process((split.of_branch(self._number),), uptake)
