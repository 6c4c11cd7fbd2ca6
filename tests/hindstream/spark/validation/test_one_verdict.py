"""One verdict: pandas, the screen and Spark say the same of the same rows, check for check and row for row.

The rows are staged for a sink, or those of a slice of a source.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from great_expectations.expectations.row_conditions import Column
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from hindstream.spark.expectations.checks import Check, Suite
from hindstream.spark.expectations.flat_tables import (
    flat_columns,
    flat_schema,
    pandas_frame,
    read_flat,
    slice_frame,
    spark_frame,
)
from hindstream.spark.expectations.parameters import typed
from hindstream.spark.screening.scan import Scan
from hindstream.spark.screening.screen import screen_of
from hindstream.spark.screening.slices import SlicePart, SliceRecords, SliceScan
from hindstream.spark.screening.suspects import find_suspects
from hindstream.spark.validation.validator import Validator
from statelib.storage import Storage
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import PartitionWriter
from tests.effort import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from hindstream.spark.expectations.flat_tables import Frame
    from statelib.documents.manifests import AuditCheck
    from statelib.topics.files import ArchiveFile

pytestmark = pytest.mark.spark

SUITE_CHECKS = 20
PARTS = 24
"""Of the checks that the screen knows, so many parts take turns: Great Expectations takes 10 ms for each."""

BIG = 2**53
SOME = {Decimal("1.09"), Decimal("1.10")}
NOON = datetime(2024, 1, 1, tzinfo=UTC)
TIMES_AROUND = [NOON + timedelta(microseconds=n) for n in (-1, 0, 1)]
FIELDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), [None, -(2**63), -1, 0, 1, 2, BIG, BIG + 1, 2**63 - 1]),
    "j": (pa.int64(), [None, 0, 1, BIG, BIG + 1, BIG + 2]),
    "n": (pa.int32(), [None, -(2**31), 0, 1, 2**31 - 1]),
    "x": (pa.float64(), [None, float("nan"), float("-inf"), -0.0, 0.0, 0.1, 1.0, float(BIG), float("inf")]),
    "y": (pa.float64(), [None, float("nan"), -0.0, 0.0, 1.0]),
    "f": (pa.float32(), [None, float("nan"), -0.0, 0.0, 0.1, 1.5]),
    "d": (pa.decimal128(10, 2), [None, *map(Decimal, ("-0.01", "0.00", "1.09", "1.10", "1.11", "99999999.99"))]),
    "e": (pa.decimal128(38, 10), [None, Decimal("1.1"), Decimal("1.1000000001"), Decimal("9" * 28 + ".9999999999")]),
    "b": (pa.bool_(), [None, True, False]),
    "s": (pa.string(), [None, "", "a", "A", "a\0", "a\0b", "1", "ä", "a\u0308", "\U0001f600", "٣", "a\n", "nan"]),
    "u": (pa.string(), [None, "", "a", "a\0b", "z"]),
    "r": (pa.binary(), [None, b"", b"\0", b"a\0", b"\xff"]),
    "t": (pa.timestamp("us", "UTC"), [None, *TIMES_AROUND]),
    "l": (pa.timestamp("us"), [None, *(time.replace(tzinfo=None) for time in TIMES_AROUND)]),
    "a": (pa.date32(), [None, date(1582, 10, 4), date(1969, 12, 31), date(2024, 1, 1), date(9999, 12, 31)]),
    "none": (pa.int64(), [None]),
    "nan": (pa.float64(), [None, float("nan")]),
}  # fmt: skip
VALUE = pa.struct(
    [(name, of) for name, (of, _) in FIELDS.items() if name != "u"] + [("in", pa.struct([("u", pa.string())]))]
)
SCHEMA = topic_schema(pa.string(), VALUE)
TYPES = {column.name: column.type for column in flat_columns(SCHEMA)}
ALL = [*(f"value__{name}" for name in FIELDS if name != "u"), "value__in__u", "key", "timestamp"]

NUMBERS = ["value__i", "value__n", "value__x", "value__f", "value__d", "value__e", "value__none", "value__nan"]
NUMERIC = [
    (0, None), (None, 0), (1, BIG + 1), (BIG + 1, None), (None, BIG), (1.1, 1.1), (0.1, 1.5), (None, 2**63),
    (-(2**70), 2**70),
    (2**63, None), (1e300, None), (Decimal("1.10"), Decimal("1.1000000001")), (-0.0, 0.0),
    (float("-inf"), 1), (10**38, None),
]  # fmt: skip
TIMES = [
    (NOON, None), (None, NOON), ("2024-01-01", "2024-01-01T00:00:00.000001Z"), (date(2024, 1, 1), None),
    (datetime(2024, 1, 1, 1, tzinfo=UTC), None), ("2024-01-01T01:00:00+01:00", None),
]  # fmt: skip
SETS: dict[str, list[list[Any]]] = {
    "value__i": [[1, BIG + 1], [1.0, 2.5], [float(BIG)], [2**63, 0], [Decimal(BIG + 1)], [None, 1], []],
    "value__n": [[1, 2**31]],
    "value__x": [[0, BIG + 1], [0.1, -0.0], [0, *range(2, 20)]],
    "value__f": [[0.1], [0.0, 1.5]],
    "value__d": [[1.1], ["1.10", "1.09"], [1.105], [Decimal("1.100")], [0]],
    "value__e": [["1.1000000001"], [1.1, Decimal("9" * 28 + ".9999999999")]],
    "value__b": [[True], [True, False]],
    "value__s": [["a", "A"], ["a\0"], ["ä"], ["", "1"], ["a", *"bcdefghijklm"]],
    "value__in__u": [["a\0b", "z"]],
    "value__r": [[b"\0"], ["ff", "00"]],
    "value__t": [[NOON], ["2024-01-01", None]],
    "value__l": [[datetime(2024, 1, 1)], ["2024-01-01T00:00:00.000001"]],  # noqa: DTZ001
    "value__a": [[date(2024, 1, 1)], ["1582-10-04", "9999-12-31"]],
    "value__none": [[1]],
    "value__nan": [[1]],
}
PAIRS = [
    ("value__i", "value__j"), ("value__i", "value__n"), ("value__i", "value__x"), ("value__x", "value__y"),
    ("value__x", "value__f"),
    ("value__d", "value__e"), ("value__d", "value__i"), ("value__s", "value__in__u"), ("value__b", "value__b"),
    ("value__t", "timestamp"), ("value__t", "value__l"), ("value__a", "value__a"), ("value__none", "value__i"),
    ("value__r", "value__r"),
]  # fmt: skip


QUANTILES = {
    "quantiles": [0, 0.1, 0.5, 0.9, 1.0],
    "value_ranges": [[0, 1], [-5, 1], [None, 1], [0, None], [None, None]],
}
PAIR_SETS: list[tuple[str, str, list[list[Any]]]] = [
    ("value__s", "value__d", [["a", "1.10"], ["A", 1.09], ["a", None]]),
    ("value__i", "value__n", [[BIG + 1, 1], [0, 0]]),
    ("value__a", "value__t", [["2024-01-01", NOON], ["1582-10-04", None]]),
]
SUMS: list[tuple[list[str], Any]] = [
    (["value__i", "value__j"], 2 * BIG + 1), (["value__n", "value__i"], 1), (["value__x", "value__f"], 1.5),
    (["value__d", "value__n"], 1.1), (["value__d", "value__e"], Decimal("2.2")),
    (["value__d", "value__e"], 1.1), (["value__d", "value__e"], float("inf")), (["value__i", "value__e"], 10**40),
    (["value__n", "value__i"], Decimal(f"0.{'1' * 37}")),
]  # fmt: skip


def check(name: str, /, **kwargs: Any) -> Check:
    kwargs = {parameter: value for parameter, value in kwargs.items() if value is not None}
    return Check(f"expect_{name}", typed(f"expect_{name}", kwargs, TYPES), kwargs)


def _checks() -> list[Check]:
    """Every expectation that the screen knows, over every type that it can be asked about."""
    between = [(column, *bounds) for column, bounds in product(NUMBERS, NUMERIC)]
    between += [
        (column, *bounds) for column, bounds in product(["value__t", "value__l", "value__a", "timestamp"], TIMES)
    ]
    between += [("value__s", "a", "b"), ("value__s", None, "ä"), ("value__in__u", "a\0", None)]
    found = [check("column_values_to_be_between", column=c, min_value=low, max_value=high) for c, low, high in between]
    found += [
        check("column_values_to_be_between", column=c, min_value=low, max_value=high, strict_min=True, strict_max=True)
        for c, low, high in between[:: 3]
    ]  # fmt: skip
    for column, sets in SETS.items():
        for values in sets:
            found.append(check("column_values_to_be_in_set", column=column, value_set=values))
            found.append(check("column_values_to_not_be_in_set", column=column, value_set=values))
    for column in ALL:
        found += [check(f"column_values_to_{what}", column=column) for what in ("be_null", "not_be_null", "be_unique")]
    for a, b in PAIRS:
        for left_out in (None, "either_value_is_missing", "neither"):
            pair = {"column_A": a, "column_B": b, "ignore_row_if": left_out}
            found.append(check("column_pair_values_to_be_equal", **pair))
            if a not in {"value__b", "value__r"}:
                found.append(check("column_pair_values_a_to_be_greater_than_b", **pair))
                found.append(check("column_pair_values_a_to_be_greater_than_b", **pair, or_equal=True))
    for columns in (
        ["value__i", "value__x"],
        ["value__s", "value__d"],
        ["value__f", "value__t"],
        ["key", "value__r", "value__b"],
    ):
        for left_out in (None, "any_value_is_missing", "never"):
            found.append(check("compound_columns_to_be_unique", column_list=columns, ignore_row_if=left_out))
    found.append(check("table_columns_to_match_set", column_set=[column.name for column in flat_columns(SCHEMA)]))
    return found


SCREENED = _checks()
CONDITIONAL = [
    check("column_values_to_be_between", column="value__i", min_value=0, row_condition=condition,
          condition_parser="great_expectations")
    for condition in ('col("value__n") > 1', 'col("value__s") == "a"', 'col("value__x").notNull()',
                      Column("value__n").is_in([1, 0]) & (Column("value__i") > 0), Column("value__x").is_null())
]  # fmt: skip
NEEDS_ALL = [
    *(check("column_values_to_be_between", column=c, min_value=0, mostly=0.5) for c in NUMBERS),
    *(check(f"column_{which}_to_be_between", column=c, min_value=0)
      for which in ("min", "max", "sum", "mean") for c in NUMBERS),
    check("column_max_to_be_between", column="value__i", max_value=BIG + 1),
    check("column_sum_to_be_between", column="value__i", min_value=1, max_value=2**70),
    check("column_max_to_be_between", column="value__d", max_value="1.11"),
    check("column_max_to_be_between", column="value__t", max_value="2024-01-01"),
    check("column_min_to_be_between", column="value__a", min_value="1969-12-31"),
    *(check("column_unique_value_count_to_be_between", column=c, min_value=1, max_value=3) for c in ALL),
    *(check("column_proportion_of_unique_values_to_be_between", column=c, min_value=0.1) for c in ALL),
    *(check("column_values_to_match_regex", column="value__s", regex=regex)
      for regex in (r"^\w+$", r"^a\Z", r"\d", "(?P<n>a)", "^a$")),
    check("column_values_to_not_match_regex", column="value__s", regex=r"(?i)A"),
    check("column_values_to_match_regex_list", column="value__s", regex_list=["a", "1"]),
    check("column_values_to_match_regex_list", column="value__s", regex_list=["a", "b"], match_on="all"),
    check("column_values_to_not_match_regex_list", column="value__s", regex_list=["a", "b"]),
    check("column_value_lengths_to_equal", column="value__s", value=2),
    check("column_value_lengths_to_be_between", column="value__s", min_value=1, max_value=1),
    check("table_row_count_to_equal", value=3),
    *(check("column_quantile_values_to_be_between", column=c, quantile_ranges=QUANTILES) for c in NUMBERS),
    *(check(f"column_{which}_to_be_between", column=c, min_value=0, max_value=1)
      for which in ("median", "stdev") for c in NUMBERS),
    *(check("column_value_z_scores_to_be_less_than", column=c, threshold=1.5, double_sided=True) for c in NUMBERS),
    *(check("column_values_to_not_be_outliers", column=c) for c in NUMBERS if c not in {"value__d", "value__e"}),
    *(check(f"column_values_to_be_{which}", column=c, strictly=strictly)
      for c in ALL for which, strictly in (("increasing", False), ("decreasing", True))),
    *(check(f"column_distinct_values_to_{what}_set", column=c, value_set=SETS[c][0])
      for what in ("be_in", "contain", "equal") for c in ("value__n", "value__s", "value__b", "value__a", "value__t")
      if c != "value__n" or what == "be_in"),
    *(check("column_most_common_value_to_be_in_set", column=c, value_set=SETS[c][0]) for c in SETS),
    *(check("column_proportion_of_non_null_values_to_be_between", column=c, min_value=0.3) for c in ALL),
    check("column_value_lengths_to_equal", column="value__r", value=2),
    check("column_values_to_be_dateutil_parseable", column="value__s"),
    check("column_values_to_be_json_parseable", column="value__s"),
    check("column_values_to_match_json_schema", column="value__s", json_schema={"type": "number"}),
    check("column_values_to_match_strftime_format", column="value__s", strftime_format="%d"),
    *(check("column_pair_values_to_be_in_set", column_A=a, column_B=b, value_pairs_set=pairs)
      for a, b, pairs in PAIR_SETS),
    *(check("multicolumn_sum_to_equal", column_list=columns, sum_total=total, ignore_row_if=left_out)
      for columns, total in SUMS for left_out in ("never", "all_values_are_missing", "any_value_is_missing")),
    *(check(f"{which}", column_list=columns, ignore_row_if=left_out)
      for which in ("multicolumn_values_to_be_equal", "select_column_values_to_be_unique_within_record")
      for columns in (["value__i", "value__j", "value__n"], ["value__s", "value__in__u"], ["value__d", "value__e"])
      for left_out in ("never", "any_value_is_missing")),
    check("compound_columns_to_be_unique", column_list=["value__i", "value__s"], mostly=0.5),
    *CONDITIONAL,
]  # fmt: skip


ASKED = [
    (["column_values_to_be_in_set"], {"column": "value__i", "value_set": [BIG]}),
    (["column_values_to_be_between"], {"column": "value__d", "min_value": 1.1, "max_value": 1.1}),
    (["column_values_to_be_between"], {"column": "value__e", "max_value": 2**63}),
    (["column_sum_to_be_between"], {"column": "value__e", "min_value": Decimal("60000000000000000000000000013.2")}),
    (["column_sum_to_be_between"], {"column": "value__e", "max_value": Decimal("60000000000000000000000000013.1")}),
    *((["multicolumn_sum_to_equal"], {"column_list": columns, "sum_total": total}) for columns, total in SUMS[4:]),
]


def staged(folder: Path, *rows: dict[str, Any]) -> tuple[Storage, list[ArchiveFile]]:
    """One file in each of two partitions."""
    files: list[ArchiveFile] = []
    for partition in (0, 1):
        records = [
            {"offset": n, "key": None if n % 5 == 4 else f"k{n % 3}", "value": _value(row), "timestamp": NOON}
            for n, row in enumerate(rows[partition::2])
        ]
        with PartitionWriter(Storage(str(folder / "topics" / "t")), SCHEMA, partition, attempt="t") as writer:
            if records:
                writer.write(pa.Table.from_pylist(records, SCHEMA))
            files += writer.close()
    return Storage(str(folder)), files


def _value(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "u"} | {"in": {"u": row["u"]}}


ROW = st.fixed_dictionaries({name: st.sampled_from(values) for name, (_, values) in FIELDS.items()})
EXTREMES = [{name: values[n % len(values)] for name, (_, values) in FIELDS.items()} for n in range(13)]
NUL = [EXTREMES[1] | {"s": text, "u": text} for text in ("a", "a\0", "a\0b")]  # no text is missing
EXTREMES += [
    {name: values[(3 * n + len(name)) % len(values)] for name, (_, values) in FIELDS.items()} for n in range(12)
]


def said(validator: Validator, checks: list[Check], frame: Frame) -> dict[str, Any]:
    """By check, what was said of it."""
    outcomes: list[AuditCheck] = []
    for first in range(0, len(checks), SUITE_CHECKS):  # Great Expectations' costs grow with the square of a suite
        suite = Suite("t", checks[first : first + SUITE_CHECKS], ("partition", "offset"))
        outcomes += validator.validate(suite, frame, run="1").checks
    found = {}
    for declared, outcome in zip(checks, outcomes, strict=True):
        rows = sorted(json.dumps({name: row[name] for name in sorted(row)}) for row in outcome.unexpected_rows)
        says = (
            outcome.success,
            outcome.unexpected_count,
            outcome.observed,
            outcome.error,
            rows if len(rows) < 20 else 20,
        )
        found[f"{declared.type} {declared.shown}"] = says
    return found


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {name: (one[name], other[name]) for name in one if not _agree(one[name], other[name])}


def _agree(one: Any, other: Any) -> bool:
    """The last digits of a sum of doubles depend on the order in which they are added."""
    if isinstance(one[2], float) and isinstance(other[2], float):
        return one[:2] == other[:2] and one[2] == pytest.approx(other[2], nan_ok=True)
    return bool(one == other)


def in_three_ways(
    spark: SparkSession | None, folder: Path, checks: list[Check], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    warehouse, files = staged(folder, *rows)
    validator = Validator(folder / "gx")
    everything = [table for file in files for table in read_flat(warehouse, "t", SCHEMA, file)]
    answers = [said(validator, checks, pandas_frame(everything, SCHEMA))]
    screen, screened, _ = screen_of(checks, flat_schema(SCHEMA))
    suspects = find_suspects(Scan(warehouse, "t", SCHEMA, screen), files, None)
    assert suspects is not None
    answers.append(answers[0] | said(validator, screened, pandas_frame([suspects], SCHEMA)))
    if spark is not None:
        answers.append(said(validator, checks, spark_frame(spark, warehouse, "t", SCHEMA, files)))
    parts = [SlicePart(file.partition, 0, file.last_offset + 1, file.rows, (file,)) for file in files]
    records = SliceRecords(Storage(warehouse.uri("topics/t")), "t", SCHEMA, SCHEMA)
    of_slice = find_suspects(SliceScan(warehouse, "t", SCHEMA, screen, records=records), parts, None)
    assert of_slice is not None
    assert sorted(map(str, of_slice.to_pylist())) == sorted(map(str, suspects.to_pylist()))
    if spark is not None:
        frame = slice_frame(spark, SCHEMA, parts, lambda part: records.tables(part, flat_columns(SCHEMA)))
        assert differences(answers[-1], said(validator, checks, frame)) == {}
    return answers


@given(rows=st.lists(ROW, max_size=12), part=st.integers(0, PARTS - 1))
@examples(3, campaign=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_screen_says_what_pandas_says(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], part: int
) -> None:
    pandas, screened = in_three_ways(None, tmp_path_factory.mktemp("verdict"), SCREENED[part::PARTS], rows)
    assert differences(pandas, screened) == {}


def test_the_screen_knows_all_of_them() -> None:
    _, _, whole = screen_of(SCREENED, flat_schema(SCHEMA))
    assert {(check.kwargs.get("column") or check.kwargs["column_A"]) for check in whole} <= {"value__r"}


BY_COLUMN = ("values_to_be_between", "values_to_be_in_set")


def _few() -> list[Check]:
    """Of each expectation one, of some more columns; on Spark each check costs queries."""
    found: dict[tuple[str, str], Check] = {}
    for each in SCREENED + NEEDS_ALL:
        column = str(each.kwargs.get("column") or each.kwargs.get("column_A"))
        kind = each.type.replace("not_be", "be")
        seldom = column if kind in {f"expect_column_{what}" for what in BY_COLUMN} else ""
        found.setdefault((kind, seldom), each)
    kinds = {kind: each for (kind, _), each in reversed(found.items())}
    of_columns = [each for each in found.values() if each not in kinds.values()]
    return [*kinds.values(), *of_columns[::12], *CONDITIONAL[::6]]


def _of_texts() -> list[Check]:
    return [
        check("column_values_to_be_unique", column="value__s"),
        check("compound_columns_to_be_unique", column_list=["value__s", "value__in__u"]),
        check("select_column_values_to_be_unique_within_record", column_list=["value__s", "value__in__u"]),
        check("column_unique_value_count_to_be_between", column="value__s", min_value=3),
        check("column_distinct_values_to_equal_set", column="value__s", value_set=["a", "a\0", "a\0b"]),
        check("column_value_lengths_to_equal", column="value__s", value=1),
    ]


@pytest.mark.parametrize(
    ("rows", "checks"),
    [
        pytest.param(
            EXTREMES,
            [*_few()[::9], *(check(*args, **kwargs) for args, kwargs in ASKED[::4])],
            id="extremes",
            marks=pytest.mark.long,
        ),
        pytest.param(NUL, _of_texts(), id="zero bytes"),
        pytest.param([], _few()[::12], id="none"),
        pytest.param(EXTREMES, SCREENED + NEEDS_ALL, id="all", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_spark_says_what_pandas_says(
    spark: SparkSession, tmp_path: Path, rows: list[dict[str, Any]], checks: list[Check]
) -> None:
    pandas, screened, on_spark = in_three_ways(spark, tmp_path, checks, rows)
    assert differences(pandas, screened) == {}
    assert differences(pandas, on_spark) == {}


RIGHT: list[tuple[Check, str, Callable[[Any], bool]]] = [
    (check("column_values_to_be_in_set", column="value__i", value_set=[BIG]), "i", lambda i: i == BIG),
    (check("column_values_to_be_between", column="value__i", min_value=BIG + 1), "i", lambda i: i >= BIG + 1),
    (check("column_values_to_be_between", column="value__i", max_value=2**63), "i", lambda _: True),
    (check("column_values_to_be_between", column="value__i", min_value=2**63), "i", lambda _: False),
    (
        check("column_values_to_be_between", column="value__d", min_value=1.1, max_value=1.1),
        "d",
        lambda d: d == Decimal("1.1"),
    ),
    (check("column_values_to_be_between", column="value__d", max_value=2**63), "d", lambda _: True),
    (check("column_values_to_be_in_set", column="value__d", value_set=[1.1, "1.09"]), "d", lambda d: d in SOME),
    (
        check("column_values_to_be_between", column="value__x", min_value=-1, max_value=1e9),
        "x",
        lambda x: x != x or -1 <= x <= 1e9,  # noqa: PLR0124 - NaN is missing
    ),
    (check("column_values_to_be_in_set", column="value__f", value_set=[0.1, 0, 1.5]), "f", lambda _: True),
    (check("column_values_to_match_regex", column="value__s", regex=r"\d"), "s", lambda s: s in {"1", "\u0663"}),
]
"""Checks, the fields that they are about, and which of its values are as expected."""


@pytest.mark.parametrize(("declared", "field", "is_expected"), RIGHT, ids=range(len(RIGHT)))
def test_what_is_right(tmp_path: Path, declared: Check, field: str, is_expected: Callable[[Any], bool]) -> None:
    pandas, screened = in_three_ways(None, tmp_path, [declared], EXTREMES)
    unexpected = sum(row[field] is not None and not is_expected(row[field]) for row in EXTREMES)
    assert [outcome[:2] for outcome in pandas.values()] == [(not unexpected, unexpected)]
    assert differences(pandas, screened) == {}


def test_a_zero_byte_tells_two_texts_apart(tmp_path: Path) -> None:
    pandas, screened = in_three_ways(None, tmp_path, _of_texts(), NUL)
    assert [outcome[:2] for outcome in pandas.values()] == [
        (True, 0),
        (True, 0),
        (False, 3),
        (True, 0),
        (True, 0),
        (False, 2),
    ]
    assert differences(pandas, screened) == {}


# Of 0.1 and so on up to 1: which value is the one that so many do not exceed.
TEN = [dict.fromkeys(FIELDS) | {"x": n / 10, "i": 11 - n, "d": Decimal(n)} for n in range(1, 11)]
STATISTICS: list[tuple[Check, Any]] = [
    (check("column_quantile_values_to_be_between", column="value__x", quantile_ranges=QUANTILES),
     [0.1, 0.1, 0.5, 0.9, 1.0]),
    (check("column_stdev_to_be_between", column="value__d", min_value=3.02, max_value=3.03), 3.0276503540974917),
    (check("column_median_to_be_between", column="value__i", min_value=5.5, max_value=5.5), 5.5),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "observed"), STATISTICS, ids=range(len(STATISTICS)))
def test_statistics_are_those_of_the_definition(tmp_path: Path, declared: Check, observed: Any) -> None:
    (outcome,) = in_three_ways(None, tmp_path, [declared], TEN)[0].values()
    found = outcome[2]["values"] if isinstance(outcome[2], dict) else outcome[2]
    assert (outcome[0], found) == (True, pytest.approx(observed))


ASCENDING: list[tuple[Check, int]] = [
    (check("column_values_to_be_increasing", column="value__x", strictly=True), 0),
    (check("column_values_to_be_increasing", column="value__i"), 8),
    (check("column_values_to_be_decreasing", column="value__i"), 0),
    (check("multicolumn_sum_to_equal", column_list=["value__i", "value__d"], sum_total=11), 0),
    (check("multicolumn_sum_to_equal", column_list=["value__i", "value__n"], sum_total=11), 10),
]


@pytest.mark.parametrize(("declared", "unexpected"), ASCENDING, ids=range(len(ASCENDING)))
def test_rows_are_in_the_order_of_offsets(tmp_path: Path, declared: Check, unexpected: int) -> None:
    (outcome,) = in_three_ways(None, tmp_path, [declared], TEN)[0].values()
    assert outcome[:2] == (not unexpected, unexpected)
