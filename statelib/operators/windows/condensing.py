"""Windows that are held once: an aggregation leaves its updates out for a reader that wants final results alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from statelib.operators.base import Operator

if TYPE_CHECKING:
    from statelib.operators.windows.stored_windows import WindowsInStore
    from statelib.operators.windows.working_set import WindowsInMemory


@runtime_checkable
class CondensingOperator(Operator, Protocol):
    """An operator on windows that need not forward updates to a reader that wants final results alone."""

    def condense(self) -> tuple[WindowsInMemory, WindowsInStore] | None:
        """Has it forward, from now on, no updates but their `Passage`; called before the first batch.

        Its only reader is a `FinalResultsReader`.

        Returns:
            Where the reader finds the windows and their results: until this operator is flushed in memory, then in its
            store. None: it cannot, and forwards its updates.
        """


@runtime_checkable
class FinalResultsReader(Operator, Protocol):
    """An operator that may do without the updates of windows: it wants their final results alone."""

    @property
    def takes_condensed(self) -> bool:
        """Whether it does."""

    def leave_in(self, windows: WindowsInMemory, in_store: WindowsInStore) -> None:
        """Has it take the results from there."""
