"""Great Expectations' questions about the columns of a row and about the row before, the same on pandas as on Spark.

What is replaced here, and under Great Expectations' own names (see `hindstream.spark.validation.exact`):

* A sum of columns of which one value is missing is missing, and equals nothing; of integers and decimals it is exact.
* Columns are equal, or all different, by their values, where missing ones equal each other.
* What ascends or descends does so in the order of offsets, within each partition.
* Text is parsed by Python, on Spark too.
"""

from __future__ import annotations

import json
import operator
from decimal import Decimal, localcontext
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
from dateutil import parser  # type: ignore[import-untyped]
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.core.expect_multicolumn_sum_to_equal import (
    ExpectMulticolumnSumToEqual as _MulticolumnSumToEqual,
)
from great_expectations.expectations.metrics.column_map_metrics.column_value_lengths import (
    ColumnValuesValueLength as _ColumnValuesValueLength,
)
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_function_partial import (
    column_function_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (
    ColumnMapMetricProvider,
)
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_map_metric_provider import (
    MulticolumnMapMetricProvider,
)
from great_expectations.expectations.metrics.metric_provider import metric_partial
from pyspark.sql import Window, types
from pyspark.sql import functions as f

from hindstream.spark.validation.exact import asked_in_pandas, asked_on_spark, where_both
from hindstream.spark.validation.wide_decimals import DIGITS, add_up, digits_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

_SEVERAL = ("batch_id", "table", "column_list", "row_condition", "condition_parser", "ignore_row_if")


class ExpectMulticolumnSumToEqual(_MulticolumnSumToEqual):
    """With a total of any type."""

    sum_total: Any


class MulticolumnSumEqual(MulticolumnMapMetricProvider):
    """Whether the columns add up."""

    condition_metric_name = "multicolumn_sum.equal"
    condition_domain_keys = _SEVERAL
    condition_value_keys = ("sum_total",)

    @multicolumn_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_list: pd.DataFrame, sum_total: float | Decimal, **_: Any) -> pd.Series:  # noqa: N805
        columns = [column_list[name] for name in column_list]
        there = reduce(operator.and_, (column.notna().to_numpy(bool) for column in columns))
        total = _exact(sum_total) if not any(map(pd.api.types.is_float_dtype, columns)) else float(sum_total)
        found = np.zeros(len(column_list), np.bool_)
        with localcontext(prec=100):
            rows = zip(*(column[there].tolist() for column in columns), strict=True)
            found[there] = [reduce(_plus, row) == total for row in rows]
        return pd.Series(found, index=column_list.index)

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_list: DataFrame, sum_total: float | Decimal, **_: Any) -> Column:  # noqa: N805
        kinds = {name: column_list.schema[name].dataType for name in column_list.columns}
        if any(
            isinstance(kind, types.FractionalType) and not isinstance(kind, types.DecimalType)
            for kind in kinds.values()
        ):
            columns = [f.col(name).cast("double") for name in kinds]
            return f.coalesce(reduce(operator.add, columns) == f.lit(float(sum_total)), f.lit(False))
        total = _exact(sum_total)
        if digits_for(total, [*kinds.values()]) > DIGITS:
            return add_up(total, [f.col(name) for name in kinds])
        scale = max(getattr(kind, "scale", 0) for kind in kinds.values())
        columns = [f.col(name).cast(types.DecimalType(DIGITS, scale)) for name in kinds]
        return f.coalesce(reduce(operator.add, columns) == f.lit(total), f.lit(False))


def _exact(number: float | Decimal) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def _plus(a: Any, b: Any) -> Any:
    """A double if one of them is."""
    return float(a) + float(b) if isinstance(a, float) or isinstance(b, float) else a + b


class MulticolumnValuesEqual(MulticolumnMapMetricProvider):
    """Whether all columns have one value."""

    condition_metric_name = "multicolumn_values.equal"
    condition_domain_keys = _SEVERAL
    condition_value_keys = ()

    @multicolumn_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_list: pd.DataFrame, **_: Any) -> pd.Series:  # noqa: N805
        first, *others = (column_list[name] for name in column_list)
        return reduce(operator.and_, (_same(first, other) for other in others or [first]))

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_list: DataFrame, **_: Any) -> Column:  # noqa: N805
        first, *others = (f.col(name) for name in column_list.columns)
        return reduce(operator.and_, (first.eqNullSafe(other) for other in others or [first]))


