"""Running aggregations: the state of all windows of a working set, by slot, and the results of each update.

Made by the specifications of `statelib.operators.aggregations`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.arrow_buffers import valid_of
from statelib.errors import ConfigurationError, InternalError
from statelib.kernels.aggregations import NO_ROW, NO_SLOT
from statelib.operators.accumulators import NO_SLOTS, accumulator
from statelib.operators.fields import columns_for
from statelib.operators.mapping import evaluate
from statelib.operators.python_values import column_of, items_of, python_keys
from statelib.operators.user_functions import calling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from statelib.batch import Batch
    from statelib.operators.accumulators import Accumulator
    from statelib.operators.aggregations import Aggregation

NONE_REMOVED = np.empty(0, dtype=np.bool_)
_BYTES_OF_AN_OBJECT = 64
"""What a small Python object and its place in a list take, roughly."""


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
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Adds the records ``rows`` of the prepared batch to ``slots``, in order.

        Args:
            rows: The record of each update, or `NO_ROW`: none is added.
            slots: The slot of each update.
            absorbed: For sessions, by update: the slot that is merged into the update's own before the record is
                added, else `NO_SLOT`. Empty for windows that never merge.
            copied: For sliding windows, by update: the slot that the update's own, a new one, begins as a copy of,
                else `NO_SLOT`. Empty for windows that are never copied.

        Returns:
            The result after each update, and which updates remove the window (empty: none).
        """

    def walked(self) -> pa.StructArray:
        """The row to be stored after each update of the last `walk`."""

    def memory_bytes(self) -> int:
        """Size of the state."""


