"""A job small enough to replay in plain Python, through the real archives, RocksDB, checkpoints and run protocol.

It counts the records of each key: topic ``events`` (2 partitions) in, topic ``counts`` out, one RocksDB a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.checkpoint import Checkpoints
from statelib.commits import CommitLog, attempt_name, topic_path
from statelib.commits.archives import open_archive
from statelib.documents.manifests import Audit, SinkFile, Staged, TaskOutcome, TaskPosition
from statelib.job.job import Job
from statelib.metrics.node_metrics import NodeMetrics
from statelib.stores.backend import WriteBatch
from statelib.stores.rocksdb import RocksDbBackend
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from statelib.topics.parquet.writer import PartitionWriter
from statelib.topology import Sink, Source, Topology

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan, PlannedTask
    from statelib.storage import Storage

SCHEMA = topic_schema(pa.string(), pa.int64())
DAY = 86_400_000


def job(name: str = "counting", *, source: str = "events", sink: str = "counts", partitions: int | None = None) -> Job:
    return Job(name, Topology([Source("SOURCE", source), Sink("SINK", ("SOURCE",), sink, partitions=partitions)]))


def archive_events(warehouse: Storage, first_day: int, days: int = 1, *, per_day: int = 20) -> None:
    """Appends some days of events: keys k0 to k6, a few of them out of order."""
    archive = TopicArchive.ensure(warehouse.uri(topic_path("events")), SCHEMA, 2, topic="events")
    numbers = range(first_day * per_day, (first_day + days) * per_day)
    times = [n // per_day * DAY + (n % per_day) * 1000 - 500 * (n % 3) for n in numbers]
    records = pa.table(
        {
            "key": [f"k{n % 7}" for n in numbers],
            "value": pa.array(numbers, pa.int64()),
            "timestamp": pa.array([max(time, 0) for time in times], pa.timestamp("ms", "UTC")),
        }
    )
    append_records(archive, records, attempt=f"day{first_day}", app_id="test", app_version=first_day + 1)


def replay(warehouse: Storage, plan: Plan, scratch: Path, attempt: str = "a0") -> Staged:
    """Runs every task of ``plan``."""
    previous = CommitLog(warehouse, plan.job).read_if_present(plan.commit - 1)
    outcomes = tuple(_run_task(warehouse, plan, task, previous, scratch, attempt) for task in plan.tasks)
    return Staged(run_id=plan.run_id, tasks=outcomes, seconds=0.0)


def passed(plan: Plan, *, success: bool = True) -> Audit:
    return Audit(run_id=plan.run_id, success=success, checks=(), data_docs=None, seconds=0.0)


def _run_task(
    warehouse: Storage, plan: Plan, task: PlannedTask, previous: Commit | None, scratch: Path, attempt: str
) -> TaskOutcome:
    (source,) = task.sources
    before = previous.tasks[task.task_id] if previous else None
    checkpoints = Checkpoints(warehouse, plan.job, task.task_id, scratch / "cache" / plan.job / task.task_id)
    working = scratch / plan.job / f"{plan.run_id}-{task.task_id}-{attempt}"
    if before:
        checkpoints.restore(before.state, working / "db")
    backend = RocksDbBackend(working / "db")
    reader = open_archive(warehouse, source.topic).reader(source.partition, source.start_offset, source.end_offset)
    (sink,) = (topic for topic in plan.sink_partitions if not topic.endswith(("-quarantine", "-late")))
    offset = before.sink_offsets.get(f"{sink}/{task.partition}", 0) if before else 0
    counts, times, files = WriteBatch(), [-1], ()
    name = attempt_name(plan.job, plan.run_id, task.task_id, attempt)
    with PartitionWriter(warehouse.within(topic_path(sink)), SCHEMA, task.partition, attempt=name) as writer:
        events = reader.read_all()
        seen: dict[str, int] = {}
        for key in events["key"].to_pylist():
            stored = backend.get("counts", key.encode()) or b"0"
            seen[key] = seen.get(key, int(stored)) + 1
            counts.put("counts", key.encode(), str(seen[key]).encode())
        offsets = pa.array(range(offset, offset + len(events)), pa.int64())
        writer.write(events.set_column(events.schema.get_field_index("offset"), "offset", offsets))
        times += events["timestamp"].cast(pa.int64()).to_pylist()
        files = writer.close()
    position = TaskPosition(
        task_id=task.task_id,
        commit=plan.commit,
        fingerprint=plan.fingerprint,
        source_offsets={f"{source.topic}/{source.partition}": source.end_offset},
        source_times={f"{source.topic}/{source.partition}": max(times)},
        sink_offsets={f"{sink}/{task.partition}": offset + len(events)},
    )
    counts.put("position", b"position", position.encode())
    backend.write(counts)
    backend.flush()
    backend.checkpoint(working / "snapshot")
    backend.close()
    state = checkpoints.save(working / "snapshot", before.state if before else None, run_id=plan.run_id)
    rows = len(events)
    return TaskOutcome(
        task_id=task.task_id,
        attempt=attempt,
        sinks=tuple(SinkFile(topic=sink, file=file) for file in files),
        repartitions=(),
        state=state,
        position=position,
        metrics={
            "SOURCE": NodeMetrics(records_in=rows, records_out=rows, accounts={"forwarded": rows}),
            "SINK": NodeMetrics(records_in=rows, accounts={"written": rows}),
        },
        stores={},
        seconds={},
        peak_memory_bytes=0,
        host="here",
    )


def counts_as_of(warehouse: Storage, commit: Commit, scratch: Path) -> dict[str, int]:
    """What the job's state says, all tasks together, restored from the warehouse into an empty ``scratch``."""
    counts: dict[str, int] = {}
    for task_id, task in commit.tasks.items():
        directory = scratch / f"as-of-{commit.commit}-{task_id}"
        Checkpoints(warehouse, commit.job, task_id, scratch / "cache-as-of").restore(task.state, directory)
        backend = RocksDbBackend(directory, create=False)
        counts |= {key.decode(): int(value) for key, value in backend.scan("counts")}
        backend.close()
    return counts
