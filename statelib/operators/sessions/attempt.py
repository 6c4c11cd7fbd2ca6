"""Adds records to sessions or sliding windows for an attempt, which is undone if a function of the user's fails.

Which windows there are for a record depends on those before it. So the records up to the one for which a function fails
are taken up again, then what that one leaves behind, and then the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from statelib.operators.aggregation.per_record_aggregator import PerRecordAggregator

if TYPE_CHECKING:
    from statelib.operators.aggregation.aggregator import Aggregator
    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.function_errors import OnFailure, UserFunctionError
    from statelib.operators.sessions.keyed_slots_kernel import KeyedSlots


class Attempt:
    """The windows as they are when it is made, if it may have to be undone.

    Args:
        aggregator: Has their aggregates.
        slots: Has the windows.
        on_failure: Told of a record for which a function fails; None: nothing is undone.
    """

    def __init__(self, aggregator: Aggregator, slots: KeyedSlots, on_failure: OnFailure | None) -> None:
        self._aggregator = aggregator if isinstance(aggregator, PerRecordAggregator) else None
        self._on_failure = on_failure
        self._restore = slots.saved() if on_failure is not None and self._aggregator is not None else None
        self.failed_at = 0
        """Of the updates: where it has failed."""
        self.is_merging = False
        """Whether the function that has failed merges."""

    @classmethod
    def of(cls, aggregator: Aggregator, slots: KeyedSlots, context: OperatorContext) -> Self:
        """For an operator's records."""
        return cls(aggregator, slots, context.on_failure)

    def undo(self, error: UserFunctionError) -> None:
        """Makes everything as it was.

        Raises:
            UserFunctionError: ``error``: the first one ends the run, or it is not of a record.
        """
        if self._restore is None or self._aggregator is None or error.sequence is None:
            raise error
        self._restore()
        self._aggregator.undo()
        self.failed_at, self.is_merging = self._aggregator.failed_at, self._aggregator.failed_merging

    def leave_out(self, error: UserFunctionError) -> None:
        """Tells of the record."""
        if self._on_failure is not None and error.sequence is not None:
            self._on_failure(error.sequence, error.what)
