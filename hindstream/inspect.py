"""``hindstream inspect``: what a store holds of a key, read from the checkpoint of a commit.

Only the task that has the key is restored, into a folder of its own below ``state_dir``, and opened read-only; later
calls find it there.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from hindstream.numbers import time_text
from statelib.checkpoint import Checkpoints
from statelib.commits import CommitLog, JobLayout, check_restorable
from statelib.commits.archives import open_archive
from statelib.errors import ConfigurationError
from statelib.operators.deduplicate import DeduplicateSpec
from statelib.operators.distinct import Distinct
from statelib.operators.session_aggregate import SessionAggregate
from statelib.operators.sliding_aggregate import SlidingAggregate
from statelib.operators.suppress import Suppress
from statelib.operators.table_source import TableSource
from statelib.operators.window_aggregate import WindowAggregate
from statelib.serdes import serde_for
from statelib.storage import Storage
from statelib.stores.deduplication import DeduplicationStore
from statelib.stores.rocksdb import RocksDbBackend
from statelib.stores.session import SessionStore
from statelib.stores.suppression_buffer import SuppressionBufferStore
from statelib.stores.versioned import VersionedKeyValueStore
from statelib.stores.window import WindowStore
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.config import Settings
    from statelib.job import Job
    from statelib.manifests import Commit, CommittedTask
    from statelib.topology import Processor, SubTopology

Row = tuple[str, object]
"""When, or what for, and the value."""

_FOREVER = 1 << 62


def print_key(job: Job, store: str, key: str, as_of: str | None, commit: int | None, settings: Settings) -> None:
    """Prints the versions, windows, sessions or entries of ``key``.

    Args:
        job: The job.
        store: Name of one of its stores.
        key: The key as text; JSON if the topic's keys are no text. For a deduplication: the key and the id, as JSON.
        as_of: A time for a versioned store, ISO 8601 with time zone; None: the latest version. Windows: those that
            hold the time.
        commit: The commit; None: the newest.
        settings: See `Settings`.

    Raises:
        ConfigurationError: There is no such store or commit, or its state has been expired.
    """
    warehouse = Storage(settings.warehouse, settings.storage_options)
    made = _commit(warehouse, job.name, commit)
    sub, node = _owner(job, store)
    keys = _keys(warehouse, sub, node, key)
    task_id = f"{sub.index}_{_partition(made, sub, keys)}"
    backend = _open(warehouse, job.name, made, task_id, settings)
    try:
        rows = list(_rows(backend, node, keys, as_of, made.tasks[task_id], warehouse, sub))
    finally:
        backend.close()
    table = Table(
        "when",
        "value",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        title=f"{key} in {store}, as of commit {made.commit} (task {task_id})",
    )
    for when, value in rows:
        table.add_row(when, json.dumps(value, default=str, ensure_ascii=False))
    Console(file=sys.stdout).print(table if rows else f"{store} holds nothing of {key} there (task {task_id}).")


def _commit(warehouse: Storage, job: str, number: int | None) -> Commit:
    log = CommitLog(warehouse, job)
    newest = log.head_number()
    wanted = newest if number is None else number
    if not 1 <= wanted <= newest:
        what = "the job has no commit yet" if not newest else f"the job has the commits 1 to {newest}"
        raise ConfigurationError(what, job=job, commit=number, next_step="hindstream status")
    check_restorable(warehouse, job, wanted)
    return log.read(wanted)


def _owner(job: Job, store: str) -> tuple[SubTopology, Processor]:
    """The node that writes the store."""
    known: list[str] = []
    for sub in job.topology.sub_topologies:
        for node in sub.processors:
            if node.spec.families():
                known += node.stores
                if store in node.stores:
                    return sub, node
    step = f"one of: {', '.join(known)}" if known else "the job is stateless"
    raise ConfigurationError("the job has no such store", job=job.name, store=store, next_step=step)


def _keys(warehouse: Storage, sub: SubTopology, node: Processor, text: str) -> list[bytes]:
    """The key's bytes; for a deduplication by key and id: those of both."""
    key_type = open_archive(warehouse, sub.sources[0]).schema.field("key").type if sub.sources else pa.string()
    if isinstance(node.spec, DeduplicateSpec) and node.spec.kind == "by_key_value":
        try:
            key, identifier = json.loads(text)
        except (ValueError, TypeError) as error:
            step = """give both: '["JFK", "B6 725"]'"""
            raise ConfigurationError("this store is by key and id", store=node.spec.store, next_step=step) from error
        id_type = pa.infer_type([identifier])
        return [_serialized(key, key_type), _serialized(identifier, id_type)]
    is_text = pa.types.is_string(key_type)
    try:
        return [_serialized(text if is_text else json.loads(text), key_type)]
    except (ValueError, pa.ArrowException) as error:
        step = f"give it as JSON of the type {key_type}"
        raise ConfigurationError(f"{text!r} is no key of this store", next_step=step) from error


def _serialized(value: object, arrow_type: pa.DataType) -> bytes:
    data: bytes = serde_for(arrow_type).serialize(pa.array([value], arrow_type))[0].as_py()
    return data


def _partition(commit: Commit, sub: SubTopology, keys: list[bytes]) -> int:
    tasks = sum(task_id.partition("_")[0] == str(sub.index) for task_id in commit.tasks)
    return int(partition_for(pa.array(keys[:1], pa.binary()), tasks)[0])


