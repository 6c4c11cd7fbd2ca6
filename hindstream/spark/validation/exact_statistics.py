"""Great Expectations' statistics of numbers, the same on pandas as on Spark (see `hindstream.spark.validation.exact`).

Deviations and z-scores are those of doubles, also of integers and decimals. A quantile is the least value that so many
of all values do not exceed: one of the column's, none between two. Where there are too few values there is none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.core.expect_column_quantile_values_to_be_between import (
    ExpectColumnQuantileValuesToBeBetween as _QuantileValuesToBeBetween,
)
from great_expectations.expectations.metrics.column_aggregate_metric_provider import (
    ColumnAggregateMetricProvider,
    column_aggregate_partial,
    column_aggregate_value,
)
from great_expectations.expectations.metrics.column_aggregate_metrics.column_median import (
    ColumnMedian as _ColumnMedian,
)
from great_expectations.expectations.metrics.column_map_metrics.column_values_z_score import (
    ColumnValuesZScore as _ColumnValuesZScore,
)
from great_expectations.expectations.metrics.map_metric_provider.column_function_partial import (
    column_function_partial,
)
from great_expectations.expectations.metrics.metric_provider import metric_value
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column


class ExpectColumnQuantileValuesToBeBetween(_QuantileValuesToBeBetween):
    """With a verdict that JSON can hold."""

    def _validate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super()._validate(*args, **kwargs)
        each = [bool(success) for success in found["result"]["details"]["success_details"]]
        found["success"] = all(each)
        found["result"]["details"]["success_details"] = each
        return found


class ColumnQuantileValues(ColumnAggregateMetricProvider):
    """float, or None where there is no value."""

    metric_name = "column.quantile_values"
    value_keys = ("quantiles", "allow_relative_error")

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, quantiles: Sequence[float], **_: Any) -> list[float | None]:  # noqa: N805
        ordered = np.sort(_doubles(column))
        if not len(ordered):
            return [None] * len(quantiles)
        return [float(ordered[max(math.ceil(quantile * len(ordered)) - 1, 0)]) for quantile in quantiles]

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,  # noqa: N805
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> list[float | None]:
        frame, _domain, accessor = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
        quantiles = list(map(float, metric_value_kwargs["quantiles"]))
        error = float(metric_value_kwargs.get("allow_relative_error") or 0.0)
        return frame.approxQuantile(accessor["column"], quantiles, error) or [None] * len(quantiles)


class ColumnMedian(_ColumnMedian):
    """A double, between the two in the middle; None where there is no value."""

    metric_name = "column.median"

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **_: Any) -> float | None:  # noqa: N805
        present = _doubles(column)
        with np.errstate(invalid="ignore"):  # -inf and inf have no middle
            return float(np.median(present)) if len(present) else None

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(  # type: ignore[override]
        cls,  # noqa: N805
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        **_: Any,
    ) -> float | None:
        frame, _domain, accessor = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.COLUMN)
        just_above = 0.5 + 1 / (2 + 2 * metrics["table.row_count"])
        middle = frame.approxQuantile(accessor["column"], [0.5, just_above], 0.0)
        with np.errstate(invalid="ignore"):
            return float(np.mean(middle)) if middle else None


class ColumnStandardDeviation(ColumnAggregateMetricProvider):
    """That of a sample; None of less than two values."""

    metric_name = "column.standard_deviation"

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **_: Any) -> float | None:  # noqa: N805
        present = _doubles(column)
        with np.errstate(invalid="ignore"):  # inf - inf is NaN
            return float(present.std(ddof=1)) if len(present) > 1 else None

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, **_: Any) -> Column:  # noqa: N805
        return f.stddev_samp(column.cast("double"))


class ColumnValuesZScore(_ColumnValuesZScore):
    """Of doubles; NaN or null where there is no deviation, which is under any threshold."""

    @column_function_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas_function(cls, column: pd.Series, _metrics: dict[str, Any], **_: Any) -> pd.Series:  # noqa: N805
        mean, deviation = _metrics["column.mean"], _metrics["column.standard_deviation"]
        if not deviation:
            return pd.Series(np.nan, index=column.index)
        with np.errstate(invalid="ignore"):
            scores: pd.Series = (column.astype("float64") - mean) / deviation
        return scores

    @column_function_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark_function(cls, column: Column, _metrics: dict[str, Any], **_: Any) -> Column:  # noqa: N805
        mean, deviation = _metrics["column.mean"], _metrics["column.standard_deviation"]
        return (column.cast("double") - mean) / deviation if deviation else f.lit(None).cast("double")


def _doubles(column: pd.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The values that are there."""
    return column.dropna().to_numpy(np.float64)
