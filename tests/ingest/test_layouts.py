"""Topics as Kafka's tools leave them in files: partitions, offsets, keys, headers and tombstones come back."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.lake_topic import LakeTopic
from tests.ingest.connect_trees import real_records, real_tree
from tests.ingest.lake import load, records_of, without_nulls, write_file

pytestmark = pytest.mark.thorough

AT = 1_356_998_400_000
DEBEZIUM = Path(__file__).parents[1] / "data/debezium"


def rows_from(first: int, count: int) -> list[dict[str, Any]]:
    return [{"n": n, "at": AT + n} for n in range(first, first + count)]


def avro(path: Path, schema: Any, values: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        fastavro.writer(out, schema, values)


def connect(folder: Path, partition: int, first: int, rows: list[dict[str, Any]], ext: str = "jsonl") -> Path:
    return write_file(folder / f"topics/t/partition={partition}/t+{partition}+{first:010d}.{ext}", rows)


def a_topic(folder: Path, **options: Any) -> LakeTopic:
    return LakeTopic("t", f"{folder}/topics", **{"timestamp": "at", **options})


@pytest.mark.parametrize("ext", ["jsonl", "json", "avro", "parquet", "jsonl.gz"])
def test_names_tell_partitions_and_offsets(tmp_path: Path, ext: str) -> None:
    for partition in (0, 2):
        connect(tmp_path, partition, 10, rows_from(10, 3), ext)
        connect(tmp_path, partition, 13, rows_from(13, 4), ext)
    done = load(a_topic(tmp_path), tmp_path / "w")
    assert (done.records, done.gaps) == (14, ())
    found = [(r["partition"], r["offset"], r["value"]["n"], r["timestamp"]) for r in records_of(tmp_path / "w", "t")]
    assert found == [(p, n, n, AT + n) for p in (0, 2) for n in range(10, 17)]
    connect(tmp_path, 2, 20, rows_from(20, 1), ext)
    (gap,) = load(a_topic(tmp_path), tmp_path / "w").gaps
    assert (gap.partition, gap.first_offset, gap.last_offset) == (2, 17, 19)


def test_keys_headers_and_tombstones(tmp_path: Path) -> None:
    base = tmp_path / "topics/t/partition=0"
    record = {"type": "record", "name": "v", "fields": [{"name": "n", "type": "long"}, {"name": "at", "type": "long"}]}
    pair = {
        "type": "record",
        "name": "h",
        "fields": [{"name": n, "type": ["null", "string"]} for n in ("key", "value")],
    }
    avro(base / "t+0+0000000000.avro", record, rows_from(0, 2))
    avro(base / "t+0+0000000000.keys.avro", "string", ["a", "b"])
    avro(
        base / "t+0+0000000000.headers.avro",
        {"type": "array", "items": pair},
        [[{"key": "h", "value": "x"}, {"key": "i", "value": None}], []],
    )
    connect(tmp_path, 1, 5, rows_from(5, 1))
    (tmp_path / "topics/t/partition=1/t+1+0000000005.keys.json").write_text('{"id": 7}\n')
    with pytest.raises(ConfigurationError, match="cannot be merged"):
        load(a_topic(tmp_path), tmp_path / "other")
    (tmp_path / "topics/t/partition=1/t+1+0000000005.keys.json").write_text('"c"\n')
    load(a_topic(tmp_path), tmp_path / "w")
    avro(tmp_path / "topics/t/tombstone/t+0+0000000002.keys.avro", "string", ["a"])
    load(a_topic(tmp_path), tmp_path / "w")
    connect(tmp_path, 0, 3, rows_from(3, 1))
    avro(tmp_path / "topics/t/tombstone/t+2+0000000008.keys.avro", "string", ["d"])
    connect(tmp_path, 2, 9, rows_from(9, 1))
    with pytest.raises(ConfigurationError, match="partition 2, and the topic has 2"):
        load(a_topic(tmp_path), tmp_path / "w")
    for path in tmp_path.glob("topics/t/*/t+2+*"):
        path.rename(path.with_name(path.name.replace("+2+", "+1+")))
    load(a_topic(tmp_path), tmp_path / "w")
    records = records_of(tmp_path / "w", "t")
    found = [(r["partition"], r["offset"], r["key"], r["value"] and r["value"]["n"], r["timestamp"]) for r in records]
    assert [(*one, time_ms - AT) for *one, time_ms in found] == [
        (0, 0, "a", 0, 0), (0, 1, "b", 1, 1), (0, 2, "a", None, 1), (0, 3, None, 3, 3),
        (1, 5, "c", 5, 5), (1, 8, "d", None, 5), (1, 9, None, 9, 9),
    ]  # fmt: skip
    assert records[0]["headers"] == [{"key": "h", "value": b"x"}, {"key": "i", "value": None}]


def test_files_that_overlap_are_named(tmp_path: Path) -> None:
    first = connect(tmp_path, 0, 0, rows_from(0, 3))
    again = connect(tmp_path, 0, 2, rows_from(2, 3))
    with pytest.raises(InputError, match=f"in another one too: {re.escape(str(first))}") as caught:
        load(a_topic(tmp_path), tmp_path / "w")
    assert caught.value.place["file"] == str(again)
    load(a_topic(tmp_path, order="timestamp"), tmp_path / "w")
    assert [r["offset"] for r in records_of(tmp_path / "w", "t")] == list(range(6))


@given(
    folders=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    rolls=st.sets(st.integers(0, 60)),
    budget_bytes=st.sampled_from([1, 400, 1 << 20]),
    cut=st.integers(0, 60),
)
def test_files_of_any_partitioner_come_in_the_topics_order(
    tmp_path_factory: pytest.TempPathFactory, folders: list[int], rolls: set[int], budget_bytes: int, cut: int
) -> None:
    """Timestamps ascend with offsets, so that there is one order; offsets come back whatever folder a record was in."""
    folder = tmp_path_factory.mktemp("connect")
    open_files: dict[int, list[dict[str, Any]]] = {}

    def flush() -> None:
        for where, rows in open_files.items():
            write_file(folder / f"topics/t/f={where}/t+0+{rows[0]['n'] + 7:010d}.jsonl", rows)
        open_files.clear()

    for n, where in enumerate(folders):
        if n in rolls:
            flush()
        open_files.setdefault(where, []).append({"n": n, "at": AT + n})
        if n == cut:
            flush()
            load(a_topic(folder), folder / "w", budget_bytes=budget_bytes)
    flush()
    done = load(a_topic(folder), folder / "w", budget_bytes=budget_bytes)
    found = [(r["offset"], r["value"]["n"]) for r in records_of(folder / "w", "t")]
    assert found == [(n + 7, n) for n in range(len(folders))]
    assert done.gaps == ()


OF_CONFLUENT = ("avro-default", "avro-daily", "json-hourly-gzip", "parquet-field", "parquet-none")
OF_AIVEN = ("aiven-jsonl-gzip", "aiven-json", "aiven-jsonl-dated", "aiven-parquet", "aiven-avro")


@pytest.mark.parametrize("name", [*OF_CONFLUENT, *OF_AIVEN])
def test_trees_that_the_connectors_themselves_wrote(tmp_path: Path, name: str) -> None:
    tree, sent = real_tree(name, tmp_path), real_records(name)
    timestamp = "at" if name in OF_CONFLUENT else None
    load(LakeTopic("t", str(tree), timestamp=timestamp), tmp_path / "w")
    found = {(r["partition"], r["offset"]): r for r in records_of(tmp_path / "w", "t")}
    if name == "avro-daily":  # the sink had not committed the newest records
        sent = [record for record in sent if (record.partition, record.offset) in found]
    one_file = {"avro-default", "parquet-none"}  # in which Kafka's compaction left a gap that no name tells
    moved = {(1, 107): (1, 103)} if name in one_file else {}
    assert len(found) == len(sent)
    for record in sent:
        at = (record.partition, record.offset)
        got = found[moved.get(at, at)]
        headers = [(one["key"], one["value"].decode()) for one in got.get("headers") or ()]
        value = got["value"]
        assert got["key"] == record.key
        assert headers == list(() if name == "aiven-parquet" else record.headers)  # it was not asked to write them
        if record.value is None:
            assert value is None
            continue
        assert isinstance(record.value, dict)
        time_ms = record.value["at"] if timestamp else record.timestamp_ms
        assert got["timestamp"] == time_ms
        if isinstance(value["at"], dt.datetime):
            value["at"] = round(value["at"].timestamp() * 1000)
        assert without_nulls(value) == without_nulls(record.value)


def test_rows_of_kcat(tmp_path: Path) -> None:
    def message(partition: int, offset: int, **more: Any) -> dict[str, Any]:
        basis = {
            "topic": "t",
            "partition": partition,
            "offset": offset,
            "tstype": "create",
            "ts": AT + offset,
            "broker": 1,
        }
        return {**basis, "key": f"k{offset}", **more}

    rows = [
        message(1, 4, payload=json.dumps({"n": 4, "deep": {"x": [1, None]}}), headers=["h", "x", "i", None]),
        message(0, 7, payload=json.dumps({"n": 7}, indent=1)),
        message(1, 6, payload=None),
        message(0, 9, payload="{broken"),
    ]
    (tmp_path / "topics").mkdir()
    write_file(tmp_path / "topics/dump.json.gz", rows)
    write_file(tmp_path / "topics/dump.jsonl", rows[:1] + rows[1:])
    (tmp_path / "topics/dump.json.gz").unlink()
    done = load(LakeTopic("t", f"{tmp_path}/topics"), tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows, done.timestamps) == (3, 1, "of the records themselves")
    found = [
        (r["partition"], r["offset"], r["key"], r["timestamp"] - AT, without_nulls(r["value"]))
        for r in records_of(tmp_path / "w", "t")
    ]
    assert found == [
        (0, 7, "k7", 7, {"n": 7}), (1, 4, "k4", 4, {"n": 4, "deep": {"x": [1, None]}}), (1, 6, "k6", 6, None),
    ]  # fmt: skip
    assert records_of(tmp_path / "w", "t")[1]["headers"] == [{"key": "h", "value": b"x"}, {"key": "i", "value": None}]


def test_what_kcat_could_not_read_is_no_tombstone(tmp_path: Path) -> None:
    """``-s avro``: null with an error beside it; and headers by their names."""
    rows = [
        {
            "topic": "t", "partition": 0, "offset": n, "tstype": "create", "ts": AT, "broker": 1, "key": "k",
            "headers": {"h": ["x", None]} if n else {"i": ["y"]}, "payload": None, **more,
        }
        for n, more in enumerate([{"payload": {"n": 1}}, {"payload_error": "bad schema"}, {}, {"key_error": "no"}])
    ]  # fmt: skip
    write_file(tmp_path / "topics/dump.jsonl", rows)
    done = load(LakeTopic("t", f"{tmp_path}/topics"), tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows) == (2, 2)
    found = [(r["offset"], r["value"], r["headers"]) for r in records_of(tmp_path / "w", "t")]
    assert found == [
        (0, {"n": 1}, [{"key": "i", "value": b"y"}]),
        (2, None, [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]),
    ]
    reasons = [r["value"]["reason"] for r in records_of(tmp_path / "w", "t-quarantine")]
    assert reasons == ["payload: kcat could not read it: bad schema", "key: kcat could not read it: no"]


def test_changes_in_avros_json_are_refused(tmp_path: Path) -> None:
    payload = {"before": None, "after": {"shop.customers.Value": {"id": 1, "name": {"string": "x"}}}, "op": "c"}
    row = {"topic": "t", "partition": 0, "offset": 0, "tstype": "create", "ts": AT, "broker": 1, "key": "k"}
    write_file(tmp_path / "topics/dump.jsonl", [{**row, "payload": {**payload, "source": {"ts_ms": AT}}}])
    with pytest.raises(ConfigurationError, match="Avro's JSON"):
        load(LakeTopic("t", f"{tmp_path}/topics", envelope="debezium"), tmp_path / "w")


def test_rows_of_aiven(tmp_path: Path) -> None:
    headers = [{"key": "h", "value": "x"}]
    rows = [
        {"key": "a", "value": {"n": 3}, "offset": 3, "timestamp": "2013-01-01T00:00:03Z", "headers": headers},
        {"key": "b", "value": None, "offset": 5, "timestamp": "2013-01-01T00:00:05Z", "headers": []},
    ]  # fmt: skip
    write_file(tmp_path / "topics/t-2-3.jsonl.gz", rows)
    load(LakeTopic("t", f"{tmp_path}/topics"), tmp_path / "w")
    found = [
        (r["partition"], r["offset"], r["key"], r["timestamp"], r["value"]) for r in records_of(tmp_path / "w", "t")
    ]
    assert found == [(2, 3, "a", AT + 3000, {"n": 3}), (2, 5, "b", AT + 5000, None)]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("ext", ["jsonl", "parquet"])
def test_changes_of_a_database_become_a_table(tmp_path: Path, ext: str, wrapped: bool) -> None:
    def change(op: str, before: Any, after: Any, ts: int) -> dict[str, Any]:
        made = {"before": before, "after": after, "source": {"ts_ms": ts, "table": "x"}, "op": op, "ts_ms": ts + 99}
        return {"schema": None, "payload": made} if wrapped else made

    rows = [
        change("r", None, {"id": 1, "name": "one"}, AT),
        change("c", None, {"id": 2, "name": "two"}, AT + 1),
        change("u", {"id": 1, "name": "one"}, {"id": 1, "name": None}, AT + 2),
        change("d", {"id": 2, "name": "two"}, None, AT + 3),
        change("t", None, None, AT + 4),
    ]
    write_file(tmp_path / f"topics/changes.{ext}", rows)
    topic = LakeTopic("t", f"{tmp_path}/topics", key="id", envelope="debezium", partitions=1)
    done = load(topic, tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows) == (4, 1)
    found = [(r["key"], r["timestamp"] - AT, r["value"]) for r in records_of(tmp_path / "w", "t")]
    assert found == [
        (1, 0, {"id": 1, "name": "one"}), (2, 1, {"id": 2, "name": "two"}), (1, 2, {"id": 1, "name": None}),
        (2, 3, None),
    ]  # fmt: skip
    (bad,) = records_of(tmp_path / "w", "t-quarantine")
    assert bad["value"]["reason"] == "op: it is a truncation of the table"


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("options", [{"key": "id", "timestamp": "ts_ms"}, {}])
def test_changes_that_are_taken_for_rows_are_told(tmp_path: Path, options: dict[str, str], wrapped: bool) -> None:
    change = {"before": None, "after": {"id": 1}, "source": {"ts_ms": AT}, "op": "c", "ts": AT}
    write_file(tmp_path / "changes.jsonl", [{"schema": None, "payload": change} if wrapped else change])
    with pytest.raises(ConfigurationError, match="--envelope debezium"):
        load(LakeTopic("t", str(tmp_path / "changes.jsonl"), **options), tmp_path / "w")


@pytest.mark.parametrize("name", ["events.jsonl", "events-with-schemas.jsonl"])
def test_changes_that_debezium_itself_made(tmp_path: Path, name: str) -> None:
    events = [json.loads(line) for line in (DEBEZIUM / name).read_text(encoding="utf-8").splitlines()]

    def plain(part: Any) -> Any:
        return part["payload"] if isinstance(part, dict) and "payload" in part else part

    changes = [event for event in events if plain(event["value"]) is not None]
    write_file(tmp_path / "topics/changes.jsonl", [event["value"] for event in changes])
    topic = LakeTopic("t", f"{tmp_path}/topics", key="id", envelope="debezium", partitions=1, order="arrival")
    done = load(topic, tmp_path / "w", "quarantine")
    told = [plain(event["value"]) for event in changes]
    assert done.bad_rows == sum(one["op"] not in "cruid" for one in told) > 0
    found = records_of(tmp_path / "w", "t")
    rows = [one for one in told if one["op"] in "crud"]
    assert [r["timestamp"] for r in found] == [one["source"]["ts_ms"] for one in rows]
    assert [r["key"] for r in found] == [(one["after"] or one["before"])["id"] for one in rows]
    assert [without_nulls(r["value"]) for r in found] == [without_nulls(one["after"]) for one in rows]


def test_changes_in_a_dump_of_kcat(tmp_path: Path) -> None:
    def message(offset: int, payload: Any) -> dict[str, Any]:
        basis = {"topic": "t", "partition": 0, "offset": offset, "tstype": "create", "ts": AT + 50, "broker": 1}
        return {**basis, "key": '{"id": 1}', "payload": None if payload is None else json.dumps({"payload": payload})}

    source = {"ts_ms": AT}
    rows = [
        message(0, {"before": None, "after": {"id": 1, "n": 5}, "source": source, "op": "c"}),
        message(1, {"before": {"id": 1, "n": 5}, "after": None, "source": source, "op": "d"}),
        message(2, None),
    ]
    write_file(tmp_path / "topics/dump.jsonl", rows)
    topic = LakeTopic("t", f"{tmp_path}/topics", envelope="debezium")
    load(topic, tmp_path / "w")
    found = [(r["offset"], r["key"], r["timestamp"] - AT, r["value"]) for r in records_of(tmp_path / "w", "t")]
    assert found == [(0, '{"id": 1}', 0, {"id": 1, "n": 5}), (1, '{"id": 1}', 0, None), (2, '{"id": 1}', 50, None)]


def test_files_of_several_topics_are_refused(tmp_path: Path) -> None:
    connect(tmp_path, 0, 0, rows_from(0, 1))
    write_file(tmp_path / "topics/u/u+0+0000000000.jsonl", rows_from(0, 1))
    with pytest.raises(ConfigurationError, match="of 2 topics: t, u"):
        load(a_topic(tmp_path), tmp_path / "w")
