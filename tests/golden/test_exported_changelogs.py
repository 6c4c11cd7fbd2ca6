"""Exported changelogs are the compaction of those that Kafka Streams 4.3.0 wrote (traces: ``versioned-changelog``).

What a live application has at the end of a trace is in its log: of each key the last record, of a versioned store those
of the versions that still count. Here the same input leaves a store, and what is exported of that is compared with it:
keys, values, timestamps and headers. Each test says what is not the same, and why.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from statelib import (
    Joined,
    Materialized,
    Named,
    SessionWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
    open_state,
)
from statelib.changelog import export_changelog
from statelib.changelog.export import as_batch, exporter_of
from statelib.described.buffer_value_codec import decode, encode
from statelib.described.description import Described, Place
from statelib.described.exporting import Share
from statelib.documents.topologies import NodeDescription, StoreDescription
from statelib.stores.memory import MemoryBackend
from tests.golden.scenarios.table_table_join import FOREIGN_KEY, JOINER
from tests.golden.test_changelogs import CASES as SUPPRESSED
from tests.golden.test_changelogs import OF_PROCESSORS, TRACE, act, archive, store_of, topology_of
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology
    from tests.golden.trace import Case

pytestmark = pytest.mark.thorough


class Record(NamedTuple):
    key: bytes
    value: bytes | None
    timestamp: int | None
    headers: tuple[tuple[str, bytes], ...] = ()


def in_trace(record: dict[str, Any]) -> Record:
    value = None if record["value"] is None else base64.b64decode(record["value"])
    headers = tuple((name, base64.b64decode(raw)) for name, raw in record["headers"])
    return Record(base64.b64decode(record["key"]), value, record["ts"], headers)


def logged_by_kafka(case: Case, store: str | None = None) -> list[Record]:
    """All records of a store; None: of the one that the case drives."""
    found = (
        step["changelog"] if store is None else step["changelogs"].get(f"oracle-{store}-changelog", [])
        for step in case.steps
    )
    return [in_trace(record) for records in found for record in records]


def compacted(records: list[Record]) -> dict[bytes, Record]:
    """What Kafka's log cleaner leaves in the end."""
    last = {record.key: record for record in records}
    return {key: record for key, record in last.items() if record.value is not None}


