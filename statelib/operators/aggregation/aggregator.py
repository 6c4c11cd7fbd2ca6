"""What a running aggregation is: the state of all windows of a working set, by slot, and the results of each update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from statelib.operators.aggregation.accumulators.inputs import NO_SLOTS

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.records.batch import Batch

NONE_REMOVED = np.empty(0, dtype=np.bool_)


class Aggregator(Protocol):
    """The running aggregation of one working set. Rows (of the batch) and slots are int64 arrays."""

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of a stored row; None before the first batch."""

    @property
    def result_type(self) -> pa.DataType:
        """The type of a result; null before the first batch."""

    @property
    def may_remove(self) -> bool:
        """Whether `walk` may say that an update removes its window."""

    @property
    def may_be_null(self) -> bool:
        """Whether a result may be null, which deletes the aggregate from a table."""

    def prepare(self, batch: Batch) -> None:
        """Takes the batch whose rows `walk` will be about. It has at least one record."""

    def reserve(self, slots: int) -> None:
        """Makes room for ``slots`` slots; new ones are empty."""

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots``, numbered anew in their order."""

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        """Sets ``slots`` to stored rows."""

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        """The rows of ``slots``, to be stored."""

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        """The present results of ``slots``."""

    def initial(self) -> pa.Array:
        """One element: the result before any record (Kafka's ``Initializer``)."""

    def walk(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64] = NO_SLOTS,
        copied: NDArray[np.int64] = NO_SLOTS,
        *,
        remembers: bool = False,
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Adds the records ``rows`` of the prepared batch to ``slots``, in order.

        Args:
            rows: The record of each update, or `NO_ROW`: none is added.
            slots: The slot of each update.
            absorbed: For sessions, by update: the slot that is merged into the update's own before the record is
                added, else `NO_SLOT`. Empty for windows that never merge.
            copied: For sliding windows, by update: the slot that the update's own, a new one, begins as a copy of,
                else `NO_SLOT`. Empty for windows that are never copied.
            remembers: Whether `walked` will be asked for.

        Returns:
            The result after each update, and which updates remove the window (empty: none).
        """

    def walked(self) -> pa.StructArray:
        """The row to be stored after each update of the last `walk`, which was told to remember them."""

    def memory_bytes(self) -> int:
        """Size of the state."""