def _open(warehouse: Storage, job: str, commit: Commit, task_id: str, settings: Settings) -> RocksDbBackend:
    """The task's state as of the commit, read-only."""
    local = Path(settings.state_dir)
    directory = local / "inspect" / job / str(commit.commit) / task_id
    if not directory.exists():
        cache = local / "cache" / job / task_id
        checkpoints = Checkpoints(warehouse, JobLayout(job).state(task_id), cache)
        checkpoints.restore(commit.tasks[task_id].state, directory)
    return RocksDbBackend(directory, create=False, read_only=True)


def _rows(
    backend: RocksDbBackend,
    node: Processor,
    keys: list[bytes],
    as_of: str | None,
    task: CommittedTask,
    warehouse: Storage,
    sub: SubTopology,
) -> Iterator[Row]:
    """What the store of ``node`` holds."""
    spec: Any = node.spec.counted if isinstance(node.spec, Distinct) else node.spec
    time_ms = None if as_of is None else _milliseconds(as_of)
    clock = task.position.clocks.get(node.name, {}).get("store_time", -1)
    if isinstance(spec, TableSource):
        parents = {source.name: source.topic for source in sub.all_sources}
        value_type = open_archive(warehouse, parents[node.parents[0]]).schema.field("value").type
        yield from _version(backend, spec, keys[0], time_ms, value_type)
    elif isinstance(spec, WindowAggregate):
        retention_ms = spec.retention_ms or spec.windows.retention_ms
        store = WindowStore(backend, spec.store, retention_ms=retention_ms, stream_time=clock)
        yield from _windows(store, keys[0], time_ms, spec.windows.size_ms, holds_end=False)
    elif isinstance(spec, SlidingAggregate):
        # Of sliding windows and sessions the longer retention of the two modes: what the store holds, it shows.
        store = WindowStore(backend, spec.store, retention_ms=spec.seen_ms("kip"), stream_time=clock)
        yield from _windows(store, keys[0], time_ms, spec.windows.time_difference_ms, holds_end=True)
    elif isinstance(spec, SessionAggregate):
        yield from _sessions(backend, spec, keys[0], time_ms, clock)
    elif isinstance(spec, DeduplicateSpec):
        framed = keys[0] if len(keys) == 1 else len(keys[0]).to_bytes(4, "big") + keys[0] + keys[1]
        entry = DeduplicationStore(backend, spec.store).fetch(framed)
        if entry is not None:
            yield time_text(entry.timestamp), {"partition": entry.partition, "offset": entry.offset}
    elif isinstance(spec, Suppress):
        yield from _buffered(backend, spec, keys[0])


def _version(
    backend: RocksDbBackend, spec: TableSource, key: bytes, as_of_ms: int | None, value_type: pa.DataType
) -> Iterator[Row]:
    store = VersionedKeyValueStore(
        backend,
        spec.store,
        history_retention_ms=spec.history_retention_ms,
        segment_interval_ms=spec.segment_interval_ms,
    )
    found = store.get(key) if as_of_ms is None else store.get(key, as_of_ms)
    if found is not None:
        data = pa.array([found.value], pa.binary())
        yield f"since {time_text(found.timestamp)}", serde_for(value_type).deserialize(data)[0].as_py()


def _windows(store: WindowStore, key: bytes, time_ms: int | None, length_ms: int, *, holds_end: bool) -> Iterator[Row]:
    first, last = (0, _FOREVER) if time_ms is None else (time_ms - length_ms + (not holds_end), time_ms)
    for row in store.fetch_range(key, first, last):
        window = f"{time_text(row.start_ms)} to {time_text(row.start_ms + length_ms)}"
        yield window, _decoded(row.row, store.header.schema)


def _sessions(
    backend: RocksDbBackend, spec: SessionAggregate, key: bytes, time_ms: int | None, stream_time: int
) -> Iterator[Row]:
    store = SessionStore(backend, spec.store, retention_ms=spec.seen_ms("kip"), stream_time=stream_time)
    for row in store.fetch(key):
        if time_ms is None or row.start_ms <= time_ms <= row.end_ms:
            session = f"{time_text(row.start_ms)} to {time_text(row.end_ms)}"
            yield session, _decoded(row.row, store.header.schema)


def _buffered(backend: RocksDbBackend, spec: Suppress, key: bytes) -> Iterator[Row]:
    store = SuppressionBufferStore(backend, spec.store, suffix_words=spec.suffix_words)
    for row in store.all():
        if row.key == key:
            when = f"leaves after {time_text(row.time_ms + spec.wait_ms)}"
            found = _decoded(row.row, store.header.schema)
            yield when, found["value"] if isinstance(found, dict) else found


def _decoded(row: bytes, schema: pa.Schema | None) -> object:
    if schema is None:
        return row.hex()
    return serde_for(pa.struct(list(schema))).deserialize(pa.array([row], pa.binary()))[0].as_py()


def _milliseconds(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        step = "write it like 2013-06-01T12:00Z"
        raise ConfigurationError(f"{text!r} is no time", setting="--as-of", next_step=step) from error
    if time.tzinfo is None:
        step = "write it like 2013-06-01T12:00Z"
        raise ConfigurationError("the time has no time zone", setting="--as-of", next_step=step)
    return round(time.timestamp() * 1000)
