"""Running aggregations by functions of SQL, columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.accumulators import NO_SLOTS, accumulator
from statelib.operators.aggregation.aggregator import NONE_REMOVED
from statelib.operators.aggregation.sql_functions import parts_of, shown
from statelib.operators.mappers.fields import columns_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators import Accumulator
    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.records.batch import Batch


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
        records = columns_for([of for _, function in self._functions for of in function.mappers], batch)
        self._columns = [function.column(records, self._node, batch.sequence) for _, function in self._functions]
        types = [
            None if function.of is None or column is None else column.type
            for (_, function), column in zip(self._functions, self._columns, strict=True)
        ]
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


def _names(types: list[pa.DataType | None]) -> str:
    return ", ".join("records" if type_ is None else str(type_) for type_ in types)