def exported(batches: Any) -> list[Record]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [
        Record(
            row["key"],
            row["value"],
            row["timestamp"],
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row in rows
    ]


def by_key(records: list[Record]) -> dict[bytes, Record]:
    """The records, each key of which is there once."""
    found = {record.key: record for record in records}
    assert len(found) == len(records)
    return found


def of_processor(case: Case, folder: Path, stream_time_ms: int = 0) -> list[Record]:
    """Drives a processor's store as the case does, and exports it."""
    builder, backend = store_of(case.params), MemoryBackend()
    with builder.build().init(backend, semantics="kafka-4.3") as store:
        for step in case.steps:
            act(store, case.params, step)
    spec = builder.spec()
    schema = pa.schema([("key", builder.key_serde.arrow_type), ("value", builder.value_serde.arrow_type)])
    described_store = StoreDescription(
        name=spec.name,
        kind=spec.kind,
        node="p",
        sub_topology=0,
        families=spec.families,
        settings=dict(spec.settings),
        arrow_schema="",
    )
    node = NodeDescription(name="p", sub_topology=0, parents=(), settings={})
    described = Described(described_store, schema, {}, "kafka-4.3", {"p": node})
    share = Share(Place(backend, {}, stream_time_ms), 0, folder)
    return exported(map(as_batch, exporter_of(described).records(share)))


@pytest.mark.parametrize("case", [name for name in OF_PROCESSORS if "timestamped" in name])
def test_timestamped_stores(tmp_path: Path, case: str) -> None:
    expected = compacted(logged_by_kafka(TRACE[case]))
    assert by_key(of_processor(TRACE[case], tmp_path)) == within_retention(expected, TRACE[case])
    assert expected


@pytest.mark.parametrize("case", [name for name in OF_PROCESSORS if name in ("key-value", "window", "session")])
def test_plain_stores(tmp_path: Path, case: str) -> None:
    """Timestamps are not those of the records that were processed, which such stores do not keep."""
    expected = within_retention(compacted(logged_by_kafka(TRACE[case])), TRACE[case])
    found = by_key(of_processor(TRACE[case], tmp_path, stream_time_ms=4711))
    assert {key: record[1:2] + record[3:] for key, record in found.items()} == {
        key: record[1:2] + record[3:] for key, record in expected.items()
    }
    assert {key: record.timestamp for key, record in found.items()} == {
        key: 4711 if case == "key-value" else int.from_bytes(key[at : at + 8 or None]) for key in expected
        for at in [-12 if case == "window" else -16]
    }  # fmt: skip
    assert expected


def within_retention(records: dict[bytes, Record], case: Case) -> dict[bytes, Record]:
    """Windows that have expired have no deletion in a log: a restore leaves them out, and so does the broker."""
    if "retention" not in case.params:
        return records
    at = -16 if case.params["store"] == "session" else -12
    times = [int.from_bytes(record.key[at : at + 8 or None]) for record in logged_by_kafka(case)]
    expired = max(times) - case.params["retention"]
    return {key: record for key, record in records.items() if int.from_bytes(key[at : at + 8 or None]) > expired}


VERSIONED = [name for name, case in TRACE.items() if case.params.get("store") == "versioned"]


@pytest.mark.parametrize("case", VERSIONED)
def test_versioned_stores(tmp_path: Path, case: str) -> None:
    check_versions(TRACE[case], of_processor(TRACE[case], tmp_path), logged_by_kafka(TRACE[case]))


def check_versions(case: Case, found: list[Record], log: list[Record]) -> None:
    """All versions that the live store shows, and no others, beside deletions that Kafka has logged."""
    retention = case.params["history_retention"]
    accepted, clock = [], -1
    for record in log:
        assert record.timestamp is not None
        if record.timestamp >= clock - retention:
            accepted.append(record)
            clock = max(clock, record.timestamp)
    assert set(found) <= set(accepted)  # to the byte, with headers
    live = {
        (key.encode(), version["value"].encode(), version["ts"])
        for key, there in case.end["live"].items()
        for version in there["versions"]
        if version["valid_to"] is None or version["valid_to"] > clock - retention
    }
    assert {record[:3] for record in found if record.value is not None} == live
    assert max(record.timestamp or -1 for record in found) == clock
    assert found == sorted(found, key=lambda record: (record.timestamp, record.key, record.value is not None))
    deleted = [record for record in found if record.value is None]
    assert all(record.timestamp is not None and record.timestamp >= clock - retention for record in deleted)


def run(folder: Path, topology: Topology, **settings: Any) -> Pipeline:
    return Pipeline(folder, topology, semantics="kafka-4.3", batch_records=7, **settings)


def of_job(pipeline: Pipeline, folder: Path, store: str) -> list[Record]:
    with open_state(folder / "warehouse", "job", store, state_dir=folder / "read") as snapshot:
        return exported(export_changelog(snapshot, 0))


@pytest.mark.parametrize("end", [None, 50, 40, 25])
@pytest.mark.parametrize("case", ["dsl-hopping-count", "dsl-session-count"])
def test_windows(tmp_path: Path, case: str, end: int | None) -> None:
    """Sessions have their ends as timestamps."""
    params, steps = TRACE[case].params, TRACE[case].steps[:end]
    size, grace = (timedelta(milliseconds=params[name]) for name in ("size", "grace"))
    is_session = params["window"] == "session"
    windows: Any = (
        SessionWindows.of_inactivity_gap_and_grace(size, grace)
        if is_session
        else TimeWindows.of_size_and_grace(size, grace).advance_by(timedelta(milliseconds=params["advance"]))
    )
    builder = StreamsBuilder("job")
    counted = builder.stream("in").group_by_key().windowed_by(windows).count(Materialized.as_("agg"))
    counted.to_stream().to("out")
    pipeline = run(tmp_path, builder.build())
    archive(pipeline, steps, pa.int64())
    pipeline.run(None)
    log = logged_by_kafka(replace(TRACE[case], steps=steps), "agg")
    at = -16 if is_session else -12
    times = [int.from_bytes(record.key[at : at + 8 or None]) for record in log]
    kept_ms = params["size"] + params["grace"]
    expected = {
        key: record._replace(timestamp=int.from_bytes(key[-16:-8])) if is_session else record
        for key, record in compacted(log).items()
        if int.from_bytes(key[at : at + 8 or None]) > max(times) - kept_ms
    }
    assert by_key(of_job(pipeline, tmp_path, "agg")) == expected
    assert expected


@pytest.mark.parametrize("case", ["dsl-table-plain", "dsl-table-versioned50"])
def test_tables(tmp_path: Path, case: str) -> None:
    params, steps = TRACE[case].params, TRACE[case].steps
    supplier: Any = "s"
    if params["table_versioned"]:
        retention = timedelta(milliseconds=params["history_retention"])
        supplier = Stores.persistent_versioned_key_value_store("s", retention)
    builder = StreamsBuilder("job")
    builder.table("in", Materialized.as_(supplier)).to_stream().to("out")
    pipeline = run(tmp_path, builder.build())
    archive(pipeline, steps, pa.string())
    pipeline.run(None)
    (name,) = {topic.removeprefix("oracle-").removesuffix("-changelog") for s in steps for topic in s["changelogs"]}
    log, found = logged_by_kafka(TRACE[case], name), of_job(pipeline, tmp_path, "s")
    if params["table_versioned"]:
        assert set(found) <= set(log)
        latest = {record.key: record for record in sorted(log, key=lambda record: record.timestamp or 0)}
        assert {r.key: r for r in found if r.value is not None}.items() >= compacted([*latest.values()]).items()
    else:
        assert by_key(found) == compacted(log)
    assert found


@pytest.mark.parametrize("end", [None, 50, 31])
@pytest.mark.parametrize("case", SUPPRESSED)
def test_suppress(tmp_path: Path, case: str, end: int | None) -> None:
    """Offsets are -1: what waits does not remember its own."""
    topology = topology_of(SUPPRESSED[case].params)
    steps = SUPPRESSED[case].steps[:end]
    pipeline = run(tmp_path, topology)
    archive(pipeline, steps, pa.string() if "time_limit" in SUPPRESSED[case].params else pa.int64())
    pipeline.run(None)
    (name,) = (s.name for sub in topology.sub_topologies for s in sub.stores if s.kind == "suppression-buffer")
    until_there = replace(SUPPRESSED[case], steps=steps)
    expected = compacted(logged_by_kafka(until_there, "sup-store"))
    found = by_key(of_job(pipeline, tmp_path, name))
    assert found == {key: without_offset(record) for key, record in expected.items()}
    assert found
    if "time_limit" not in SUPPRESSED[case].params:
        counts = by_key(of_job(pipeline, tmp_path, "agg"))
        log = compacted(logged_by_kafka(until_there, "agg"))
        assert {key: record.value for key, record in counts.items()}.items() <= {
            key: record.value for key, record in log.items()
        }.items()


def without_offset(record: Record) -> Record:
    assert record.value is not None
    waiting = replace(decode([record.value], "s"), offset=np.array([-1]))
    return record._replace(value=encode(waiting)[0].as_py())


def test_the_buffer_of_a_stream_table_join(tmp_path: Path) -> None:
    """The same of its offsets."""
    case = TRACE["stream-table-join-grace-buffer"]
    grace, retention = (timedelta(milliseconds=case.params[name]) for name in ("grace", "history_retention"))
    builder = StreamsBuilder("job")
    supplier = Stores.persistent_versioned_key_value_store("tstore", retention)
    table = builder.table("table", Materialized.as_(supplier))
    builder.stream("stream").left_join(table, "left", Joined.as_("join").with_grace_period(grace)).to("out")
    topology = builder.build()
    pipeline = run(tmp_path, topology)
    for topic in ("stream", "table"):
        archive(pipeline, [step for step in case.steps if step["topic"] == topic], pa.string(), topic)
    pipeline.run(None)
    (name,) = (s.name for sub in topology.sub_topologies for s in sub.stores if s.kind == "join-buffer")
    expected = compacted(logged_by_kafka(case, "join-Buffer"))
    found = by_key(of_job(pipeline, tmp_path, name))
    assert found == {key: without_offset(record) for key, record in expected.items()}
    assert found


def test_the_subscriptions_of_a_foreign_key_join(tmp_path: Path) -> None:
    """The timestamp is the task's stream time: what subscribes does not remember its own."""
    case = TRACE["foreign-key-join"]
    builder = StreamsBuilder("job")
    left = builder.table("left", Materialized.as_("lstore"))
    right = builder.table("right", Materialized.as_("rstore"))
    left.left_join(right, JOINER, Named.as_("fkj"), foreign_key=FOREIGN_KEY).to_stream().to("out")
    pipeline = run(tmp_path, builder.build())
    for topic in ("left", "right"):
        archive(pipeline, [step for step in case.steps if step["topic"] == topic], pa.string(), topic)
    pipeline.run(None)
    for store in ("lstore", "rstore"):
        assert by_key(of_job(pipeline, tmp_path, store)) == compacted(logged_by_kafka(case, store))
    expected = compacted(logged_by_kafka(case, "fkj-subscription-store"))
    found = by_key(of_job(pipeline, tmp_path, "fkj-subscription-store"))
    latest = max(step["ts"] for step in case.steps)
    assert found == {key: record._replace(timestamp=latest) for key, record in expected.items()}
    assert found
