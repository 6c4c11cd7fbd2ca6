"""Running aggregations of tables' changes, by slot; made by `statelib.operators.aggregation.table_definition`.

A change takes its old value back from the aggregate, if there is one, and adds its new value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.growing import grown
from statelib.columns.scatter import scatter
from statelib.errors.kinds import ConfigurationError, InputError, InternalError
from statelib.operators.aggregation.accumulators import NO_SLOTS, numbers_of
from statelib.operators.aggregation.per_record_aggregator import PerRecordAggregator, own
from statelib.operators.aggregation.table_kernel import (
    NO_CHANGE,
    existence,
    running_count_change,
    running_float_change,
    running_int_change,
)
from statelib.operators.mappers.python_values import items_of, python_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.records.batch import Batch


def stored_fields(functions: Sequence[tuple[str | None, Aggregation]]) -> list[tuple[str, str]]:
    """Names of the stored columns, and whether each is a ``sum`` or a ``count``."""
    fields = []
    for name, function in functions:
        if function.function == "count":
            fields.append((name or "value", "count"))
        else:
            fields += [(f"{name or 'value'}.{part}", part) for part in ("sum", "count")]
    return fields


def shown(functions: Sequence[tuple[str | None, Aggregation]], states: Iterable[pa.Array]) -> pa.Array:
    """The results of ``functions``, given their stored columns in order."""
    rest = iter(states)
    columns = []
    for _, function in functions:
        if function.function == "count":
            columns.append(next(rest))
            continue
        total, count = next(rest), next(rest)
        some = pc.if_else(pc.equal(count, 0), None, count)
        columns.append(
            pc.divide(total, some) if function.function == "mean" else pc.if_else(pc.is_valid(some), total, None)
        )
    names = [name for name, _ in functions]
    return columns[0] if names == [None] else pa.StructArray.from_arrays(columns, names)


@dataclass
class _State:
    """What one function has of all slots: how many values, and, unless it counts, their sum."""

    function: Aggregation
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sums: NDArray[Any] | None = None
    new: pa.Array | None = None
    old: pa.Array | None = None

    def bind(self, type_: pa.DataType | None) -> None:
        """Takes the type of what is aggregated.

        Raises:
            ConfigurationError: There is no such function of it.
        """
        if self.function.function == "count":
            return
        if type_ is None or not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_null(type_)):
            raise ConfigurationError(
                f"there is no {self.function.function} of {type_}",
                next_step="cast it to a number in a map_values(), or write it with aggregate_with()",
            )
        is_float = self.function.function == "mean" or pa.types.is_floating(type_)
        self.sums = np.zeros(0, dtype=np.float64 if is_float else np.int64)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """By slot: the sum, unless the function counts, and the count."""
        return [self.counts] if self.sums is None else [self.sums, self.counts]

    def replace(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        """Changes all arrays."""
        self.counts = change(self.counts)
        self.sums = None if self.sums is None else change(self.sums)

    def walk(
        self, rows: NDArray[np.int64], slots: NDArray[np.int64], takes_back: NDArray[np.bool_]
    ) -> list[pa.Array]:  # fmt: skip
        """The stored columns after each change."""
        added, taken = self.counted(rows)
        counts = np.empty(len(rows), dtype=np.int64)
        running_count_change(slots, takes_back, added, taken, self.counts, counts)
        if self.sums is None:
            return [pa.array(counts)]
        sums = np.empty(len(rows), dtype=self.sums.dtype)
        new, old = (numbers_of(column)[0].astype(sums.dtype)[rows] for column in (self.new, self.old))
        if sums.dtype == np.float64:
            running_float_change(slots, takes_back, new, old, counts, self.sums, sums)
        elif running_int_change(slots, takes_back, new, old, counts, self.sums, sums) != NO_CHANGE:
            raise InputError("a sum does not fit into 64 bits", next_step="sum up a float64 of it")
        return [pa.array(sums), pa.array(counts)]

    def counted(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many values, 1 or 0, each change adds and takes back."""
        if self.new is None or self.old is None:
            raise InternalError("an aggregation has no batch")
        new, old = (valid_of(column)[rows].astype(np.int64) for column in (self.new, self.old))
        return new, old