class ColumnarAggregator:
    """Functions of SQL over accumulators; a mean is a sum and a count.

    Args:
        functions: Names of the results' fields, None for a result that is the value itself; and the functions.
        node: Named in errors.
    """

    may_remove = False

    def __init__(self, functions: Sequence[tuple[str | None, Aggregation]], node: str) -> None:
        self._functions = functions
        self._node = node
        self._types: list[pa.DataType | None] | None = None
        self._columns: list[pa.Array | None] = []
        self._accumulators: list[list[Accumulator]] = []
        self._reserved = 0
        self._walked: list[pa.Array] = []
        self.schema: pa.Schema | None = None
        self.result_type: pa.DataType = pa.null()
        """See `Aggregator`."""

    @property
    def may_be_null(self) -> bool:
        """See `Aggregator`: unless it is a struct, or a count."""
        return any(name is None and function.function != "count" for name, function in self._functions)

    def prepare(self, batch: Batch) -> None:
        """See `Aggregator`."""
        mappers = [function.of for _, function in self._functions]
        records = columns_for(mappers, batch)
        self._columns = [None if of is None else evaluate(of, records, self._node, batch.sequence) for of in mappers]
        types = [None if column is None else column.type for column in self._columns]
        if self._types is None:
            self._bind(types)
        elif types != self._types:
            raise ConfigurationError(
                f"the type of what is aggregated has changed from {_names(self._types)} to {_names(types)}",
                node=self._node,
                next_step="cast it to one type in a map_values()",
            )

    def _bind(self, types: list[pa.DataType | None]) -> None:
        fields = []
        for (name, function), type_ in zip(self._functions, types, strict=True):
            name_ = name or "value"
            parts = parts_of(function)
            made = [accumulator(part, type_) for part in parts]
            names = [f"{name_}.sum", f"{name_}.count"] if len(parts) > 1 else [name_]
            fields += [pa.field(part, made_.type) for part, made_ in zip(names, made, strict=True)]
            self._accumulators.append(made)
        self._types = types
        self.schema = pa.schema(fields)
        self.reserve(self._reserved)
        self.result_type = self.initial().type

    @property
    def _flat(self) -> list[Accumulator]:
        return [part for parts in self._accumulators for part in parts]

    def reserve(self, slots: int) -> None:
        """See `Aggregator`."""
        self._reserved = max(slots, 1)  # one even for nothing, which `initial` may look at
        for part in self._flat:
            part.reserve(self._reserved)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Aggregator`."""
        for part in self._flat:
            part.keep(slots)

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        """See `Aggregator`."""
        for part, states in zip(self._flat, rows.flatten(), strict=True):
            part.set(slots, states)

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        """See `Aggregator`."""
        return pa.StructArray.from_arrays([part.get(slots) for part in self._flat], fields=list(self.schema or ()))

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        """See `Aggregator`."""
        return shown(self._functions, [part.get(slots) for part in self._flat])

    def results_of(self, rows: pa.StructArray) -> pa.Array:
        """The results that stored rows stand for."""
        return shown(self._functions, rows.flatten())

    def initial(self) -> pa.Array:
        """See `Aggregator`."""
        return shown(self._functions, [pa.array([part.initial], part.type) for part in self._flat])

    def walk(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64] = NO_SLOTS,
        copied: NDArray[np.int64] = NO_SLOTS,
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """See `Aggregator`."""
        self._walked = [
            part.walk(rows, slots, absorbed if len(absorbed) else copied, column)
            for parts, column in zip(self._accumulators, self._columns, strict=True)
            for part in parts
        ]
        return shown(self._functions, self._walked), NONE_REMOVED

    @property
    def makes_no_nulls(self) -> bool:
        """Whether every value of the prepared batch makes a result that is not null."""
        return not any(column is not None and column.null_count for column in self._columns)

    def add(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """As `walk`, for windows that never merge, where nobody asks for the result after each update."""
        for parts, column in zip(self._accumulators, self._columns, strict=True):
            for part in parts:
                part.add(rows, slots, column)

    def walked(self) -> pa.StructArray:
        """See `Aggregator`."""
        return pa.StructArray.from_arrays(self._walked, fields=list(self.schema or ()))

    def memory_bytes(self) -> int:
        """See `Aggregator`."""
        return sum(part.memory_bytes() for part in self._flat)


def parts_of(function: Aggregation) -> list[str]:
    """The accumulators that a function is made of."""
    return ["float_sum", "count"] if function.function == "mean" else [function.function]


def shown(functions: Sequence[tuple[str | None, Aggregation]], states: Iterable[pa.Array]) -> pa.Array:
    """The results of ``functions``, given the states of all their accumulators in order."""
    rest = iter(states)
    columns = []
    for _, function in functions:
        first, *others = (next(rest) for _ in parts_of(function))
        columns.append(pc.divide(first, *others) if others else first)
    names = [name for name, _ in functions]
    return columns[0] if names == [None] else pa.StructArray.from_arrays(columns, names)


class PerRecordAggregator:
    """Python functions, called for each record: aggregates are Python objects; None is a window that is not there.

    Args:
        step: Of key, value and aggregate: the next aggregate.
        initializer: Gives the aggregate before the first record; None: there is none.
        merge: Of key and two aggregates of sessions: the merged one. None: windows never merge.
        arrow_type: The type of an aggregate; None: that of the values.
        functions: The user's own that these call, for errors; the one that gives aggregates first.
        node: Named in errors.
    """

    may_remove = True
    may_be_null = True

    def __init__(
        self,
        step: Callable[[object, object, object], object],
        initializer: Callable[[], object] | None,
        merge: Callable[[object, object, object], object] | None,
        arrow_type: pa.DataType | None,
        *,
        functions: Sequence[object] = (),
        node: str | None = None,
    ) -> None:
        self._functions = functions
        self._node = node
        self._step = step
        self._initializer = initializer
        self._merge = merge
        self._type = arrow_type
        self._aggregates: list[object] = []
        self._walked: pa.Array | None = None
        self._batch: Batch | None = None

    @property
    def schema(self) -> pa.Schema | None:
        """See `Aggregator`."""
        return None if self._type is None else pa.schema([pa.field("value", self._type)])

    @property
    def result_type(self) -> pa.DataType:
        """See `Aggregator`."""
        return self._type or pa.null()

    def prepare(self, batch: Batch) -> None:
        """See `Aggregator`."""
        self._batch = batch
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
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """See `Aggregator`."""
        batch = self._batch
        if batch is None:
            raise InternalError("an aggregation has no batch")
        chosen = pa.array(rows, mask=rows == NO_ROW)
        keys = python_keys(batch.keys, chosen)
        values = items_of(batch.value.take(chosen))
        results: list[object] = []

        def sequence_of(update: int) -> int | None:
            return None if update >= len(rows) or rows[update] == NO_ROW else int(batch.sequence[rows[update]])

        never = [None] * len(rows)
        others = zip(absorbed.tolist() or never, copied.tolist() or never, strict=True)
        with self._calling(lambda _: sequence_of(len(results))):
            for row, key, value, slot, (merged, copy_of) in zip(
                rows.tolist(), keys, values, slots.tolist(), others, strict=True
            ):
                before = self._before(key, slot, merged, copy_of)
                self._aggregates[slot] = before if row == NO_ROW else self._step(key, value, before)
                results.append(own(self._aggregates[slot]))
        column = self._walked = self._column(results, sequence_of)
        return column, ~valid_of(column) if column.null_count else NONE_REMOVED

    def walked(self) -> pa.StructArray:
        """See `Aggregator`."""
        return pa.StructArray.from_arrays([self._walked], fields=list(self.schema or ()))

    def _before(self, key: object, slot: int, absorbed: int | None, copied: int | None) -> object:
        """What a record is added to."""
        if absorbed is not None:
            return self._merged(key, slot, absorbed)
        return self._aggregates[slot] if copied in (None, NO_SLOT) else own(self._aggregates[copied])

    def _merged(self, key: object, slot: int, other: int) -> object:
        """For sessions; as in Kafka, the merger sees the initial aggregate first."""
        if self._merge is None:
            raise InternalError("an aggregation of sessions has no merger")
        merged = self._initial()
        for session in (slot, other):
            if session != NO_SLOT and self._aggregates[session] is not None:
                merged = self._merge(key, merged, self._aggregates[session])
        return merged

    def memory_bytes(self) -> int:
        """See `Aggregator`."""
        return len(self._aggregates) * _BYTES_OF_AN_OBJECT


def own(aggregate: object) -> object:
    """The aggregate as it is now, whatever a function does to its own later."""
    return copy.deepcopy(aggregate) if isinstance(aggregate, (list, dict, set, bytearray)) else aggregate


def _names(types: list[pa.DataType | None]) -> str:
    return ", ".join("records" if type_ is None else str(type_) for type_ in types)
