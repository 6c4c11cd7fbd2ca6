"""Running aggregations of tables' changes, by slot; made by `statelib.operators.aggregation.table_definition`.

A change takes its old value back from the aggregate, if there is one, and adds its new value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.growing import grown
from statelib.columns.scatter import scatter
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.operators.aggregation.accumulators.inputs import NO_SLOTS
from statelib.operators.aggregation.accumulators.table_kernel import existence
from statelib.operators.aggregation.accumulators.table_numbers import Changes, TableAccumulator
from statelib.operators.aggregation.aggregator import NONE_FAILED
from statelib.operators.aggregation.function_states import table_names_of, table_shown
from statelib.operators.aggregation.per_record_aggregator import PerRecordAggregator
from statelib.operators.aggregation.table_function_accumulators import table_accumulator
from statelib.operators.mappers.function_errors import among
from statelib.operators.mappers.python_values import as_it_is, copier_of, items_of, python_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.records.batch import Batch


class ColumnarTableAggregator:
    """Functions of SQL over changes; see `statelib.operators.aggregation.aggregator.Aggregator`.

    Args:
        functions: Names of the results' fields, None for a result that is the value itself; and the functions.
        node: Named in errors.
    """

    may_remove = True
    may_be_null = True
    failed = NONE_FAILED

    def __init__(self, functions: Sequence[tuple[str | None, Aggregation]], node: str) -> None:
        self._functions = functions
        self._node = node
        self._states: list[TableAccumulator] = []
        self._columns: list[tuple[pa.Array, pa.Array]] = []  # of each function, what is added and taken back
        (first, function), *_ = functions
        self._may_be_emptied = first is None and not function.is_count
        self._exists = np.zeros(0, dtype=np.bool_)
        self._has_new = np.zeros(0, dtype=np.bool_)
        self._sequence = np.zeros(0, dtype=np.int64)
        self._types: list[pa.DataType | None] | None = None
        self._reserved = 1
        self.schema: pa.Schema | None = None

    @property
    def result_type(self) -> pa.DataType:
        """See `Aggregator`."""
        return pa.null() if self.schema is None else self.initial().type

    def prepare(self, batch: Batch, on_failure: OnFailure | None = None) -> None:
        """See `Aggregator`; the batch has prior values."""
        del on_failure
        if batch.prior is None:
            raise InternalError("an aggregation of a table has no old values", node=self._node)
        self._has_new, self._sequence = valid_of(batch.value), batch.sequence
        old = replace(batch, value=batch.prior, prior=None)
        functions = [function for _, function in self._functions]
        self._columns = [(self._column(function, batch), self._column(function, old)) for function in functions]
        types = [
            None if function.of is None else new.type
            for function, (new, _) in zip(functions, self._columns, strict=True)
        ]
        if self._types is None:
            self._states = [table_accumulator(f, type_) for f, type_ in zip(functions, types, strict=True)]
            names = [column for name, function in self._functions for column in table_names_of(name, function)]
            columns = [type_ for state in self._states for type_ in state.types]
            self.schema = pa.schema([*zip(names, columns, strict=True)])
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
        with among(rows):
            of, _ = function.inputs(columns, self._node, batch.sequence[rows])
        return scatter(of, rows)

    def reserve(self, slots: int) -> None:
        """See `Aggregator`."""
        self._reserved = max(slots, 1)  # one even for nothing, which `initial` may look at
        self._exists = grown(self._exists, self._reserved)
        for state in self._states:
            state.reserve(self._reserved)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Aggregator`."""
        self._exists = self._exists[slots]
        for state in self._states:
            state.keep(slots)

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        """See `Aggregator`; a null row: there is none."""
        self._exists[slots] = valid_of(rows)
        columns = iter(rows.flatten())
        for state in self._states:
            state.set(slots, [next(columns) for _ in state.types])

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        """See `Aggregator`; null where there is none."""
        return self._rows([column for state in self._states for column in state.get(slots)], self._exists[slots])

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        """See `Aggregator`."""
        return table_shown(self._functions, [state.shown(slots) for state in self._states])

    def initial(self) -> pa.Array:
        """See `Aggregator`."""
        nothing = [
            [
                pa.array([None if pa.types.is_binary(type_) or pa.types.is_list(type_) else 0], type_)
                for type_ in state.types
            ]
            for state in self._states
        ]
        return table_shown(self._functions, nothing)

    def walk(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64] = NO_SLOTS,
        copied: NDArray[np.int64] = NO_SLOTS,
        *,
        remembers: bool = False,
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """See `Aggregator`: the changes ``rows`` of the prepared batch; aggregates by key never merge."""
        del absorbed, copied
        takes_back, exists = (np.empty(len(rows), dtype=np.bool_) for _ in range(2))
        to = (slots, takes_back, self._sequence[rows])
        changes = [self._changes(columns, pa.array(rows), *to, remembers=remembers) for columns in self._columns]
        first = changes[0]
        existence(
            slots, self._has_new[rows], first.added, first.taken, self._may_be_emptied,
            self._exists, self._states[0].counts.copy(), takes_back, exists,
        )  # fmt: skip
        states = [state.walk(made) for state, made in zip(self._states, changes, strict=True)]
        result = table_shown(self._functions, states)
        removed = ~exists
        if removed.any():
            result = result.take(pa.array(np.arange(len(result)), mask=removed))
        return result, removed

    def _changes(
        self,
        columns: tuple[pa.Array, pa.Array],
        rows: pa.Array,
        slots: NDArray[np.int64],
        takes_back: NDArray[np.bool_],
        sequence: NDArray[np.int64],
        *,
        remembers: bool,
    ) -> Changes:
        new, old = (column.take(rows) for column in columns)
        added, taken = (valid_of(column).astype(np.int64) for column in (new, old))
        return Changes(slots, takes_back, new, old, added, taken, sequence, remembers)

    def walked(self) -> pa.StructArray:
        """See `Aggregator`."""
        columns = [column for state in self._states for column in state.walked()]
        return self._rows(columns, np.ones(len(columns[0]), dtype=np.bool_))

    def memory_bytes(self) -> int:
        """See `Aggregator`."""
        return self._exists.nbytes + sum(state.memory_bytes() for state in self._states)

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

    def prepare(self, batch: Batch, on_failure: OnFailure | None = None) -> None:
        """See `Aggregator`; the batch has prior values."""
        super().prepare(batch, on_failure)
        self._old = batch.prior

    def walk(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64] = NO_SLOTS,
        copied: NDArray[np.int64] = NO_SLOTS,
        *,
        remembers: bool = False,
    ) -> tuple[pa.Array, NDArray[np.bool_]]:
        """See `Aggregator`: the changes ``rows`` of the prepared batch; aggregates by key never merge."""
        del absorbed, copied, remembers
        batch = self._batch
        if batch is None or self._old is None:
            raise InternalError("an aggregation of a table has no old values")

        chosen = pa.array(rows)
        columns = (items_of(column.take(chosen)) for column in (batch.value, self._old))
        changes = zip(python_keys(batch.keys, chosen), *columns, slots.tolist(), strict=True)
        results: list[object] = []
        copied_now = copier_of(self.result_type)
        own_now = copied_now if self._on_failure is not None else as_it_is

        def go_on() -> None:
            for key, new, old, slot in changes:
                aggregate = own_now(self._aggregates[slot])
                if old is not None and aggregate is not None:
                    aggregate = self._take_back(key, old, aggregate)
                if new is not None:
                    aggregate = self._step(key, new, aggregate)
                self._aggregates[slot] = aggregate
                results.append(copied_now(aggregate))

        self._each(go_on, changes, results, rows, slots)
        self._walked = self._column(results, lambda change: self._sequence_of(rows, change))
        return self._walked, ~valid_of(self._walked)
