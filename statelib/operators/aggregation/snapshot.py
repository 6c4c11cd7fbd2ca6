"""What an aggregation has stored, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from statelib.described.description import as_stored
from statelib.operators.aggregation.definition import Aggregations
from statelib.operators.aggregation.sql_functions import Aggregation
from statelib.operators.aggregation.table_definition import TableAggregations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa


def results_of(settings: Mapping[str, Any]) -> Callable[[pa.Array], pa.Array]:
    """What makes results of stored states: a mean of a sum and a count.

    Of an aggregation by Python functions the state is the result; so it is where nothing is aggregated.

    Args:
        settings: Of the store. An aggregation is known by what it says of itself (``AggregatorSpec.describe``).
    """
    described = settings.get("aggregator")
    for name, kind in (("aggregations", Aggregations), ("table_aggregations", TableAggregations)):
        if described is not None and name in described:
            functions = [(field, Aggregation(function["function"])) for field, function in described[name]]
            return cast("Any", kind)(tuple(functions)).results_of  # type: ignore[no-any-return]
    return as_stored
