"""What a running aggregation is: the state of all windows of a working set, by slot, and the results of each update."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.operators.aggregation.accumulators.inputs import NO_SLOTS
from statelib.operators.asking import called_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.aggregation.prior_results import Priors
    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.records.batch import Batch

NONE_REMOVED = np.empty(0, dtype=np.bool_)
NONE_FAILED = NONE_REMOVED


def prepared(aggregator: Aggregator, batch: Batch, context: OperatorContext) -> Batch:
    """Gives an aggregator a batch; gives it back without the records for which a mapper fails: it has not seen them."""
    return called_first(lambda some: aggregator.prepare(some, context.on_failure), batch, context)


class Walked(NamedTuple):
    """Updates that were made, in order, as columns.

    Attributes:
        rows: int64, the record of each.
        slots: int64, its slot.
        result: The result after it.
        removed: bool, whether it removes the window (empty: none does).
        prior: What the result replaces; None: nobody asks.
        rows_to_store: The row to be stored after it; None: nobody asks.
        failed_rows: int64, the records for which a function has failed.
    """

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    result: pa.Array
    removed: NDArray[np.bool_]
    prior: pa.Array | None
    rows_to_store: pa.StructArray | None
    failed_rows: NDArray[np.int64]


def walked(
    aggregator: Aggregator,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    priors: Priors | None,
    *,
    remembers: bool,
) -> Walked:
    """Adds records to slots, and gives the updates for which no function has failed.

    Args:
        aggregator: Has taken the batch.
        rows: See `Aggregator.walk`, as ``slots`` and ``remembers``.
        slots: See there.
        priors: Gives what results replace: see `statelib.operators.aggregation.prior_results`.
        remembers: See there.
    """
    result, removed = aggregator.walk(rows, slots, remembers=remembers)
    to_store = aggregator.walked() if remembers else None
    prior = None if priors is None else priors(result, removed)
    made = Walked(rows, slots, result, removed, prior, to_store, rows[:0])
    if not aggregator.failed.any():
        return made
    kept = ~aggregator.failed
    chosen = pa.array(kept)
    return Walked(
        rows[kept],
        slots[kept],
        result.filter(chosen),
        removed[kept] if len(removed) else removed,
        None if prior is None else prior.filter(chosen),
        None if to_store is None else to_store.filter(chosen),
        np.unique(rows[~kept]),
    )


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

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which updates of the last walk a function has failed for: they have changed nothing (empty: none)."""

    def prepare(self, batch: Batch, on_failure: OnFailure | None = None) -> None:
        """Takes the batch whose rows `walk` will be about. It has at least one record.

        Args:
            batch: The batch.
            on_failure: Told of a record for which a function fails that `walk` calls; of the record's further updates
                none is made. None: the error is raised. So it is where windows are merged or copied.
        """

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
