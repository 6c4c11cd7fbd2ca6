"""Frames and files as topics: where a producer would have put their rows, and each load once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from hindstream.spark.frames import archive_frame as module
from hindstream.spark.frames.archive_frame import archive_frame
from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.serdes import FixedWidthSerde
from statelib.settings.settings import load_settings
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.partitioner import partition_for
from tests.effort import in_turn, one_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from statelib.settings.settings import Settings

pytestmark = pytest.mark.spark

ROWS = [(f"k{n % 7}" if n % 5 else None, n, f"v{n}", 1_000 + n * 37 % 400) for n in range(400)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    given = {"warehouse": str(tmp_path / "warehouse"), "state_dir": str(tmp_path / "state")}
    return load_settings(given, environ={})


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "user string, n long, page string, at long").repartition(5)


def load(frame: DataFrame, settings: Settings, name: str = "first", **more: Any) -> bool:
    given = {"load": name, "partitions": 3, "timestamp": "at", "key": "user", "order_by": ["n"]} | more
    return archive_frame(frame, "views", settings, **given)


def archived(settings: Settings) -> list[tuple[int, int, Any, Any, int]]:
    found = TopicArchive.open(f"{settings.warehouse}/topics/views")
    return [
        (p, row["offset"], row["key"], row["value"], int(row["timestamp"].timestamp() * 1000 + 0.5))
        for p in range(found.partitions)
        for row in found.reader(p).read_all().to_pylist()
    ]


def test_rows_are_where_a_producer_would_have_put_them(frame: DataFrame, settings: Settings, tmp_path: Path) -> None:
    assert load(frame, settings)
    value = pa.struct([("n", pa.int64()), ("page", pa.string())])
    other = TopicArchive.create(str(tmp_path / "topics" / "views"), topic_schema(pa.string(), value), 3)
    keyed = sorted((row for row in ROWS if row[0] is not None), key=lambda row: (row[3], row[1]))
    table = pa.table({
        "key": [row[0] for row in keyed],
        "value": pa.array([{"n": row[1], "page": row[2]} for row in keyed], value),
        "timestamp": pa.array([row[3] for row in keyed], pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    append_records(other, table, attempt="a", app_id="a", app_version=1)
    expected = [row["value"]["n"] for p in range(3) for row in other.refresh().reader(p).read_all().to_pylist()]
    found = archived(settings)
    assert [row[3]["n"] for row in found if row[2] is not None] == expected
    assert sorted(row[3]["n"] for row in found) == list(range(400)), "those without a key too"
    for partition in range(3):
        mine = [row for row in found if row[0] == partition]
        assert [row[1] for row in mine] == list(range(len(mine)))
        assert [row[4] for row in mine] == sorted(row[4] for row in mine)


def test_a_load_is_made_once_and_the_next_one_goes_on(frame: DataFrame, settings: Settings) -> None:
    assert load(frame, settings)
    before = archived(settings)
    assert not load(frame, settings)
    assert archived(settings) == before
    assert load(frame.filter("n < 10"), settings, "second")
    now = archived(settings)
    assert len(now) == 410
    for partition in range(3):
        assert [row[1] for row in now if row[0] == partition] == list(range(sum(row[0] == partition for row in now)))


def test_chosen_columns_and_a_serde(spark: SparkSession, settings: Settings) -> None:
    rows = [(n, datetime(2024, 1, 1, 0, 0, n, tzinfo=UTC), f"v{n}") for n in range(20)]
    frame = spark.createDataFrame(rows, "id int, at timestamp, text string")
    assert load(frame, settings, key="id", value="text", order_by=(), key_serde=FixedWidthSerde(pa.int32()))
    for partition, _, key, value, timestamp in archived(settings):
        assert (value, timestamp) == (f"v{key}", 1_704_067_200_000 + key * 1_000)
        assert partition == partition_for(pa.array([key.to_bytes(4)]), 3)[0]


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_files(spark: SparkSession, settings: Settings, tmp_path: Path, kind: str) -> None:
    folder = str(tmp_path / "files")
    frame = spark.createDataFrame(ROWS[:50], "user string, n long, page string, at long")
    frame.write.format(kind).option("header", "true").save(folder)
    schema = "user string, n long, page string, at long"
    assert load(spark.read.format(kind).schema(schema).option("header", "true").load(folder), settings)
    assert sorted(row[3]["n"] for row in archived(settings)) == list(range(50))


MS = 1_704_067_200_123


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("long", MS),
        ("double", float(MS)),
        ("decimal(20,3)", Decimal(MS)),
        ("timestamp", datetime(2024, 1, 1, 0, 0, 0, 123_999, tzinfo=UTC)),
        ("timestamp_ntz", datetime(2024, 1, 1, 0, 0, 0, 123_000)),  # noqa: DTZ001
        ("string", "2024-01-01T01:00:00.123+01:00"),
        ("string", "2024-01-01 00:00:00.123"),
    ],
)
def test_a_time_is_the_same_of_whatever_type_its_column_is(
    spark: SparkSession, settings: Settings, kind: str, given: Any
) -> None:
    assert load(spark.createDataFrame([("a", 1, given)], f"user string, n long, at {kind}"), settings)
    assert [row[4] for row in archived(settings)] == [MS]


def test_small_numbers_and_days_are_times_too(spark: SparkSession, settings: Settings) -> None:
    assert load(spark.createDataFrame([("a", 1, 12)], "user string, n long, at smallint"), settings)
    frame = spark.createDataFrame([("a", 1, date(1970, 1, 2))], "user string, n long, at date")
    assert load(frame, settings, "second")
    assert sorted(row[4] for row in archived(settings)) == [12, 86_400_000]


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    one_in(
        4,
        [
            ("long", None, r"1 row has no timestamp \(topic views, key a\)"),
            ("long", -1, "a timestamp that no record can have, such as -1 ms since 1970"),
            ("long", MS * 1_000_000, "a timestamp that no record can have.*which looks like nanoseconds"),
            ("timestamp", datetime(1912, 4, 15, tzinfo=UTC), "a timestamp that no record can have, such as -182"),
            ("double", 1.5, "cannot be read, such as '1.5'"),
            ("double", float("nan"), "cannot be read, such as 'NaN'"),
            ("double", 1e300, "cannot be read, such as '1.0E300'"),
            ("decimal(4,1)", Decimal("1.5"), "cannot be read, such as '1.5'"),
            ("string", "soon", "cannot be read, such as 'soon'"),
            ("string", "12:30", "cannot be read, such as '12:30'"),
            ("string", "201301", "cannot be read, such as '201301'"),
            ("string", str(MS), f"cannot be read, such as '{MS}'"),
        ],
    ),
)
def test_a_time_that_no_record_can_have_is_refused(
    spark: SparkSession, settings: Settings, kind: str, given: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load(spark.createDataFrame([("a", 1, given)], f"user string, n long, at {kind}"), settings)
    assert not Path(settings.warehouse, "topics", "views").exists()


def test_a_column_that_tells_no_times_is_refused(spark: SparkSession, settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match=r"the column of timestamps is of type boolean \(column at\)"):
        load(spark.createDataFrame([("a", 1, True)], "user string, n long, at boolean"), settings)


def test_microseconds_order_rows_before_they_are_cut(spark: SparkSession, settings: Settings) -> None:
    times = [datetime(2024, 1, 1, 0, 0, 0, us, tzinfo=UTC) for us in (900, 100, 500)]
    frame = spark.createDataFrame([("a", n, at) for n, at in enumerate(times)], "user string, n long, at timestamp")
    assert load(frame, settings, order_by=())
    assert [row[3]["n"] for row in archived(settings)] == [1, 2, 0]


@pytest.mark.parametrize("given", [{}, {"order_by": ["n"]}])
def test_the_order_of_arrival(spark: SparkSession, settings: Settings, given: dict[str, Any]) -> None:
    frame = spark.createDataFrame(ROWS, "user string, n long, page string, at long").coalesce(1)
    if given:
        frame = frame.repartition(5)
    assert load(frame, settings, order="arrival", **({"order_by": ()} | given))
    found = archived(settings)
    for partition in range(3):
        keyed = [row[3]["n"] for row in found if row[0] == partition]
        assert keyed == sorted(keyed)
    assert sorted(row[3]["n"] for row in found) == list(range(400))
    assert [row[4] for row in found if row[0] == 0] != sorted(row[4] for row in found if row[0] == 0), "some are late"


@pytest.mark.parametrize(("kind", "order"), in_turn(["json", "csv", "parquet"], ["arrival", "timestamp"]))
def test_files_arrive_in_the_order_of_their_paths(
    spark: SparkSession, settings: Settings, tmp_path: Path, kind: str, order: str
) -> None:
    schema = "user string, n long, at long"
    rows = [("a", n, 1_000 - n if order == "arrival" else 7) for n in range(60)]
    for number, size in enumerate((3, 40, 17)):  # Spark reads the largest first
        first = sum((3, 40, 17)[:number])
        frame = spark.createDataFrame(rows[first : first + size], schema).coalesce(1)
        frame.write.format(kind).save(str(tmp_path / "files" / f"part={number}"))
    frame = spark.read.format(kind).schema(schema).load(str(tmp_path / "files" / "*"))
    assert load(frame, settings, order=order, order_by=(), partitions=1)
    assert [row[3]["n"] for row in archived(settings)] == list(range(60))


STANDS = {
    "sorted files": lambda files: files.orderBy("n"),
    "sorted files, then chosen": lambda files: files.orderBy("n").filter("n % 2 = 0").select("user", "n", "at"),
    "chosen files": lambda files: files.filter("n % 2 = 0").withColumn("more", f.lit(1)),
    "coalesced files": lambda files: files.coalesce(1),
    "parts of a list": lambda files: files.sparkSession.range(60, numPartitions=7).selectExpr(
        "'a' user", "id n", "9 at"
    ),
    "two lists": lambda files: (
        files.sparkSession.range(3).union(files.sparkSession.range(3, 9)).selectExpr("'a' user", "id n", "9 at")
    ),
}
STANDS_NOWHERE = {
    "shuffled": lambda files: files.repartition(3),
    "joined": lambda files: files.join(files.select("n"), "n"),
    "two lots of files": lambda files: files.union(files),
    "a view": lambda files: (files.createOrReplaceTempView("a_view"), files.sparkSession.table("a_view"))[1],
    "sorted in parts": lambda files: files.sortWithinPartitions("n"),
}


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Spark reads the largest first; what comes last has the least ``n``."""
    schema = "user string, n long, at long"
    for number, (first, last) in enumerate([(50, 60), (10, 50), (0, 10)]):
        lines = [f'{{"user": "a", "n": {n}, "at": 7}}\n' for n in range(first, last)]
        (tmp_path / f"{number}.json").write_text("".join(lines))
    return spark.read.schema(schema).json(str(tmp_path / "*.json"))


