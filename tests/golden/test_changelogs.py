"""Changelogs have the bytes of those that Kafka Streams 4.3.0 writes (traces: ``versioned-changelog``)."""

from __future__ import annotations

import base64
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    BufferConfig,
    Joined,
    Materialized,
    Named,
    SessionWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    ValueAndTimestamp,
    Windowed,
)
from statelib.commits.archives import open_archive
from statelib.commits.layout import changelog_topic, topic_path
from statelib.described.buffer_value_codec import VERSION_HEADER, decode
from statelib.operators.joins.foreign_key.codec import decode_key, decode_value
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.golden.murmur3 import hash128
from tests.golden.scenarios.table_table_join import FOREIGN_KEY, JOINER
from tests.golden.trace import read_cases
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from statelib.topology import Topology

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


DATA = Path(__file__).parent / "data"
TRACE = {case.name: case for case in read_cases(DATA / "versioned-changelog.jsonl.gz")}
CASES = {name: case for name, case in TRACE.items() if name.startswith("suppress-")}
FOREIGN_KEY_JOIN = TRACE["foreign-key-join"]
GRACE_BUFFER = TRACE["stream-table-join-grace-buffer"]


def topology_of(params: dict[str, Any]) -> Topology:
    builder = StreamsBuilder("job")
    if "time_limit" in params:
        limit = timedelta(milliseconds=params["time_limit"])
        records = params["max_records"]
        buffer = BufferConfig.unbounded() if records is None else BufferConfig.max_records(records)
        table = builder.table("in", Materialized.as_("tstore"))
        table.suppress(Suppressed.until_time_limit(limit, buffer).with_name("sup")).to_stream().to("out")
        return builder.build()
    size, grace = (timedelta(milliseconds=params[name]) for name in ("size", "grace"))
    windows: Any = TimeWindows.of_size_and_grace(size, grace)
    if params["window"] == "session":
        windows = SessionWindows.of_inactivity_gap_and_grace(size, grace)
    # Windowed tables tell what they replace only where that counts: so there has to be a bound.
    buffer = BufferConfig.max_bytes(1 << 30).shut_down_when_full()
    counted = builder.stream("in").group_by_key().windowed_by(windows).count(Materialized.as_("agg"))
    counted.suppress(Suppressed.until_window_closes(buffer).with_name("sup")).to_stream().to("out")
    return builder.build()


def headers_of(step: dict[str, Any]) -> Any:
    """The trace says only that a record has headers; which ones, it says where it was logged."""
    logged = [value for _, value in expected_of(step) if value is not None]
    return decode(logged[:1], "sup").headers[0].as_py() if step.get("headers") and logged else None


def expected_of(step: dict[str, Any]) -> list[tuple[bytes, bytes | None]]:
    buffers = ("oracle-sup-store-changelog", "oracle-join-Buffer-changelog")
    records = [record for topic in buffers for record in step["changelogs"].get(topic, [])]
    return [
        (base64.b64decode(record["key"]), record["value"] and base64.b64decode(record["value"])) for record in records
    ]


def archive(pipeline: Pipeline, steps: list[dict[str, Any]], value_type: pa.DataType, topic: str = "in") -> None:
    schema = topic_schema(pa.string(), value_type)
    into = TopicArchive.ensure(pipeline.warehouse.uri(topic_path(topic)), schema, 1, topic=topic)
    headers = [headers_of(step) for step in steps]
    columns = {
        "key": pa.array([step["key"] for step in steps], pa.string()),
        "value": pa.array([step["value"] for step in steps], value_type),
        "timestamp": pa.array([step["ts"] for step in steps], pa.timestamp("ms", "UTC")),
        "headers": pa.array(headers, HEADERS),
    }
    append_records(into, pa.table(columns), attempt="a", app_id="test", app_version=1)


@pytest.mark.parametrize("case", CASES)
def test_suppress_logs_what_kafka_streams_logs(tmp_path: Path, case: str) -> None:
    params, steps = CASES[case].params, CASES[case].steps
    topology = topology_of(params)
    store = next(s.name for sub in topology.sub_topologies for s in sub.stores if s.kind == "suppression-buffer")
    pipeline = Pipeline(tmp_path, topology, changelogs=[store], semantics="kafka-4.3", batch_records=7)
    archive(pipeline, steps, pa.string() if "time_limit" in params else pa.int64())
    pipeline.run(None)
    topic = changelog_topic("job", store)
    logged = [(key, value) for _, _, key, value, _ in pipeline.output(topic)]
    begin = 0
    for step in steps:
        expected = expected_of(step)
        found = logged[begin : begin + len(expected)]
        assert Counter(found) == Counter(expected), f"step {step['i']}"
        begin += len(expected)
    assert begin == len(logged) > 0
    rows = open_archive(pipeline.warehouse, topic).reader(0).read_all().to_pylist()
    name, version = VERSION_HEADER
    assert {(row["value"] is None, str(row["headers"])) for row in rows} == {
        (True, "None"), (False, str([{"key": name, "value": version}]))
    }  # fmt: skip


