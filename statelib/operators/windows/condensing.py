"""Windows that are held or stored once: in an aggregation, for a reader that wants final results alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from statelib.operators.base import Operator

if TYPE_CHECKING:
    from statelib.operators.windows.stored_windows import StoredWindows, WindowsInStore
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
class StoringOperator(Operator, Protocol):
    """An operator on windows that forwards each change of a result, and stores no other results."""

    def in_store(self) -> StoredWindows | None:
        """Its windows, as they are once it has been flushed; None: it stores others than it forwards."""


@runtime_checkable
class FinalResultsReader(Operator, Protocol):
    """An operator that may do without the updates of windows: it wants their final results alone."""

    @property
    def takes_condensed(self) -> bool:
        """Whether it does."""

    def leave_in(self, windows: WindowsInMemory, in_store: WindowsInStore) -> None:
        """Has it take the results from there."""

    @property
    def may_refer(self) -> bool:
        """Whether it may leave windows, of which it gets the updates, to the store of a `StoringOperator`."""

    def refer_to(self, windows: StoredWindows) -> None:
        """Has it leave them there when it is flushed; called before the first batch."""
