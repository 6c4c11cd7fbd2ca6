"""Great Expectations' own expectations and metrics, where their answer depends on the engine that gives it.

What is replaced here, and under Great Expectations' own names:

* Bounds keep their type. The library's make a double of each, which is another number above 2**53 and for decimals.
* A pair of columns of which one value is missing is neither equal nor greater, on Spark as on pandas.
* Sums of integers and decimals are exact; on pandas means and sums leave the decimals of the frame as they are.
* Regular expressions are Python's on Spark too.
* The extremes of times are times of UTC on Spark too.
"""

from __future__ import annotations

import operator
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.core.expect_column_max_to_be_between import (
    ExpectColumnMaxToBeBetween as _MaxToBeBetween,
)
from great_expectations.expectations.core.expect_column_min_to_be_between import (
    ExpectColumnMinToBeBetween as _MinToBeBetween,
)
from great_expectations.expectations.core.expect_column_sum_to_be_between import (
    ExpectColumnSumToBeBetween as _SumToBeBetween,
)
from great_expectations.expectations.core.expect_column_values_to_be_between import (
    ExpectColumnValuesToBeBetween as _ValuesToBeBetween,
)
from great_expectations.expectations.metrics.column_aggregate_metric_provider import (
    ColumnAggregateMetricProvider,
    column_aggregate_partial,
    column_aggregate_value,
)
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (
    ColumnMapMetricProvider,
)
from great_expectations.expectations.metrics.map_metric_provider.column_pair_condition_partial import (
    column_pair_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_pair_map_metric_provider import (
    ColumnPairMapMetricProvider,
)
from pyspark.sql import functions as f
from pyspark.sql import types

from hindstream.spark.validation.wide_decimals import can_overflow, joined, sum_in_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame

_DECIMAL, _TIME, _PIECES = "\0decimal:", "\0time:", "\0pieces:"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAIR = ("batch_id", "table", "column_A", "column_B", "row_condition", "condition_parser", "ignore_row_if")


class ExpectColumnValuesToBeBetween(_ValuesToBeBetween):
    """With bounds of any type."""

    min_value: Any = None
    max_value: Any = None


class _Exact:
    def _validate(self, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        return super()._validate({name: _decoded(value) for name, value in metrics.items()}, *args, **kwargs)  # type: ignore[misc]


def _encoded(value: Column, of: types.DataType) -> Column:
    """An aggregate as text where Great Expectations would make a double of it, or a time of the machine's zone."""
    if isinstance(of, types.DecimalType):
        return f.concat(f.lit(_DECIMAL), value.cast("string"))
    return f.concat(f.lit(_TIME), f.unix_micros(value).cast("string")) if isinstance(of, types.TimestampType) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_DECIMAL):
        return Decimal(value.removeprefix(_DECIMAL))
    if isinstance(value, str) and value.startswith(_TIME):
        return _EPOCH + timedelta(microseconds=int(value.removeprefix(_TIME)))
    if isinstance(value, str) and value.startswith(_PIECES):
        return joined(value.removeprefix(_PIECES))
    return value


class ExpectColumnMaxToBeBetween(_Exact, _MaxToBeBetween):
    """With bounds of any type."""

    min_value: Any = None
    max_value: Any = None


class ExpectColumnMinToBeBetween(_Exact, _MinToBeBetween):
    """With bounds of any type."""

    min_value: Any = None
    max_value: Any = None


class ExpectColumnSumToBeBetween(_Exact, _SumToBeBetween):
    """With bounds of any type."""

    min_value: Any = None
    max_value: Any = None


class ColumnPairValuesEqual(ColumnPairMapMetricProvider):
    """A missing value equals nothing."""

    condition_metric_name = "column_pair_values.equal"
    condition_domain_keys = _PAIR
    condition_value_keys = ()

    @column_pair_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_A: pd.Series, column_B: pd.Series, **_: Any) -> pd.Series:  # noqa: N803, N805
        return where_both(operator.eq, column_A, column_B)

    @column_pair_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_A: Column, column_B: Column, **_: Any) -> Column:  # noqa: N803, N805
        return f.coalesce(column_A == column_B, f.lit(False))


class ColumnPairValuesAGreaterThanB(ColumnPairMapMetricProvider):
    """A missing value is not greater than any, and none is greater."""

    condition_metric_name = "column_pair_values.a_greater_than_b"
    condition_domain_keys = _PAIR
    condition_value_keys = ("or_equal",)

    @column_pair_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(cls, column_A: pd.Series, column_B: pd.Series, **kwargs: Any) -> pd.Series:  # noqa: N803, N805
        return where_both(operator.ge if kwargs.get("or_equal") else operator.gt, column_A, column_B)

    @column_pair_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_A: Column, column_B: Column, **kwargs: Any) -> Column:  # noqa: N803, N805
        is_greater = column_A >= column_B if kwargs.get("or_equal") else column_A > column_B
        return f.coalesce(is_greater, f.lit(False))


def where_both(compare: Callable[[Any, Any], Any], a: pd.Series, b: pd.Series) -> pd.Series:
    """Whether values compare so, false where one is missing."""
    both = (a.notna() & b.notna()).to_numpy(bool)
    found = np.zeros(len(a), np.bool_)
    if pd.api.types.is_object_dtype(a) or pd.api.types.is_object_dtype(b):
        found[both] = [bool(compare(x, y)) for x, y in zip(a[both].tolist(), b[both].tolist(), strict=True)]
    else:
        found[both] = compare(a[both], b[both]).to_numpy(bool)
    return pd.Series(found, index=a.index)


