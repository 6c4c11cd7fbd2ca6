"""Running aggregations by functions of SQL, columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from statelib.columns.arrow_buffers import fixed_width
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.accumulators.collecting import CollectAccumulator
from statelib.operators.aggregation.accumulators.inputs import NO_SLOTS, Inputs, Updates
from statelib.operators.aggregation.aggregator import NONE_FAILED, NONE_REMOVED
from statelib.operators.aggregation.cogroup import inputs_of_streams
from statelib.operators.aggregation.function_accumulators import accumulators
from statelib.operators.aggregation.function_states import by_function, names_of, shown
from statelib.operators.aggregation.sql_functions import inputs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.aggregation.accumulators.numbers import Accumulator
    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.records.batch import Batch


_OF_ONE_SIZE = {
    "count", "count_distinct", "approx_count_distinct", "sum", "min", "max", "mean", "var_pop", "stddev_pop",
    "quantiles",
}  # fmt: skip
"""Functions whose results, of numbers, are of one size from the first value that is not null on."""

Types: TypeAlias = "tuple[pa.DataType | None, pa.DataType | None] | None"
"""Of what a function is of, and of what decides which record it picks; None: of records."""


class ColumnarAggregator:
    """Functions of SQL over accumulators; a mean is a sum and a count.

    Args:
        functions: Names of the results' fields, None for a result that is the value itself; and the functions.
        node: Named in errors.
        metrics: The node's, which counts what does not fit into collections.
        streams: Of several streams, the number of the one that each function is of; empty: there is one.
    """

    may_remove = False
    failed = NONE_FAILED

    def __init__(
        self,
        functions: Sequence[tuple[str | None, Aggregation]],
        node: str,
        metrics: NodeMetrics,
        streams: Sequence[int] = (),
    ) -> None:
        self._functions = functions
        self._streams = streams
        self._node = node
        self._metrics = metrics
        self._types: list[Types] | None = None
        self._inputs: list[Inputs] = []
        self._accumulators: list[list[Accumulator]] = []
        self._reserved = 0
        self.schema: pa.Schema | None = None
        self.result_type: pa.DataType = pa.null()
        """See `Aggregator`."""

    @property
    def may_be_null(self) -> bool:
        """See `Aggregator`: unless it is a struct, or a count."""
        return any(name is None and not function.is_count for name, function in self._functions)

    def prepare(self, batch: Batch, on_failure: OnFailure | None = None) -> None:
        """See `Aggregator`: mappers are called before anything is done."""
        del on_failure
        functions = [function for _, function in self._functions]
        if self._streams:
            columns = inputs_of_streams(functions, self._streams, batch, self._node)
        else:
            columns = inputs_of(functions, batch, self._node)
        self._inputs = [Inputs(of, by, batch.timestamp, batch.sequence) for of, by in columns]
        types = [
            inputs.types if function.of else None
            for (_, function), inputs in zip(self._functions, self._inputs, strict=True)
        ]
        if self._types is None:
            self._bind(types)
        elif types != self._types:
            raise ConfigurationError(
                f"the type of what is aggregated has changed from {_names(self._types)} to {_names(types)}",
                node=self._node,
                next_step="cast it to one type in a map_values()",
            )

    def _bind(self, types: list[Types]) -> None:
        fields = []
        for (name, function), of in zip(self._functions, types, strict=True):
            made = accumulators(function, *(of or (None, None)))
            columns = [type_ for part in made for type_ in part.types]
            fields += [pa.field(*column) for column in zip(names_of(name, function), columns, strict=True)]
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
        columns = iter(rows.flatten())
        for part in self._flat:
            part.set(slots, [next(columns) for _ in part.types])

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        """See `Aggregator`."""
        return self._rows(part.get(slots) for part in self._flat)

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        """See `Aggregator`."""
        return self._shown(lambda part: part.shown(slots))

    def results_of(self, rows: pa.StructArray) -> pa.Array:
        """The results that stored rows stand for."""
        return shown(self._functions, by_function(self._functions, rows.flatten()))

    def initial(self) -> pa.Array:
        """See `Aggregator`."""
        return self._shown(lambda part: [pa.array([one], of) for one, of in zip(part.initial, part.types, strict=True)])

    def _shown(self, states: Callable[[Accumulator], Sequence[pa.Array]]) -> pa.Array:
        made = ([column for part in parts for column in states(part)] for parts in self._accumulators)
        return shown(self._functions, made)

    def _rows(self, states: Iterable[Sequence[pa.Array]]) -> pa.StructArray:
        columns = [column for state in states for column in state]
        return pa.StructArray.from_arrays(columns, fields=list(self.schema or ()))

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
        updates = Updates(rows, slots, absorbed if len(absorbed) else copied, remembers)
        made = [
            [column for part in parts for column in part.walk(updates, inputs)]
            for parts, inputs in zip(self._accumulators, self._inputs, strict=True)
        ]
        self._count_left_out()
        return shown(self._functions, made), NONE_REMOVED

    def _count_left_out(self) -> None:
        for part in self._flat:
            if isinstance(part, CollectAccumulator):
                self._metrics.count("collection-limit-drop", part.left_out)
                part.left_out = 0

    @property
    def keeps_sizes(self) -> bool:
        """Whether no record of the prepared batch makes the serialised result of a window larger but the first."""
        return all(
            function.function in _OF_ONE_SIZE
            and (inputs.of is None or (fixed_width(inputs.of.type) is not None and inputs.of.null_count == 0))
            for (_, function), inputs in zip(self._functions, self._inputs, strict=True)
        )

    def add(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """As `walk`, for windows that never merge, where nobody asks for the result after each update."""
        updates = Updates(rows, slots)
        for parts, inputs in zip(self._accumulators, self._inputs, strict=True):
            for part in parts:
                part.add(updates, inputs)
        self._count_left_out()

    def walked(self) -> pa.StructArray:
        """See `Aggregator`."""
        return self._rows(part.walked() for part in self._flat)

    def memory_bytes(self) -> int:
        """See `Aggregator`."""
        return sum(part.memory_bytes() for part in self._flat)


def _names(types: list[Types]) -> str:
    return ", ".join(" by ".join(str(type_) for type_ in of if type_) if of else "records" for of in types)