@pytest.mark.parametrize("how", STANDS)
def test_rows_arrive_as_they_stand_in_the_frame(files: DataFrame, settings: Settings, how: str) -> None:
    assert load(STANDS[how](files), settings, order="arrival", order_by=(), partitions=1)
    found = [row[3]["n"] for row in archived(settings)]
    of_files = [*range(50, 60), *range(10, 50), *range(10)]
    even = [n for n in of_files if n % 2 == 0]
    expected = {"coalesced files": of_files, "chosen files": even}.get(how, sorted(found))
    assert found == expected
    assert len(found) >= 9


@pytest.mark.parametrize("how", STANDS_NOWHERE)
def test_rows_that_stand_in_no_order_cannot_arrive_in_it(files: DataFrame, settings: Settings, how: str) -> None:
    frame = STANDS_NOWHERE[how](files)
    with pytest.raises(ConfigurationError, match=r"no certain order. Next: .*order_by.*orderBy"):
        load(frame, settings, order="arrival", order_by=(), partitions=1)
    assert load(frame, settings, order="arrival", partitions=1)
    found = [row[3]["n"] for row in archived(settings)]
    assert found == sorted(found)
    assert load(frame, settings, "by time", order_by=(), partitions=1), "where times are equal, any order will do"


def test_nothing_is_logged_of_a_frame_that_is_no_file(frame: DataFrame, settings: Settings, capfd) -> None:
    assert load(frame, settings)
    assert "ERROR" not in capfd.readouterr().err


