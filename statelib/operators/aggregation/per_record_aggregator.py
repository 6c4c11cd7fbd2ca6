"""Running aggregations by the user's Python functions, a record at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.errors.kinds import InternalError
from statelib.operators.aggregation.accumulators.inputs import NO_SLOTS
from statelib.operators.aggregation.accumulators.kernel import NO_ROW, NO_SLOT
from statelib.operators.aggregation.aggregator import NONE_FAILED, NONE_REMOVED
from statelib.operators.aggregation.cogroup import items_of_streams
from statelib.operators.mappers.function_errors import UserFunctionError, calling
from statelib.operators.mappers.python_values import as_it_is, column_of, copier_of, items_of, own, python_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.records.batch import Batch

_BYTES_OF_AN_OBJECT = 64
"""What a small Python object and its place in a list take, roughly."""


class PerRecordAggregator:
    """Python functions, called for each record: aggregates are Python objects; None is a window that is not there.

    Args:
        step: Of key, value and aggregate: the next aggregate.
        initializer: Gives the aggregate before the first record; None: there is none.
        merge: Of key and two aggregates of sessions: the merged one. None: windows never merge.
        arrow_type: The type of an aggregate; None: that of the values.
        functions: The user's own that these call, for errors; the one that gives aggregates first.
        node: Named in errors.
        of_streams: Whether values are those of several streams: pairs of a stream's number and the value.
    """

    may_remove = True
    may_be_null = True
    failed = NONE_FAILED

    def __init__(
        self,
        step: Callable[[object, object, object], object],
        initializer: Callable[[], object] | None,
        merge: Callable[[object, object, object], object] | None,
        arrow_type: pa.DataType | None,
        *,
        functions: Sequence[object] = (),
        node: str | None = None,
        of_streams: bool = False,
    ) -> None:
        self._functions = functions
        self._node = node
        self._of_streams = of_streams
        self._step = step
        self._initializer = initializer
        self._merge = merge
        self._type = arrow_type
        self._aggregates: list[object] = []
        self._walked: pa.Array | None = None
        self._batch: Batch | None = None
        self._on_failure: OnFailure | None = None
        self._before_walk: list[tuple[int, object]] = []
        self.failed_at = 0
        """If the last walk has raised an error of a function's: its place among the updates."""
        self.failed_merging = False
        """And whether it was one that merges, or gives the initial aggregate of a merge."""

    @property
    def schema(self) -> pa.Schema | None:
        """See `Aggregator`."""
        return None if self._type is None else pa.schema([pa.field("value", self._type)])

    @property
    def result_type(self) -> pa.DataType:
        """See `Aggregator`."""
        return self._type or pa.null()

    def prepare(self, batch: Batch, on_failure: OnFailure | None = None) -> None:
        """See `Aggregator`."""
        self._batch, self._on_failure = batch, on_failure
        self._type = self._type or batch.value.type

    def reserve(self, slots: int) -> None:
        """See `Aggregator`."""
        self._aggregates += [None] * (slots - len(self._aggregates))

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Aggregator`."""
        self._aggregates = [self._aggregates[slot] for slot in slots]

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        """See `Aggregator`."""
        for slot, value in zip(slots.tolist(), rows.field(0).to_pylist(), strict=True):
            self._aggregates[slot] = value

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        """See `Aggregator`."""
        return pa.StructArray.from_arrays([self.results(slots)], fields=list(self.schema or ()))

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        """See `Aggregator`."""
        return self._column([self._aggregates[slot] for slot in slots])

    def initial(self) -> pa.Array:
        """See `Aggregator`."""
        with self._calling(lambda _: None):
            initial = self._initial()
        return self._column([initial])

    def _calling(self, sequence: Callable[[BaseException], int | None]) -> AbstractContextManager[None]:
        return calling("a function that aggregates", self._functions, node=self._node, sequence=sequence)

    def _column(self, aggregates: list[object], sequence_of: Callable[[int], int | None] | None = None) -> pa.Array:
        step = "declare the type that the function gives, or, for a reducer, map the values to a wider type before"
        return column_of(
            aggregates,
            self.result_type,
            who="an aggregation has come to",
            next_step=step,
            functions=self._functions,
            sequence_of=sequence_of,
        )

    def _initial(self) -> object:
        return self._initializer() if self._initializer else None

    def walk(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64] = NO_SLOTS,
        copied: NDArray[np.int64] = NO_SLOTS,
        *,
        remembers: bool = False,
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """See `Aggregator`."""
        del remembers
        batch = self._batch
        if batch is None:
            raise InternalError("an aggregation has no batch")
        chosen = pa.array(rows, mask=rows == NO_ROW)
        keys = python_keys(batch.keys, chosen)
        values = items_of_streams(batch, chosen) if self._of_streams else items_of(batch.value.take(chosen))
        results: list[object] = []
        copied_now = copier_of(self.result_type)
        own_now = copied_now if self._on_failure is not None else as_it_is

        def sequence_of(update: int) -> int | None:
            return self._sequence_of(rows, update)

        updates = zip(rows.tolist(), keys, values, slots.tolist(), strict=True)
        if len(absorbed) or len(copied):
            never = [None] * len(rows)
            others = zip(absorbed.tolist() or never, copied.tolist() or never, strict=True)
            self._before_walk = []
            with self._calling(lambda _: sequence_of(len(results))):
                for (row, key, value, slot), (merged, copy_of) in zip(updates, others, strict=True):
                    self.failed_at = len(results)
                    self._before_walk.append((slot, self._aggregates[slot]))
                    before = self._before(key, slot, merged, copy_of, own_now)
                    self._aggregates[slot] = before if row == NO_ROW else self._step(key, value, before)
                    results.append(copied_now(self._aggregates[slot]))
        else:  # as for all but sessions and sliding windows, in two thirds of the time
            aggregates, step, add = self._aggregates, self._step, results.append

            def go_on() -> None:
                for row, key, value, slot in updates:
                    if row != NO_ROW:
                        aggregates[slot] = step(key, value, own_now(aggregates[slot]))
                    add(copied_now(aggregates[slot]))

            self._each(go_on, updates, results, rows, slots)
        column = self._walked = self._column(results, sequence_of)
        return column, ~valid_of(column) if column.null_count else NONE_REMOVED

    def _each(
        self,
        go_on: Callable[[], None],
        updates: Iterator[object],
        results: list[object],
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
    ) -> None:
        """Makes updates, but none of a record for which a function has failed already.

        Args:
            go_on: Makes those that are left of ``updates``.
            updates: A row each.
            results: The result after each; grows.
            rows: The record of each.
            slots: The slot of each.
        """
        self.failed, copied_now = NONE_FAILED, copier_of(self.result_type)
        while len(results) < len(rows):
            try:
                with self._calling(lambda _: self._sequence_of(rows, len(results))):
                    go_on()
            except UserFunctionError as error:
                if self._on_failure is None or error.sequence is None:
                    raise
                self._on_failure(error.sequence, error.what)
                self.failed = np.zeros(len(rows), np.bool_) if self.failed is NONE_FAILED else self.failed
                row = rows[len(results)]
                self.failed[len(results)] = True
                results.append(copied_now(self._aggregates[slots[len(results)]]))
                while len(results) < len(rows) and rows[len(results)] == row:
                    next(updates)
                    self.failed[len(results)] = True
                    results.append(copied_now(self._aggregates[slots[len(results)]]))

    def _sequence_of(self, rows: NDArray[np.int64], update: int) -> int | None:
        """The sequence of the record of an update."""
        if self._batch is None or update >= len(rows) or rows[update] == NO_ROW:
            return None
        return int(self._batch.sequence[rows[update]])

    def undo(self) -> None:
        """Takes back what the last walk has done, which has merged or copied."""
        for slot, before in reversed(self._before_walk):
            self._aggregates[slot] = before

    def walked(self) -> pa.StructArray:
        """See `Aggregator`."""
        return pa.StructArray.from_arrays([self._walked], fields=list(self.schema or ()))

    def _before(
        self, key: object, slot: int, absorbed: int | None, copied: int | None, own_now: Callable[[Any], Any]
    ) -> object:
        """What a record is added to; ``own_now``: makes it the function's own, if that may fail in the midst of it."""
        if absorbed is not None:
            return self._merged(key, slot, absorbed, own_now)
        return own_now(self._aggregates[slot]) if copied in (None, NO_SLOT) else own(self._aggregates[copied])

    def _merged(self, key: object, slot: int, other: int, own_now: Callable[[Any], Any]) -> object:
        """For sessions; as in Kafka, the merger sees the initial aggregate first."""
        if self._merge is None:
            raise InternalError("an aggregation of sessions has no merger")
        self.failed_merging = True
        merged = self._initial()
        for session in (slot, other):
            if session != NO_SLOT and self._aggregates[session] is not None:
                merged = self._merge(key, merged, own_now(self._aggregates[session]))
        self.failed_merging = False
        return merged

    def memory_bytes(self) -> int:
        """See `Aggregator`."""
        return len(self._aggregates) * _BYTES_OF_AN_OBJECT