def test_a_join_buffer_logs_what_kafka_streams_logs(tmp_path: Path) -> None:
    """The buffer goes by the stream alone, so what comes to the table, and when, does not matter."""
    case = GRACE_BUFFER
    grace, retention = (timedelta(milliseconds=case.params[name]) for name in ("grace", "history_retention"))
    builder = StreamsBuilder("job")
    supplier = Stores.persistent_versioned_key_value_store("tstore", retention)
    table = builder.table("table", Materialized.as_(supplier))
    joined = builder.stream("stream").left_join(table, "left", Joined.as_("join").with_grace_period(grace))
    joined.to("out")
    topology = builder.build()
    store = next(s.name for sub in topology.sub_topologies for s in sub.stores if s.kind == "join-buffer")
    pipeline = Pipeline(tmp_path, topology, changelogs=[store], semantics="kafka-4.3", batch_records=7)
    steps = [step for step in case.steps if step["topic"] == "stream"]
    archive(pipeline, steps, pa.string(), "stream")
    archive(pipeline, [step for step in case.steps if step["topic"] == "table"], pa.string(), "table")
    pipeline.run(None)
    logged = [(key, value) for _, _, key, value, _ in pipeline.output(changelog_topic("job", store))]
    assert logged == [record for step in steps for record in expected_of(step)]
    assert any(value is None for _, value in logged)


def test_a_foreign_key_join_logs_what_kafka_streams_logs(tmp_path: Path) -> None:
    """A subscription's value is our own: the row, where Kafka's has its hash, instruction, key and partition."""
    steps = [step for step in FOREIGN_KEY_JOIN.steps if step["topic"] == "left"]
    builder = StreamsBuilder("job")
    left = builder.table("left", Materialized.as_("lstore"))
    right = builder.table("right", Materialized.as_("rstore"))
    left.left_join(right, JOINER, Named.as_("fkj"), foreign_key=FOREIGN_KEY).to_stream().to("out")
    stores = ["fkj-subscription-store", "lstore"]
    pipeline = Pipeline(tmp_path, builder.build(), changelogs=stores, semantics="kafka-4.3", batch_records=7)
    archive(pipeline, steps, pa.string(), "left")
    archive(pipeline, [step for step in FOREIGN_KEY_JOIN.steps if step["topic"] == "right"], pa.string(), "right")
    pipeline.run(None)
    logged = {
        store: [(key, value, time) for _, _, key, value, time in pipeline.output(changelog_topic("job", store))]
        for store in stores
    }
    assert logged["lstore"] == [record for step in steps for record in logged_in(step, "lstore")]
    expected = [record for step in steps for record in logged_in(step, "fkj-subscription-store")]
    hashed = []
    for key, value, time in logged["fkj-subscription-store"]:
        _, primary_key = decode_key(key, "fkj")
        row = None if value is None else decode_value(value, "fkj")[1]
        hashed.append((key, row and (hash128(row), primary_key), time))
    assert hashed == [(key, value and (value[2:18], value[18:-4]), time) for key, value, time in expected]
    assert {value is None for _, value, _ in expected} == {False, True}


def logged_in(step: dict[str, Any], store: str) -> list[tuple[bytes, bytes | None, int]]:
    records = step["changelogs"].get(f"oracle-{store}-changelog", [])
    return [
        (base64.b64decode(record["key"]), record["value"] and base64.b64decode(record["value"]), record["ts"])
        for record in records
    ]


class Collected:
    """What a store logs, by the time of the record that is being processed."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.carrier_ms = 0

    def add(self, key: bytes, value: bytes | None, timestamp: int | None) -> None:
        encoded = value if value is None else base64.b64encode(value).decode()
        time = self.carrier_ms if timestamp is None else timestamp
        self.records.append({"key": base64.b64encode(key).decode(), "value": encoded, "ts": time, "headers": []})


def store_of(params: dict[str, Any]) -> Any:
    key, value = (pa.string(), pa.int64() if params["value_serde"] == "long" else pa.string())
    retention = timedelta(milliseconds=params.get("retention", params.get("history_retention", 0)))
    match params["store"]:
        case "versioned":
            interval = timedelta(milliseconds=params["segment_interval"])
            versioned = Stores.in_memory_versioned_key_value_store("s", retention, interval)
            return Stores.versioned_key_value_store_builder(versioned, key, value)
        case "key-value":
            return Stores.key_value_store_builder(Stores.in_memory_key_value_store("s"), key, value)
        case "timestamped-key-value":
            return Stores.timestamped_key_value_store_builder(Stores.in_memory_key_value_store("s"), key, value)
        case "session":
            return Stores.session_store_builder(Stores.in_memory_session_store("s", retention), key, value)
    windows = Stores.in_memory_window_store("s", retention, timedelta(milliseconds=params["window_size"]))
    timestamped = params["store"] == "timestamped-window"
    build = Stores.timestamped_window_store_builder if timestamped else Stores.window_store_builder
    return build(windows, key, value)


def act(store: Any, params: dict[str, Any], step: dict[str, Any]) -> None:
    key, value, kind = step["key"], step.get("value"), params["store"]
    timed = ValueAndTimestamp.make(value, step["ts"]) if "timestamped" in kind and value is not None else value
    match kind, step["op"]:
        case "versioned", "put":
            store.put(key, value, step["ts"])
        case "versioned", "delete":
            store.delete(key, step["ts"])
        case "session", _:
            store.put(Windowed(key, step["start"], step["end"]), value)
        case (("window" | "timestamped-window"), _):
            store.put(key, timed, step["window_start"])
        case _, "put_if_absent":
            store.put_if_absent(key, timed)
        case _, "delete":
            store.delete(key)
        case _:
            store.put(key, timed)


OF_PROCESSORS = [
    name
    for name, case in TRACE.items()
    if "store" in case.params and "headers" not in name and "duplicates" not in name  # no such stores here
]


@pytest.mark.parametrize("case", OF_PROCESSORS)
def test_stores_of_processors_log_what_kafka_streams_logs(case: str) -> None:
    params, log = TRACE[case].params, Collected()
    with store_of(params).build().init(semantics="kafka-4.3") as store:
        store.log_to(log)
        for step in TRACE[case].steps:
            log.carrier_ms = step["carrier_ts"]
            act(store, params, step)
            assert log.records == step["changelog"], f"step {step['i']}"
            log.records = []
