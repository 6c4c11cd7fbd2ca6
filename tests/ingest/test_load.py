"""Loads against a plain model: each row of each file once, in the partition of its key, in the order asked for."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, FencedError, InputError
from statelib.job.lake_topic import LakeTopic
from statelib.topics.partitioner import partition_for
from tests.ingest.lake import FIRST_MS, NOW_MS, a_topic, begin, load, records_of, without_nulls, write_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

FORMATS = ("parquet", "csv", "csv.gz", "jsonl", "jsonl.zst", "json", "avro")
DAY_MS = 86_400_000

_numbers = itertools.count()

ROWS = st.lists(
    st.fixed_dictionaries({
        "id": st.integers(-(2**62), 2**62),
        "user": st.one_of(st.none(), st.sampled_from(["a", "b", "ü", "a longer name, with a comma"])),
        "at": st.integers(FIRST_MS, FIRST_MS + 5),
        "price": st.one_of(st.none(), st.floats(-1e6, 1e6)),
        "note": st.one_of(st.none(), st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=5)),
    }),
    min_size=1,
    max_size=40,
)  # fmt: skip


def expected(loads: list[list[list[dict[str, Any]]]], partitions: int, order: str) -> list[dict[str, Any]]:
    """The records of loads, each of files, each of rows: by hand."""
    topic: dict[int, list[dict[str, Any]]] = {partition: [] for partition in range(partitions)}
    for files in loads:
        arrived: dict[int, list[dict[str, Any]]] = {partition: [] for partition in range(partitions)}
        for rows in files:
            for number, row in enumerate(rows):
                null = row["user"] is None
                where = number % partitions if null else int(partition_for(pa.array([row["user"]]), partitions)[0])
                value = {name: value for name, value in row.items() if name not in {"user", "at"} and value is not None}
                arrived[where].append({"key": row["user"], "timestamp": row["at"], "value": value})
        for partition, records in arrived.items():
            by = {"timestamp": lambda r: r["timestamp"], "arrival": lambda r: 0, "id": lambda r: r["value"]["id"]}[
                order
            ]
            topic[partition] += sorted(records, key=by)
    return [
        {"partition": partition, "offset": offset, **record}
        for partition, records in topic.items()
        for offset, record in enumerate(records)
    ]


def held(warehouse: Path, topic: str = "t") -> list[dict[str, Any]]:
    return [
        {name: without_nulls(record[name]) for name in ("partition", "offset", "key", "timestamp", "value")}
        for record in records_of(warehouse, topic)
    ]


@given(
    loads=st.lists(st.lists(st.tuples(st.sampled_from(FORMATS), ROWS), min_size=1, max_size=3), min_size=1, max_size=2),
    partitions=st.integers(1, 4),
    order=st.sampled_from(["timestamp", "arrival", "id"]),
    budget_bytes=st.sampled_from([1, 2_000, 1 << 26]),
)
def test_any_files_become_the_records_that_they_hold(
    tmp_path_factory: pytest.TempPathFactory,
    loads: list[list[tuple[str, list[dict[str, Any]]]]],
    partitions: int,
    order: str,
    budget_bytes: int,
) -> None:
    folder = tmp_path_factory.mktemp("lake")
    types = {"id": "int64", "price": "double", "user": "string", "note": "string"}
    topic = LakeTopic(
        "t", f"{folder}/lake", key="user", timestamp="at", order=order, partitions=partitions, types=types,
        timestamp_unit="ms", value=("id", "price", "note"),
    )  # fmt: skip
    for n, files in enumerate(loads):
        for m, (suffix, rows) in enumerate(files):
            write_file(folder / f"lake/{n}-{m}.{suffix}", rows)
        done = load(topic, folder / "warehouse", budget_bytes=budget_bytes)
        assert (done.number, len(done.files), done.known) == (n + 1, len(files), sum(map(len, loads[:n])))
        assert done.records == sum(len(rows) for _, rows in files)
        assert load(topic, folder / "warehouse").number is None
    rows_alone = [[rows for _, rows in files] for files in loads]
    assert held(folder / "warehouse") == expected(rows_alone, partitions, order)


def some_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [
        {"id": n, "user": f"u{random.integers(0, 9)}", "at": FIRST_MS + int(random.integers(0, 1000)), "price": n / 4}
        for n in range(count)
    ]


def test_any_budget_gives_the_same_bytes(tmp_path: Path) -> None:
    for n in range(3):
        write_file(tmp_path / f"lake/{n}.parquet", some_rows(900, n))
    found = []
    for budget_bytes in (1, 20_000, 1 << 26):
        warehouse = tmp_path / f"warehouse-{budget_bytes}"
        load(a_topic(tmp_path), warehouse, budget_bytes=budget_bytes)
        files = sorted((warehouse / "topics/t").glob("partition=*/*.parquet"))
        found.append([(path.name.partition("-")[0], path.read_bytes()) for path in files])
    assert found[0] == found[1] == found[2]


def test_a_file_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path / "lake/a.jsonl", some_rows(3))
    load(a_topic(tmp_path), tmp_path / "w")
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(InputError, match="has changed since it was loaded") as caught:
        load(a_topic(tmp_path), tmp_path / "w")
    assert caught.value.place["file"] == str(path)


class Killed(BaseException):
    """Ends a load at a step."""


STEPS = (
    "ingest.before-account", "ingest.accounted", "ingest.ensured", "ingest.committed", "ingest.quarantine-committed",
)  # fmt: skip


@pytest.mark.parametrize("kill_at", STEPS)
def test_a_load_that_is_killed_goes_on_with_the_same_call(tmp_path: Path, kill_at: str) -> None:
    rows: list[dict[str, Any]] = [*some_rows(5), {"id": 9, "user": "x", "at": None, "price": 1.0}, *some_rows(3, 1)]
    write_file(tmp_path / "lake/a.jsonl", rows)
    write_file(tmp_path / "lake/b.csv", some_rows(7, 2))

    def kill(name: str) -> None:
        if name == kill_at:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        load(a_topic(tmp_path), tmp_path / "w", "quarantine")
    write_file(tmp_path / "lake/c.parquet", some_rows(4, 3))
    load(a_topic(tmp_path), tmp_path / "w", "quarantine")
    ids = sorted(record["value"]["id"] for record in records_of(tmp_path / "w", "t"))
    assert ids == sorted(row["id"] for row in [*some_rows(5), *some_rows(3, 1), *some_rows(7, 2), *some_rows(4, 3)])
    (bad,) = records_of(tmp_path / "w", "t-quarantine")
    assert bad["value"]["reason"] == "at: it has no timestamp"
    assert {one["key"]: one["value"] for one in bad["headers"]} == {
        "file": str(tmp_path / "lake/a.jsonl").encode(), "row": b"6", "field": b"at",
    }  # fmt: skip
    assert load(a_topic(tmp_path), tmp_path / "w", "quarantine").number is None
    accounts = list((tmp_path / "w/topics/t/_ingests").iterdir())
    assert len(accounts) == (1 if kill_at in STEPS[:3] else 2)


@pytest.mark.parametrize("kill_at", STEPS[:2])
def test_a_load_that_is_killed_before_its_commit_leaves_no_topic(tmp_path: Path, kill_at: str) -> None:
    write_file(tmp_path / "lake/a.jsonl", [{"user": "x", "at": None}, *some_rows(3)])

    def kill(name: str) -> None:
        if name == kill_at:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        load(a_topic(tmp_path), tmp_path / "w", "quarantine")
    assert not list((tmp_path / "w").rglob("_delta_log"))
    load(a_topic(tmp_path, key="id", partitions=5), tmp_path / "w", "quarantine")
    assert sorted(record["key"] for record in records_of(tmp_path / "w", "t")) == [0, 1, 2]


@pytest.mark.parametrize("first", ["user,at,n\n", "user,at,n\nx,never,1\n"], ids=["no row", "no good row"])
def test_a_topic_without_records_takes_any_type(tmp_path: Path, first: str) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/a.csv").write_text(first)
    assert load(a_topic(tmp_path), tmp_path / "w", "quarantine").records == 0
    write_file(tmp_path / "lake/b.parquet", [{"user": 7, "at": FIRST_MS, "n": "x"}])
    load(a_topic(tmp_path), tmp_path / "w", "quarantine")
    assert [(record["key"], record["value"]) for record in records_of(tmp_path / "w", "t")] == [(7, {"n": "x"})]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_row_without_values_is_no_tombstone(tmp_path: Path, suffix: str) -> None:
    write_file(tmp_path / f"lake/a.{suffix}", [{"user": "a", "at": FIRST_MS, "n": None}])
    with pytest.raises(ConfigurationError, match="no row has a value besides"):
        load(a_topic(tmp_path), tmp_path / "w")
    write_file(tmp_path / "lake/b.jsonl", [{"user": "a", "at": FIRST_MS, "n": 1}, {"user": "a", "at": FIRST_MS}])
    load(a_topic(tmp_path), tmp_path / "w")
    write_file(tmp_path / f"lake/c.{suffix}", [{"user": "a", "at": FIRST_MS, "n": None}])
    load(a_topic(tmp_path), tmp_path / "w")
    values = [record["value"] for record in records_of(tmp_path / "w", "t")]
    assert values == [{"n": None}, {"n": 1}, {"n": None}, {"n": None}]


def test_of_two_loads_at_a_time_one_counts(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/a.jsonl", some_rows(5))
    first, second = begin(a_topic(tmp_path), tmp_path / "w"), begin(a_topic(tmp_path), tmp_path / "w")
    for one in (first, second):
        assert one.plan is not None
    spill = first.warehouse.within("spill")

    def both(load_: Any) -> Any:
        part = load_.sort_files(spill, 1 << 20, in_memory=True)(load_.plan.files, load_.attempt, lambda *_: None)
        merge = load_.merge_partition([part])
        return [part], [file for p in range(3) for file in merge(p, f"load.{load_.attempt}")]

    parts, files = both(first)
    others, other_files = both(second)
    first.commit(parts, files)
    with pytest.raises(FencedError):
        second.commit(others, other_files)
    assert len(records_of(tmp_path / "w", "t")) == 5
    assert load(a_topic(tmp_path), tmp_path / "w").number is None
    assert len(list((tmp_path / "w/topics/t").glob("partition=*/*"))) == len(files)


def test_a_bad_row_ends_the_load_and_names_its_place(tmp_path: Path) -> None:
    path = tmp_path / "lake/a.csv"
    path.parent.mkdir()
    path.write_text("user,at,price\nx,2013-01-01,1\ny,2013-01-02,2.5\nz,2013-01-03,much\n")
    with pytest.raises(InputError, match="'much' is no double") as caught:
        load(a_topic(tmp_path, types={"price": "double"}), tmp_path / "w")
    assert (caught.value.place["row"], caught.value.place["field"]) == (3, "price")
    assert not (tmp_path / "w/topics").exists()


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ([FIRST_MS // 1000, FIRST_MS // 1000 + 7], None, "seconds since 1970"),
        ([FIRST_MS, FIRST_MS + 7000], None, "milliseconds since 1970"),
        ([FIRST_MS * 1000, FIRST_MS * 1000 + 7_000_000], None, "microseconds since 1970"),
        ([FIRST_MS * 10**6, FIRST_MS * 10**6 + 7 * 10**9], None, "nanoseconds since 1970"),
        ([FIRST_MS / 1000, FIRST_MS / 1000 + 7], None, "seconds since 1970"),
        ([0, 7], "s", "seconds since 1970"),
    ],
)
def test_the_unit_of_numbers_is_found_and_shown(tmp_path: Path, values: list[int], unit: Any, shown: str) -> None:
    write_file(tmp_path / "lake/a.parquet", [{"user": "a", "at": value, "n": 1} for value in values])
    done = load(a_topic(tmp_path, timestamp_unit=unit), tmp_path / "w")
    assert done.timestamps == f"at: {shown}"
    base = 0 if unit else FIRST_MS
    assert [record["timestamp"] for record in records_of(tmp_path / "w", "t")] == [base, base + 7000]


@pytest.mark.parametrize("values", [[1, 2], [FIRST_MS, FIRST_MS // 1000], [20130101, 20130102]])
def test_a_unit_that_is_not_certain_is_asked_for(tmp_path: Path, values: list[int]) -> None:
    write_file(tmp_path / "lake/a.parquet", [{"user": "a", "at": value, "n": 1} for value in values])
    with pytest.raises(ConfigurationError, match="not certain in which unit"):
        load(a_topic(tmp_path), tmp_path / "w")


def test_times_of_any_kind(tmp_path: Path) -> None:
    day = dt.datetime(2013, 7, 1, 5, 30, tzinfo=dt.UTC)
    at_ms = int(day.timestamp() * 1000)
    lake = {
        "a.parquet": [{"user": "a", "at": day, "n": 1}],
        "b.jsonl": [{"user": "a", "at": "2013-07-01T07:30:00+02:00", "n": 2}],
        "c.csv": [{"user": "a", "at": "2013-07-01 05:30", "n": 3}],
    }
    for name, rows in lake.items():
        folder = tmp_path / name
        write_file(folder / "lake" / name, rows)
        load(a_topic(folder), folder / "w")
        assert [record["timestamp"] for record in records_of(folder / "w", "t")] == [at_ms]
    local = tmp_path / "c.csv"
    load(a_topic(local, timezone="America/New_York"), local / "new-york")
    assert [record["timestamp"] for record in records_of(local / "new-york", "t")] == [at_ms + 4 * 3_600_000]


def test_a_time_put_together_from_columns(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/a.csv", [{"y": 2013, "m": 7, "d": 1, "h": 5, "user": "a"}])
    topic = a_topic(tmp_path, timestamp="{y}-{m:02}-{d:02} {h:02}:00", key="{user}/{h}")
    load(topic, tmp_path / "w")
    (record,) = records_of(tmp_path / "w", "t")
    assert (record["key"], record["timestamp"]) == ("a/5", 1_372_654_800_000)
    assert record["value"] == {"y": 2013, "m": 7, "d": 1, "h": 5, "user": "a"}


def test_new_files_without_rows_are_nothing_new(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/empty.json").touch()
    assert load(a_topic(tmp_path), tmp_path / "w").number is None
    assert not (tmp_path / "w/topics").exists()
    write_file(tmp_path / "lake/a.jsonl", some_rows(3))
    assert load(a_topic(tmp_path), tmp_path / "w").records == 3
    (tmp_path / "lake/more.jsonl").touch()
    assert load(a_topic(tmp_path), tmp_path / "w").number is None


def test_what_is_asked_for_is_checked(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/a.jsonl", some_rows(3))
    for options, what in (
        ({"key": "usr"}, "did you mean user"),
        ({"timestamp": None}, "--timestamp: one of"),
        ({"value": ("prce",)}, "did you mean price"),
        ({"order": "ids"}, "did you mean id"),
        ({"order": "offset"}, "the files tell no offsets"),
        ({"types": {"price": "doubel"}}, "did you mean double"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            load(a_topic(tmp_path, **options), tmp_path / "w")
        assert what in str(caught.value)
    load(a_topic(tmp_path), tmp_path / "w")
    with pytest.raises(ConfigurationError, match="3 partitions, not 4"):
        load(a_topic(tmp_path, partitions=4), tmp_path / "w")


def test_times_that_no_record_can_have_are_bad_rows(tmp_path: Path) -> None:
    times = [FIRST_MS, -5, 2**62, None, FIRST_MS + 1]
    write_file(tmp_path / "lake/a.parquet", [{"user": "a", "at": time, "n": n} for n, time in enumerate(times)])
    done = load(a_topic(tmp_path, timestamp_unit="ms"), tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows) == (2, 3)
    rows = [
        next(one["value"] for one in record["headers"] if one["key"] == "row")
        for record in records_of(tmp_path / "w", "t-quarantine")
    ]
    assert rows == [b"2", b"3", b"4"]
    assert {record["timestamp"] for record in records_of(tmp_path / "w", "t-quarantine")} == {NOW_MS}