def test_any_names_of_columns(spark: SparkSession, settings: Settings) -> None:
    names = ["Adj Close", "x-y", "a.b", "back`tick", "größe", "at the time", "who?"]
    frame = spark.createDataFrame([(1.5, 2, 3, 4, 5, MS, "k")], names)
    assert load(frame, settings, key="who?", timestamp="at the time", order_by=["a.b"])
    ((_, _, key, value, time),) = archived(settings)
    assert (key, time) == ("k", MS)
    assert value == dict(zip(names[:5], [1.5, 2, 3, 4, 5], strict=True))


def test_two_columns_of_one_name_are_refused(spark: SparkSession, settings: Settings) -> None:
    frame = spark.createDataFrame([("a", 1, MS, 2)], ["user", "n", "at", "N"])
    with pytest.raises(ConfigurationError, match=r"two columns of the frame have one name \(column n, N\)"):
        load(frame, settings)


def test_a_load_with_other_columns_widens_the_topic(spark: SparkSession, settings: Settings) -> None:
    first = spark.createDataFrame([("a", 1, 5, "x")], "user string, n int, at long, page string")
    assert load(first, settings, partitions=1)
    second = spark.createDataFrame([("a", True, 1 << 40, 6)], "user string, new boolean, n long, at long")
    assert load(second, settings, "second", partitions=1)
    assert [row[3] for row in archived(settings)] == [
        {"n": 1, "page": "x", "new": None},
        {"n": 1 << 40, "page": None, "new": True},
    ]


