"""A screen: Great Expectations says the same of the rows that go through it as of the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from hindstream.spark.expectations.checks import Check, Suite
from hindstream.spark.expectations.flat_tables import PARTITION, flat_schema, pandas_frame, read_flat
from hindstream.spark.screening import suspects
from hindstream.spark.screening.scan import Scan
from hindstream.spark.screening.screen import Screen, screen_of
from hindstream.spark.screening.suspects import find_suspects
from hindstream.spark.validation.validator import Validator
from statelib.documents.manifests import AuditCheck
from statelib.errors.kinds import CorruptedDataError
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import PartitionWriter
from tests.effort import every_other, examples

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.topics.files import ArchiveFile

pytestmark = pytest.mark.spark

VALUE = pa.struct([("i", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("b", pa.binary())])
SCHEMA = topic_schema(pa.string(), VALUE)


def check(name: str, /, **kwargs: Any) -> Check:
    return Check(f"expect_{name}", kwargs, kwargs)


BETWEEN, IN_SET, NOT_IN_SET = (
    "column_values_to_be_between",
    "column_values_to_be_in_set",
    "column_values_to_not_be_in_set",
)
UNIQUE, EQUAL, GREATER = (
    "compound_columns_to_be_unique",
    "column_pair_values_to_be_equal",
    "column_pair_values_a_to_be_greater_than_b",
)
X_AND_Y = {"column_A": "value__x", "column_B": "value__y"}
COLUMNS = ["offset", "timestamp", "key", "value__i", "value__x", "value__y", "value__b", "partition"]

CHECKS = [
    check("table_columns_to_match_set", column_set=COLUMNS),
    check("table_columns_to_match_set", column_set=["key", "value__x"], exact_match=False),
    check("table_columns_to_match_set", column_set=["key"]),
    check("column_values_to_not_be_null", column="value__x"),
    check("column_values_to_not_be_null", column="value__b", mostly=1),
    check("column_values_to_be_null", column="value__x"),
    check(IN_SET, column="key", value_set=["a", "b"]),
    check(IN_SET, column="value__x", value_set=[0, 1.5]),
    check(NOT_IN_SET, column="value__i", value_set=[1]),
    check(BETWEEN, column="value__i", min_value=0, max_value=2),
    check(BETWEEN, column="value__x", min_value=0),
    check(BETWEEN, column="value__x", max_value=1.5, strict_max=True),
    check(BETWEEN, column="value__x", min_value=-1, max_value=2, strict_min=True),
    *(
        check(EQUAL, **X_AND_Y, ignore_row_if=left_out)
        for left_out in ("both_values_are_missing", "either_value_is_missing", "neither")
    ),
    check(EQUAL, **X_AND_Y),
    check(GREATER, **X_AND_Y),
    check(GREATER, **X_AND_Y, or_equal=True),
    check(GREATER, **X_AND_Y, or_equal=True, ignore_row_if="either_value_is_missing"),
    check("column_values_to_be_unique", column="value__i"),
    check("column_values_to_be_unique", column="value__x"),
    check("column_values_to_be_unique", column="value__b"),
    check(UNIQUE, column_list=["partition", "offset"]),
    *(
        check(UNIQUE, column_list=["key", "value__x"], ignore_row_if=left_out)
        for left_out in ("all_values_are_missing", "any_value_is_missing", "never")
    ),
]
WHOLE = [
    check("column_mean_to_be_between", column="value__x", min_value=0),
    check("table_row_count_to_be_between", min_value=1),
    check(BETWEEN, column="value__x", min_value=0, mostly=0.9),
    check(BETWEEN, column="value__x", min_value=0, row_condition='key=="a"', condition_parser="pandas"),
    check(BETWEEN, column="value__nothing", min_value=0),
    check(BETWEEN, column="key", min_value=0),
    check(IN_SET, column="value__b", value_set=["00"]),
    check(UNIQUE, column_list=["key", "value__nothing"]),
]


def staged(folder: Path, rows: list[tuple[Any, ...]]) -> tuple[Storage, list[ArchiveFile]]:
    warehouse = Storage(str(folder))
    archive = TopicArchive.create(warehouse.uri("topics/t"), SCHEMA, 3)
    records = [{"key": key, "value": {"i": i, "x": x, "y": y, "b": b}, "timestamp": 0} for key, i, x, y, b in rows]
    schema = pa.schema([("key", pa.string()), ("value", VALUE), ("timestamp", pa.timestamp("ms", "UTC"))])
    append_records(archive, pa.Table.from_pylist(records, schema), attempt="t", app_id="t", app_version=1)
    archive = archive.refresh()
    return warehouse, [file for partition in range(3) for file in archive.files(partition)]


def said(validator: Validator, tables: list[pa.Table]) -> list[dict[str, Any]]:
    suite = Suite("t", CHECKS, ("partition", "offset"))
    checks = validator.validate(suite, pandas_frame(tables, SCHEMA), run="1").checks
    return [outcome.model_dump() for outcome in map(_ordered, checks)]


def _ordered(outcome: AuditCheck) -> AuditCheck:
    rows = sorted(outcome.unexpected_rows, key=lambda row: (row["partition"], row["offset"]))
    return outcome.model_copy(update={"unexpected_rows": tuple(rows)})


def found_in_both_places(spark: SparkSession, scan: Scan, files: list[ArchiveFile]) -> pa.Table | None:
    here, on_spark = find_suspects(scan, files, None), find_suspects(scan, files, spark.sparkContext)
    assert (here is None) == (on_spark is None)
    if here is not None and on_spark is not None:
        order = [(PARTITION.name, "ascending"), ("offset", "ascending")]
        assert str(here.sort_by(order).to_pylist()) == str(on_spark.sort_by(order).to_pylist())  # NaN is not NaN
    return here


NUMBERS = st.sampled_from([None, float("nan"), -1.0, -0.0, 0.0, 1.5, 2.0])
ROWS = st.tuples(
    st.sampled_from([None, "", "a", "b", "c"]),
    st.sampled_from([None, -1, 0, 1, 2, 3]),
    NUMBERS,
    NUMBERS,
    st.sampled_from([None, b"", b"\0", b"ab"]),
)


@given(rows=st.lists(ROWS, max_size=12))
@example(rows=[])
@example(rows=[("a", 1, 1.5, 0.0, b"ab")])
@examples(4, campaign=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_goes_through_gets_the_same_verdicts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("screen")
    warehouse, files = staged(folder, rows)
    screen, screened, whole = screen_of(CHECKS, flat_schema(SCHEMA))
    assert (screened, whole) == (CHECKS, [])
    found = found_in_both_places(spark, Scan(warehouse, "t", SCHEMA, screen), files)
    assert found is not None
    validator = Validator(folder / "gx")
    all_rows = [table for file in files for table in read_flat(warehouse, "t", SCHEMA, file)]
    assert said(validator, [found]) == said(validator, all_rows)


GOOD = [("a", n, float(n), 0.0, bytes([n])) for n in range(200)]
FEW_CHECKS = [
    check("column_values_to_not_be_null", column="key"),
    check(BETWEEN, column="value__i", max_value=200),
    check("column_values_to_be_unique", column="value__i"),
    check(UNIQUE, column_list=["value__x", "value__b"]),
]


def through(spark: SparkSession, folder: Path, rows: list[tuple[Any, ...]]) -> list[Any] | None:
    """Column i of the rows that go through the screen of `FEW_CHECKS`."""
    warehouse, files = staged(folder, rows)
    screen, _, _ = screen_of(FEW_CHECKS, flat_schema(SCHEMA))
    found = found_in_both_places(spark, Scan(warehouse, "t", SCHEMA, screen), files)
    return None if found is None else sorted(found.column("value__i").to_pylist())


@pytest.mark.parametrize("bucket_rows", [4_000_000, 50])
def test_only_what_can_fail_goes_through(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket_rows: int
) -> None:
    monkeypatch.setattr(suspects, "_ROWS_OF_A_BUCKET", bucket_rows)
    assert through(spark, tmp_path / "good", GOOD) == []
    bad = [("b", 7, 300.0, 0.0, b"b"), ("c", 300, 301.0, 0.0, b"c"), (None, 301, 9.0, 0.0, bytes([9]))]
    assert through(spark, tmp_path / "bad", GOOD + bad) == [7, 7, 9, 300, 301]


@pytest.mark.parametrize(("bad", "few"), [(("a", 999, 0.5, 0.0, b"x"), [999]), (("a", 5, 0.5, 0.0, b"x"), [5, 5])])
def test_where_much_goes_through_the_screen_gives_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: tuple[Any, ...], few: list[int]
) -> None:
    monkeypatch.setattr(suspects, "MOST_SUSPECTS", 3)
    assert through(spark, tmp_path / "few", [*GOOD, bad]) == few
    assert through(spark, tmp_path / "many", [*GOOD, *[bad] * 4]) is None


def in_partitions(folder: Path, *partitions: list[tuple[str, int]]) -> tuple[Storage, list[ArchiveFile]]:
    """Rows with a key and the value i, and their number for x."""
    files: list[ArchiveFile] = []
    for partition, rows in enumerate(partitions):
        first = sum(map(len, partitions[:partition]))
        records = [
            {"offset": n, "key": key, "value": {"i": i, "x": float(first + n)}, "timestamp": 0}
            for n, (key, i) in enumerate(rows)
        ]
        with PartitionWriter(Storage(str(folder / "topics" / "t")), SCHEMA, partition, attempt="t") as writer:
            writer.write(pa.Table.from_pylist(records, SCHEMA))
            files += writer.close()
    return Storage(str(folder)), files


def windows(*keys: str, until: int = 8) -> list[tuple[str, int]]:
    """As final results leave."""
    return [(name(key), start) for start in range(until) for key in keys]


def name(key: str) -> str:
    """Long enough for a dictionary."""
    return f"the key that is called {key}"


@pytest.mark.parametrize(
    ("partitions", "numbers", "kinds"),
    [
        ([windows("a", "c"), windows("b", "d")], [], "keys"),
        ([windows("a", "c"), windows("b", "c")], [*range(1, 16, 2), *range(17, 32, 2)], "keys"),
        ([windows("a", "c"), [*windows("b", "d"), (name("d"), 7)]], [31, 32], "keys, hashes"),
        ([windows("a", "c"), [*windows("b", "d"), (name("a"), 7)]], [14, 32], "keys, hashes"),
        ([[*windows("a", "c"), (name("c"), 7)], [*windows("b", "d"), (name("b"), 7)]], [15, 16, 31, 33], "hashes"),
    ],
)
@pytest.mark.parametrize("bucket_rows", every_other([10, 4_000_000]))
def test_windows_in_order_are_unique_if_no_two_partitions_have_a_key_in_common(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    partitions: list[list[tuple[str, int]]],
    numbers: list[float],
    kinds: str,
    bucket_rows: int,
) -> None:
    monkeypatch.setattr(suspects, "_ROWS_OF_A_BUCKET", bucket_rows)
    warehouse, files = in_partitions(tmp_path, *partitions)
    screen, _, _ = screen_of([check(UNIQUE, column_list=["key", "value__i"])], flat_schema(SCHEMA))
    scan = Scan(warehouse, "t", SCHEMA, screen)
    parts = [[file for file in files if file.partition == p] for p in range(len(partitions))]
    told = {kind.name.lower() for part in parts for _, (kind, _, _) in scan(part)}
    assert told == set(kinds.split(", "))
    found = found_in_both_places(spark, scan, files)
    assert found is not None
    assert sorted(found.column("value__x").to_pylist()) == numbers


def test_what_only_the_whole_table_tells_is_not_screened() -> None:
    screen, screened, whole = screen_of(WHOLE, flat_schema(SCHEMA))
    assert (screen, screened, whole) == (Screen((), ()), [], WHOLE)


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
@pytest.mark.parametrize("here", [True, False])
def test_a_damaged_file_is_named(spark: SparkSession, tmp_path: Path, damage: str, here: bool) -> None:
    warehouse, files = staged(tmp_path, GOOD)
    file = tmp_path / "topics" / "t" / files[0].path
    data = bytearray(file.read_bytes())
    file.unlink()
    if damage != "missing":
        data[200] ^= 1
        file.write_bytes(data[:-100] if damage == "truncated" else data)
    screen, _, _ = screen_of(FEW_CHECKS, flat_schema(SCHEMA))
    with pytest.raises(CorruptedDataError, match=f"cannot be read.*topic t, partition {files[0].partition}"):
        find_suspects(Scan(warehouse, "t", SCHEMA, screen), files, None if here else spark.sparkContext)