class ColumnarTableAggregator:
    """Functions of SQL over changes; see `statelib.operators.aggregation.aggregator.Aggregator`.

    Args:
        functions: Names of the results' fields, None for a result that is the value itself; and the functions.
        node: Named in errors.
    """

    may_remove = True
    may_be_null = True

    def __init__(self, functions: Sequence[tuple[str | None, Aggregation]], node: str) -> None:
        self._functions = functions
        self._node = node
        self._states = [_State(function) for _, function in functions]
        (first, function), *_ = functions
        self._may_be_emptied = first is None and function.function != "count"
        self._exists = np.zeros(0, dtype=np.bool_)
        self._has_new = np.zeros(0, dtype=np.bool_)
        self._types: list[pa.DataType | None] | None = None
        self._walked: list[pa.Array] = []
        self._reserved = 1
        self.schema: pa.Schema | None = None

    @property
    def result_type(self) -> pa.DataType:
        """See `Aggregator`."""
        return pa.null() if self.schema is None else self.initial().type

    def prepare(self, batch: Batch) -> None:
        """See `Aggregator`; the batch has prior values."""
        if batch.prior is None:
            raise InternalError("an aggregation of a table has no old values", node=self._node)
        self._has_new = valid_of(batch.value)
        old = replace(batch, value=batch.prior, prior=None)
        for state in self._states:
            state.new, state.old = (self._column(state.function, values) for values in (batch, old))
        types = [None if s.function.of is None or s.new is None else s.new.type for s in self._states]
        if self._types is None:
            for state, type_ in zip(self._states, types, strict=True):
                state.bind(type_)
            arrays = [array for state in self._states for array in state.arrays]
            names = [name for name, _ in stored_fields(self._functions)]
            self.schema = pa.schema([(n, pa.from_numpy_dtype(a.dtype)) for n, a in zip(names, arrays, strict=True)])
            self._types = types
            self.reserve(self._reserved)
        elif types != self._types:
            raise ConfigurationError(
                "the type of what is aggregated has changed",
                node=self._node,
                next_step="cast it to one type in a map_values()",
            )

    def _column(self, function: Aggregation, batch: Batch) -> pa.Array:
        """What the function is of, null where the batch's value is; mappers are not asked for those."""
        there = batch.value.is_valid()
        if not function.mappers:
            return pc.if_else(there, True, None)
        rows = np.asarray(there)
        columns = batch.as_record_batch().filter(there)
        return scatter(function.column(columns, self._node, batch.sequence[rows]), rows)

    def reserve(self, slots: int) -> None:
        """See `Aggregator`."""
        self._reserved = max(slots, 1)  # one even for nothing, which `initial` may look at
        self._exists = grown(self._exists, self._reserved)
        for state in self._states:
            state.replace(lambda array: grown(array, self._reserved))

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Aggregator`."""
        self._exists = self._exists[slots]
        for state in self._states:
            state.replace(lambda array: array[slots])

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        """See `Aggregator`; a null row: there is none."""
        self._exists[slots] = valid_of(rows)
        columns = iter(rows.flatten())
        for state in self._states:
            for array in state.arrays:
                array[slots] = np.asarray(next(columns).fill_null(0))

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        """See `Aggregator`; null where there is none."""
        return self._rows([pa.array(a[slots]) for s in self._states for a in s.arrays], self._exists[slots])

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        """See `Aggregator`."""
        return shown(self._functions, [pa.array(array[slots]) for state in self._states for array in state.arrays])

    def initial(self) -> pa.Array:
        """See `Aggregator`."""
        return shown(self._functions, [pa.array([0], field.type) for field in self.schema or ()])

    def walk(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64] = NO_SLOTS,
        copied: NDArray[np.int64] = NO_SLOTS,
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """See `Aggregator`: the changes ``rows`` of the prepared batch; aggregates by key never merge."""
        del absorbed, copied
        first = self._states[0]
        takes_back, exists = (np.empty(len(rows), dtype=np.bool_) for _ in range(2))
        existence(
            slots, self._has_new[rows], *first.counted(rows), self._may_be_emptied,
            self._exists, first.counts.copy(), takes_back, exists,
        )  # fmt: skip
        self._walked = [column for state in self._states for column in state.walk(rows, slots, takes_back)]
        result = shown(self._functions, self._walked)
        removed = ~exists
        if removed.any():
            result = result.take(pa.array(np.arange(len(result)), mask=removed))
        return result, removed

    def walked(self) -> pa.StructArray:
        """See `Aggregator`."""
        return self._rows(self._walked, np.ones(len(self._walked[0]), dtype=np.bool_))

    def memory_bytes(self) -> int:
        """See `Aggregator`."""
        return self._exists.nbytes + sum(array.nbytes for state in self._states for array in state.arrays)

    def _rows(self, columns: list[pa.Array], there: NDArray[np.bool_]) -> pa.StructArray:
        return pa.StructArray.from_arrays(columns, fields=list(self.schema or ()), mask=pa.array(~there))


class PerChangeAggregator(PerRecordAggregator):
    """Python functions, called for each change: aggregates are Python objects; None is one that is not there.

    Args:
        add: Of key, new value and aggregate: the next aggregate.
        take_back: Of key, old value and aggregate: the next aggregate.
        initializer: Gives the aggregate before the first value; None: there is none.
        arrow_type: The type of an aggregate; None: that of the values.
        functions: See `PerRecordAggregator`.
        node: Named in errors.
    """

    def __init__(
        self,
        add: Callable[[object, object, object], object],
        take_back: Callable[[object, object, object], object],
        initializer: Callable[[], object] | None,
        arrow_type: pa.DataType | None,
        *,
        functions: Sequence[object] = (),
        node: str | None = None,
    ) -> None:
        super().__init__(add, initializer, None, arrow_type, functions=functions, node=node)
        self._take_back = take_back
        self._old: pa.Array | None = None

    def prepare(self, batch: Batch) -> None:
        """See `Aggregator`; the batch has prior values."""
        super().prepare(batch)
        self._old = batch.prior

    def walk(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64] = NO_SLOTS,
        copied: NDArray[np.int64] = NO_SLOTS,
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """See `Aggregator`: the changes ``rows`` of the prepared batch; aggregates by key never merge."""
        del absorbed, copied
        batch = self._batch
        if batch is None or self._old is None:
            raise InternalError("an aggregation of a table has no old values")

        def sequence_of(change: int) -> int | None:
            return None if change >= len(rows) else int(batch.sequence[rows[change]])

        chosen = pa.array(rows)
        columns = (items_of(column.take(chosen)) for column in (batch.value, self._old))
        changes = zip(python_keys(batch.keys, chosen), *columns, slots.tolist(), strict=True)
        results: list[object] = []
        with self._calling(lambda _: sequence_of(len(results))):
            for key, new, old, slot in changes:
                aggregate = self._aggregates[slot]
                if old is not None and aggregate is not None:
                    aggregate = self._take_back(key, old, aggregate)
                if new is not None:
                    aggregate = self._step(key, new, aggregate)
                self._aggregates[slot] = aggregate
                results.append(own(aggregate))
        self._walked = self._column(results, sequence_of)
        return self._walked, ~valid_of(self._walked)
