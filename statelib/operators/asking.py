"""Asks functions about a node's records, and goes on without those for which one fails, if the job does (KIP-1033).

A function is asked for many records at once. If it fails, it is asked again for parts, until it is known for which
records it fails alone (`statelib.operators.mappers.function_errors.all_that_fail`), and then for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.scatter import scatter
from statelib.operators.mappers.function_errors import UserFunctionError, among
from statelib.operators.mappers.mapping import evaluate, holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Batch


class Asking:
    """Some records, a row each, and for which of them a function has failed.

    Args:
        node: The node's name, for errors.
        sequence: int64, of each record.
        on_failure: Told of a record for which a function fails; None: the first error is raised.
    """

    def __init__(self, node: str, sequence: NDArray[np.int64], on_failure: OnFailure | None = None) -> None:
        self.failed = np.zeros(len(sequence), np.bool_)
        """By record: whether a function has failed for it. It is not asked about again."""
        self.reasons: dict[int, str] = {}
        """What is said of each of these."""
        self._node = node
        self._sequence = sequence
        self._on_failure = on_failure

    @classmethod
    def of(cls, context: OperatorContext, sequence: NDArray[np.int64]) -> Asking:
        """About records of an operator."""
        return cls(context.node, sequence, context.on_failure)

    def among(self, chosen: NDArray[np.bool_]) -> Asking:
        """About those of them that are ``chosen``."""
        return Asking(self._node, self._sequence[chosen], self._on_failure)

    def evaluate(self, of: Mapper, columns: pa.RecordBatch, there: NDArray[np.bool_] | None = None) -> pa.Array:
        """A mapper's column, null where it is not asked or has failed: see `statelib.operators.mappers.mapping`.

        Args:
            of: The mapper.
            columns: What it sees, a row by record.
            there: Which records it is asked about; None: all.
        """
        return self._asked(lambda some, sequence: evaluate(of, some, self._node, sequence), columns, there)

    def holds(self, predicate: Mapper, columns: pa.RecordBatch, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For which of the records a predicate is true that are ``there`` and for which it has not failed."""

        def held(some: pa.RecordBatch, sequence: NDArray[np.int64]) -> pa.Array:
            return pa.array(holds(predicate, some, self._node, sequence))

        return np.asarray(self._asked(held, columns, there).fill_null(False))

    def _asked(
        self,
        ask: Callable[[pa.RecordBatch, NDArray[np.int64]], pa.Array],
        columns: pa.RecordBatch,
        there: NDArray[np.bool_] | None,
    ) -> pa.Array:
        asked = ~self.failed if there is None else there & ~self.failed
        is_all = bool(asked.all())
        some = columns if is_all else columns.filter(pa.array(asked))
        try:
            with among(asked):
                return scatter(ask(some, self._sequence if is_all else self._sequence[asked]), asked)
        except UserFunctionError as error:
            self._leave_out(error)
        return self._asked(ask, columns, there)

    def _leave_out(self, error: UserFunctionError) -> None:
        found = failing_records(error, len(self.failed)) if self._on_failure is not None else {}
        if self._on_failure is None or not found:
            raise error
        for row, what in found.items():
            self.failed[row] = True
            self.reasons[row] = what
            self._on_failure(int(self._sequence[row]), what)


def tolerated(sequence: int, what: str) -> None:
    """Takes note of no record: for those who look at `Asking.failed` first."""
    del sequence, what


def failing_records(error: UserFunctionError, of: int) -> dict[int, str]:
    """What is said of each of ``of`` records for which a function has failed, by row; empty: it cannot be found out."""
    return {} if error.failing is None or error.failing.of != of else error.failing.found()


def called_first(call: Callable[[Batch], object], batch: Batch, context: OperatorContext) -> Batch:
    """Calls functions before anything is done with a batch.

    Args:
        call: Calls them for a batch; nothing has been done if it raises what one of them has.
        batch: The batch.
        context: The operator's: it is told of what goes no further.

    Returns:
        The batch without the records for which one fails.
    """
    while True:
        try:
            call(batch)
        except UserFunctionError as error:
            found = failing_records(error, len(batch)) if context.on_failure is not None else {}
            if context.on_failure is None or not found:
                raise
            for row, what in found.items():
                context.on_failure(int(batch.sequence[row]), what)
            context.metrics.records_in += len(found)
            batch = batch.take(np.setdiff1d(np.arange(len(batch)), [*found]))
        else:
            return batch
