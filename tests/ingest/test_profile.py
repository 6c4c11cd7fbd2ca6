"""What is told of a load before it is done."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

import pytest

from statelib.ingest.plan import plan_load
from statelib.ingest.profile import profile_of
from statelib.job.lake_topic import LakeTopic
from statelib.storage import Storage
from tests.ingest.connect_layout import Confluent, write_confluent
from tests.ingest.connect_trees import Sent
from tests.ingest.lake import NOW_MS, load, records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.ingest.profile import Profile


def profile(topic: LakeTopic, folder: Path) -> Profile:
    plan, _, _ = plan_load(topic, Storage(str(folder / "warehouse")), {})
    assert plan is not None
    return profile_of(plan, NOW_MS)


@pytest.mark.parametrize(("key", "scattered"), [("shop", 0), ("customer", 2), (None, 0)])
def test_keys_that_are_in_several_of_the_files_partitions_are_told(tmp_path: Path, key: str, scattered: int) -> None:
    sent = [
        Sent(p, n, NOW_MS + n, None, {"at": NOW_MS + n, "shop": f"s{p}", "customer": f"c{(n + p) % 3 if n < 3 else p}"})
        for p in range(2)
        for n in range(2 + p)
    ]  # c0 to c1 in partition 0, c1, c2, c0 in partition 1
    write_confluent(tmp_path / "bucket", sent, Confluent("t"))
    found = profile(LakeTopic("t", str(tmp_path / "bucket"), key=key, timestamp="at"), tmp_path)
    assert (found.layout, found.scattered_keys) == ("connect", scattered)
    assert [field.name for field in found.fields] == ["at", "shop", "customer"]


def test_where_the_key_chooses_the_partition_none_is_scattered(tmp_path: Path) -> None:
    rows = [{"k": f"k{n % 5}", "at": NOW_MS + n} for n in range(20)]
    write_file(tmp_path / "a.csv", rows)
    write_file(tmp_path / "b.csv", rows)
    found = profile(LakeTopic("t", str(tmp_path / "*.csv"), key="k", timestamp="at"), tmp_path)
    assert (found.layout, found.scattered_keys, found.distinct_keys, found.repeated_rows) == ("files", 0, 5, 20)


def test_of_small_files_the_numbers_are_those_of_the_load(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    rows = [{"id": n, "at": NOW_MS + n, "note": "a\nb"} for n in range(50)]
    for name in ("a.csv", "b.jsonl", "c.parquet", "d.avro", "e.json", "f.csv.gz"):
        write_file(tmp_path / "lake" / name, rows)
    (tmp_path / "lake/g.csv").write_text(f"id,at,note\n1,{NOW_MS},x\n\n2,{NOW_MS}\n3,,y\n4,{NOW_MS},z")
    topic = LakeTopic("t", f"{tmp_path}/lake", key="id", timestamp="at", timestamp_unit="ms")
    found = profile(topic, tmp_path)
    done = load(topic, tmp_path / "warehouse", "quarantine")
    assert (found.rows, found.bad_rows, found.unread) == (done.records + done.bad_rows, done.bad_rows, 1)
    counts = [0] * 4
    for record in records_of(tmp_path / "warehouse", "t"):
        counts[record["partition"]] += 1
    assert list(found.partition_rows) == counts
    assert (found.times.first_ms, found.times.last_ms) == (done.min_timestamp_ms, done.max_timestamp_ms)


def test_fields_that_are_beside_those_of_the_rows_are_not_shown(tmp_path: Path) -> None:
    write_file(tmp_path / "year=2013/a.parquet", [{"k": b"a", "n": 1}, {"k": b"b", "n": 2}])
    topic = LakeTopic("t", str(tmp_path / "year=2013"), key="k", key_serde="string", timestamp="file.modified")
    found = profile(topic, tmp_path)
    assert [field.name for field in found.fields] == ["k", "n", "year"]
    assert found.times.unreadable == 0


def test_a_column_of_several_types_is_shown_as_text(tmp_path: Path) -> None:
    when = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    write_file(tmp_path / "lake/a.parquet", [{"id": 1, "at": when}])
    (tmp_path / "lake/b.csv").write_text("id,at\n1,2013-01-01T00:00\n")
    topic = LakeTopic("t", f"{tmp_path}/lake", timestamp="at")
    found = profile(topic, tmp_path)
    assert (found.sampled, found.bad_rows) == (2, 0)
    assert load(topic, tmp_path / "warehouse").records == 2


def test_deletions_are_told_and_their_former_rows_are_not(tmp_path: Path) -> None:
    def change(op: str, before: int | None, after: int | None) -> dict[str, object]:
        rows = {"before": before, "after": after}
        told = {name: None if id_ is None else {"id": id_, "note": "x"} for name, id_ in rows.items()}
        return {**told, "source": {"ts_ms": NOW_MS}, "op": op, "ts_ms": NOW_MS}

    changes = [change("c", None, 1), change("c", None, 2), change("u", 2, 2), change("d", 2, None)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in changes))
    topic = LakeTopic("t", str(tmp_path / "a.jsonl"), key="id", envelope="debezium")
    found = profile(topic, tmp_path)
    assert (found.sampled, found.deletions, found.valued, found.rows) == (4, 1, 3, 4)
    assert dict(found.ids) == {"id": 1}  # of the rows that are there, one is a second version
    assert (found.distinct_keys, found.null_keys) == (2, 0)
    assert [field.nulls for field in found.fields] == [0, 0]