def test_rows_without_a_key_are_spread_by_what_they_hold(spark: SparkSession, settings: Settings) -> None:
    rows = spark.range(300).selectExpr("cast(null as string) user", "id n", "map('x', id) m", "7 at")
    assert load(rows.repartition(12), settings)
    found = archived(settings)
    counts = [sum(row[0] == partition for row in found) for partition in range(3)]
    assert min(counts) > 80, counts
    assert load(rows.coalesce(1), settings, "once more")
    now = archived(settings)
    for partition in range(3):
        assert [row[3]["n"] for row in now if row[0] == partition] == [
            row[3]["n"] for row in found if row[0] == partition
        ] * 2, "the same whoever loads them"


@pytest.mark.parametrize(
    ("frame", "given", "message"),
    [
        ("'a' user, 1 n, 5 at", {"order": "arival"}, 'in the order \'arival\'.*order="timestamp" or order="arrival"'),
        ("'a' user, 1 n, 5 at", {"partitions": 0}, "a topic cannot have 0 partitions"),
        ("'a' user, map('a', 1) n, 5 at", {}, r"of type map<string,int> \(column n\)"),
        ("'a' user, 5 at", {"order_by": ()}, "no column is left for the values"),
        ("'a' user, interval '1' month m, 1 n, 5 at", {}, "YearMonthIntervalType.*cast that column"),
        ("'a' user, interval '1' day m, 1 n, 5 at", {}, r"cannot hold duration\[us\] \(field value.m\)"),
        ("'a' user, struct(1 n, 2 N) s, 1 n, 5 at", {}, r"two fields named n apart \(field value.s\)"),
    ],
)
def test_what_is_refused_before_spark_is_asked(
    spark: SparkSession, settings: Settings, frame: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load(spark.sql(f"select {frame}"), settings, **given)


def test_one_column_to_order_by_may_be_its_name(spark: SparkSession, settings: Settings) -> None:
    frame = spark.createDataFrame([("a", n, 7) for n in (2, 0, 1)], "user string, arrived long, at long")
    assert load(frame, settings, order_by="arrived")
    assert [row[3]["arrived"] for row in archived(settings)] == [0, 1, 2]


def test_what_cannot_be_loaded(spark: SparkSession, frame: DataFrame, settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match=r"the frame has no such column \(column nothing\)"):
        load(frame, settings, key="nothing")
    with pytest.raises(InputError, match=r"1 row has no timestamp \(topic views, key a\)"):
        load(spark.createDataFrame([("a", 1, None)], "user string, n long, at long"), settings)
    assert load(frame, settings)
    with pytest.raises(ConfigurationError, match="has 3 partitions, not 4"):
        load(frame, settings, "more", partitions=4)
    with pytest.raises(ConfigurationError, match=r"the topic archive's value is struct.*, not string"):
        load(frame, settings, "more", value="page")


def test_who_was_stopped_leaves_nothing(frame: DataFrame, settings: Settings, monkeypatch) -> None:
    real = TopicArchive.commit

    def stopped(*arguments: Any, **more: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(TopicArchive, "commit", stopped)
    with pytest.raises(KeyboardInterrupt):
        load(frame, settings)
    files = set(Path(settings.warehouse).glob("topics/views/partition=*/*"))
    assert len(files) == 3
    monkeypatch.setattr(TopicArchive, "commit", real)
    assert load(frame, settings)
    assert len(archived(settings)) == 400
    assert not files & set(Path(settings.warehouse).glob("topics/views/partition=*/*"))


def test_of_two_loads_at_once_one_is_told_to_try_again(frame: DataFrame, settings: Settings, monkeypatch) -> None:
    real = module.run_action

    def overtaken(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(module, "run_action", real)
        assert load(frame.filter("n < 10"), settings, "other")
        return real(*arguments, **more)

    monkeypatch.setattr(module, "run_action", overtaken)
    with pytest.raises(RetryableError, match="another writer added to the topic"):
        load(frame, settings)
    assert len(archived(settings)) == 10
    assert load(frame, settings)
    assert len(archived(settings)) == 410