class SelectColumnValuesUniqueWithinRecord(MulticolumnMapMetricProvider):
    """Whether no two columns have the same value."""

    condition_metric_name = "select_column_values.unique.within_record"
    condition_domain_keys = _SEVERAL

    @multicolumn_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_list: pd.DataFrame, **_: Any) -> pd.Series:  # noqa: N805
        pairs = combinations((column_list[name] for name in column_list), 2)
        return reduce(operator.and_, (~_same(one, other) for one, other in pairs))

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_list: DataFrame, **_: Any) -> Column:  # noqa: N805
        pairs = combinations(map(f.col, column_list.columns), 2)
        return reduce(operator.and_, (~one.eqNullSafe(other) for one, other in pairs), f.lit(True))


def _same(a: pd.Series, b: pd.Series) -> pd.Series:
    return where_both(operator.eq, a, b) | (a.isna() & b.isna())


class _InOrder(ColumnMapMetricProvider):
    """Values as compared with those of the record before, in the partition, that has one."""

    condition_value_keys = ("strictly",)
    default_kwarg_values = {"strictly": False}  # noqa: RUF012 - Great Expectations' own


def _ordered_in_pandas(loosely: Callable[[Any, Any], Any], strictly: Callable[[Any, Any], Any]) -> Any:
    @metric_partial(
        engine=PandasExecutionEngine,
        partial_fn_type=MetricPartialFunctionTypes.MAP_CONDITION_SERIES,
        domain_type=MetricDomainTypes.COLUMN,
    )
    def ordered(
        cls: Any,  # noqa: ARG001
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> tuple[pd.Series, dict[str, Any], dict[str, Any]]:
        frame, domain, accessor = execution_engine.get_compute_domain(
            domain_kwargs=metric_domain_kwargs, domain_type=MetricDomainTypes.COLUMN
        )
        name = accessor["column"]
        there = frame[frame[name].notna()].sort_values(["partition", "offset"])
        before = there.groupby("partition", sort=False)[name].shift()
        compare = strictly if metric_value_kwargs.get("strictly") else loosely
        kept = where_both(compare, there[name], before) | before.isna()
        return ~kept.reindex(frame.index[frame[name].notna()]), domain, accessor

    return ordered


def _ordered_on_spark(loosely: Callable[[Any, Any], Any], strictly: Callable[[Any, Any], Any]) -> Any:
    @column_condition_partial(
        engine=SparkDFExecutionEngine, partial_fn_type=MetricPartialFunctionTypes.WINDOW_CONDITION_FN
    )
    def ordered(cls: Any, column: Column, **kwargs: Any) -> Column:  # noqa: ARG001
        before = f.lag(column).over(Window.partitionBy("partition").orderBy("offset"))
        compare = strictly if kwargs.get("strictly") else loosely
        return f.coalesce(compare(column, before), f.lit(True))

    return ordered


class ColumnValuesIncreasing(_InOrder):
    """Whether a value is not less than the one before, or greater."""

    condition_metric_name = "column_values.increasing"
    _pandas = _ordered_in_pandas(operator.ge, operator.gt)
    _spark = _ordered_on_spark(operator.ge, operator.gt)


class ColumnValuesDecreasing(_InOrder):
    """Whether a value is not greater than the one before, or less."""

    condition_metric_name = "column_values.decreasing"
    _pandas = _ordered_in_pandas(operator.le, operator.lt)
    _spark = _ordered_on_spark(operator.le, operator.lt)


class ColumnValuesValueLength(_ColumnValuesValueLength):
    """Characters of Unicode; pandas' own functions leave out zeros at the end."""

    @column_function_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas_function(cls, column: pd.Series, **_: Any) -> pd.Series:  # noqa: N805
        return pd.Series([len(text) for text in column], index=column.index, dtype="int64")


class ColumnValuesDateutilParseable(ColumnMapMetricProvider):
    """Whether dateutil can read a time from the text."""

    condition_metric_name = "column_values.dateutil_parseable"

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **_: Any) -> pd.Series:  # noqa: N805
        return asked_in_pandas(column, _is_time)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, **_: Any) -> Column:  # noqa: N805
        return asked_on_spark(column, _is_time)


def _is_time(text: str) -> bool:
    try:
        parser.parse(text)
    except (ValueError, OverflowError):
        return False
    return True


class ColumnValuesMatchJsonSchema(ColumnMapMetricProvider):
    """Whether the text is JSON, and such as the schema has it."""

    condition_metric_name = "column_values.match_json_schema"
    condition_value_keys = ("json_schema",)

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, json_schema: dict[str, Any], **_: Any) -> pd.Series:  # noqa: N805
        return asked_in_pandas(column, _matches(json_schema))

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, json_schema: dict[str, Any], **_: Any) -> Column:  # noqa: N805
        return asked_on_spark(column, _matches(json_schema))


def _matches(json_schema: dict[str, Any]) -> Callable[[str], bool]:
    def matches(text: str) -> bool:
        try:
            jsonschema.validate(json.loads(text), json_schema)
        except (jsonschema.ValidationError, ValueError, RecursionError):
            return False
        return True

    return matches