class ColumnSum(ColumnAggregateMetricProvider):
    """Exact for all but floating-point numbers."""

    metric_name = "column.sum"

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **_: Any) -> Any:  # noqa: N805
        present = column.dropna()
        if not len(present):
            return None
        if pd.api.types.is_float_dtype(column):
            with np.errstate(invalid="ignore"):  # inf - inf is NaN
                return float(present.sum())
        return _sum(present)

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, _table: DataFrame, _column_name: str, **_: Any) -> Column:  # noqa: N805
        of = _table.schema[_column_name].dataType
        if isinstance(of, types.IntegralType):
            of = types.DecimalType(38, 0)
            column = column.cast(of)
        elif can_overflow(of):
            return f.concat(f.lit(_PIECES), sum_in_pieces(column, of))
        return _encoded(f.sum(column), of)


def _sum(numbers: pd.Series) -> Any:
    """Of Python's numbers, which do not overflow; decimals keep all of their places."""
    with localcontext(prec=100):
        return sum(numbers.tolist())


class ColumnMean(ColumnAggregateMetricProvider):
    """A double."""

    metric_name = "column.mean"

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **_: Any) -> Any:  # noqa: N805
        present = column.dropna()
        if not len(present):
            return None
        if pd.api.types.is_integer_dtype(column):
            return float(_sum(present)) / len(present)
        with np.errstate(invalid="ignore"):
            return float(present.astype("float64").mean())

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, _table: DataFrame, _column_name: str, **_: Any) -> Column:  # noqa: N805
        if isinstance(_table.schema[_column_name].dataType, types.IntegralType):
            return f.sum(column.cast(types.DecimalType(38, 0))).cast("double") / f.count(column)
        return f.avg(column.cast("double"))


class ColumnMax(ColumnAggregateMetricProvider):
    """None where there is no value."""

    metric_name = "column.max"
    value_keys = ()

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **_: Any) -> Any:  # noqa: N805
        present = column.dropna()
        return present.max() if len(present) else None

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, _table: DataFrame, _column_name: str, **_: Any) -> Column:  # noqa: N805
        return _encoded(f.max(column), _table.schema[_column_name].dataType)


class ColumnMin(ColumnAggregateMetricProvider):
    """None where there is no value."""

    metric_name = "column.min"
    value_keys = ()

    @column_aggregate_value(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, **_: Any) -> Any:  # noqa: N805
        present = column.dropna()
        return present.min() if len(present) else None

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, _table: DataFrame, _column_name: str, **_: Any) -> Column:  # noqa: N805
        return _encoded(f.min(column), _table.schema[_column_name].dataType)


class ColumnValuesMatchRegex(ColumnMapMetricProvider):
    """Whether Python finds the expression somewhere in the text."""

    condition_metric_name = "column_values.match_regex"
    condition_value_keys = ("regex",)

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex: str, **_: Any) -> pd.Series:  # noqa: N805
        return asked_in_pandas(column, _finds([regex], any))

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, regex: str, **_: Any) -> Column:  # noqa: N805
        return asked_on_spark(column, _finds([regex], any))


class ColumnValuesNotMatchRegex(ColumnMapMetricProvider):
    """Whether Python does not find the expression anywhere in the text."""

    condition_metric_name = "column_values.not_match_regex"
    condition_value_keys = ("regex",)

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex: str, **_: Any) -> pd.Series:  # noqa: N805
        return ~asked_in_pandas(column, _finds([regex], any))

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, regex: str, **_: Any) -> Column:  # noqa: N805
        return ~asked_on_spark(column, _finds([regex], any))


class ColumnValuesMatchRegexList(ColumnMapMetricProvider):
    """Whether Python finds one of the expressions, or each."""

    condition_metric_name = "column_values.match_regex_list"
    condition_value_keys = ("regex_list", "match_on")

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex_list: Sequence[str], match_on: str | None, **_: Any) -> pd.Series:  # noqa: N805
        return asked_in_pandas(column, _finds(regex_list, all if match_on == "all" else any))

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, regex_list: Sequence[str], match_on: str | None, **_: Any) -> Column:  # noqa: N805
        return asked_on_spark(column, _finds(regex_list, all if match_on == "all" else any))


class ColumnValuesNotMatchRegexList(ColumnMapMetricProvider):
    """Whether Python finds none of the expressions."""

    condition_metric_name = "column_values.not_match_regex_list"
    condition_value_keys = ("regex_list",)

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex_list: Sequence[str], **_: Any) -> pd.Series:  # noqa: N805
        return ~asked_in_pandas(column, _finds(regex_list, any))

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, regex_list: Sequence[str], **_: Any) -> Column:  # noqa: N805
        return ~asked_on_spark(column, _finds(regex_list, any))


def _finds(expressions: Sequence[str], of: Callable[[Iterable[bool]], bool]) -> Callable[[str], bool]:
    """Whether ``any`` or ``all`` of the expressions are found in a text."""
    for expression in expressions:
        re.compile(expression)  # here, where the error is the check's

    def finds(text: str) -> bool:
        return of(re.search(expression, text) is not None for expression in expressions)

    return finds


def asked_in_pandas(column: pd.Series, ask: Callable[[str], bool]) -> pd.Series:
    """What is said of each text; none is missing."""
    return pd.Series(np.fromiter(map(ask, column), np.bool_, len(column)), index=column.index)


def asked_on_spark(column: Column, ask: Callable[[str], bool]) -> Column:
    """The same on Spark, by Python; null where a text is."""
    return f.udf(lambda text: None if text is None else ask(text), types.BooleanType())(column)
