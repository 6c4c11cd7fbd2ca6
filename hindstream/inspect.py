"""``hindstream inspect``: what a store holds of a key, read from the checkpoint of a commit.

Only the task that has the key is restored, into a folder of its own below ``state_dir``, and opened read-only; later
calls find it there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from hindstream.store_entries import Entry, Place, entries, stores_of
from statelib.batch import NO_TIMESTAMP
from statelib.checkpoint import Checkpoints
from statelib.commits import CommitLog, JobLayout, check_restorable
from statelib.commits.archives import open_archive
from statelib.errors import ConfigurationError
from statelib.operators.deduplicate import DeduplicateSpec
from statelib.operators.mapping import evaluate
from statelib.operators.process import Process
from statelib.serdes import serde_for
from statelib.storage import Storage
from statelib.stores.rocksdb import RocksDbBackend
from statelib.task import forwarded_types
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from statelib.config import Settings
    from statelib.job import Job
    from statelib.manifests import Commit, CommittedTask
    from statelib.topology import Processor, SubTopology, Topology


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
    warehouse = Storage(settings.warehouse, settings.store_options)
    made = _commit(warehouse, job.name, commit)
    sub, node = _owner(job, store)
    asked = _Asked(store, node, _types(warehouse, job.topology), None if as_of is None else _milliseconds(as_of))
    keys = asked.keys(key)
    rows: list[Entry] = []
    for task_id in _tasks(made, sub, node, keys[0]):
        backend = _open(warehouse, job.name, made, task_id, settings)
        try:
            rows += entries(node.spec, asked.place(backend, keys, made.tasks[task_id]))
        finally:
            backend.close()
    table = Table(
        "when",
        "value",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        title=f"{key} in {store}, as of commit {made.commit}",
    )
    for when, value in rows:
        table.add_row(when, json.dumps(value, default=str, ensure_ascii=False))
    Console(file=sys.stdout).print(table if rows else f"{store} holds nothing of {key} there.")


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
            known += stores_of(node)
            if store in stores_of(node):
                return sub, node
    step = f"one of: {', '.join(known)}" if known else "the job is stateless"
    raise ConfigurationError("the job has no such store", job=job.name, store=store, next_step=step)


def _types(warehouse: Storage, topology: Topology) -> dict[str, pa.Schema]:
    """What each node forwards."""
    topics = {topic for sub in topology.sub_topologies for topic in sub.sources}
    return forwarded_types(topology, {topic: open_archive(warehouse, topic).reader(0, 0, 0) for topic in topics})


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which store, and of what time."""

    store: str
    node: Processor
    types: Mapping[str, pa.Schema]
    at_ms: int | None

    @property
    def _parent(self) -> pa.Schema:
        """What comes to the node that has the store."""
        return self.types[self.node.parents[0]]

    def keys(self, text: str) -> list[bytes]:
        """The key's bytes; for a deduplication by key and id: those of both."""
        spec, key_type = self.node.spec, self._parent.field("key").type
        if not isinstance(spec, DeduplicateSpec) or spec.id is None:
            return [_parsed(text, key_type)]
        nothing = pa.RecordBatch.from_pylist([], self._parent.append(pa.field("timestamp", pa.int64())))
        id_type = evaluate(spec.id, nothing, self.node.name).type
        if spec.kind == "by_id":
            return [_parsed(text, id_type)]
        try:
            key, identifier = json.loads(text)
            return [_serialized(key, key_type), _serialized(identifier, id_type)]
        except (ValueError, TypeError, pa.ArrowException) as error:
            step = f"""give both, of the types {key_type} and {id_type}: '["JFK", "B6 725"]'"""
            raise ConfigurationError("this store is by key and id", store=self.store, next_step=step) from error

    def place(self, backend: RocksDbBackend, keys: list[bytes], task: CommittedTask) -> Place:
        """Where to look."""
        framed = keys[0] if len(keys) == 1 else len(keys[0]).to_bytes(4, "big") + keys[0] + keys[1]
        store_time_ms = task.position.clocks.get(self.node.name, {}).get("store_time", NO_TIMESTAMP)
        times_ms = store_time_ms, task.position.stream_time
        return Place(backend, self.store, framed, self.at_ms, *times_ms, self.types[self.node.name])


def _parsed(text: str, key_type: pa.DataType) -> bytes:
    try:
        return _serialized(text if pa.types.is_string(key_type) else json.loads(text), key_type)
    except (ValueError, pa.ArrowException) as error:
        step = f"give it as JSON of the type {key_type}"
        raise ConfigurationError(f"{text!r} is no key of this store", next_step=step) from error


def _serialized(value: object, arrow_type: pa.DataType) -> bytes:
    data: bytes = serde_for(arrow_type).serialize(pa.array([value], arrow_type))[0].as_py()
    return data


def _tasks(commit: Commit, sub: SubTopology, node: Processor, key: bytes) -> list[str]:
    """The tasks that may hold the key; a custom processor may have put it anywhere."""
    tasks = sum(task_id.partition("_")[0] == str(sub.index) for task_id in commit.tasks)
    if isinstance(node.spec, Process):
        return [f"{sub.index}_{partition}" for partition in range(tasks)]
    return [f"{sub.index}_{partition_for(pa.array([key], pa.binary()), tasks)[0]}"]


def _open(warehouse: Storage, job: str, commit: Commit, task_id: str, settings: Settings) -> RocksDbBackend:
    """The task's state as of the commit, read-only."""
    local = Path(settings.state_dir)
    directory = local / "inspect" / job / str(commit.commit) / task_id
    if not directory.exists():
        cache = local / "cache" / job / task_id
        checkpoints = Checkpoints(warehouse, JobLayout(job).state(task_id), cache)
        checkpoints.restore(commit.tasks[task_id].state, directory)
    return RocksDbBackend(directory, create=False, read_only=True)


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
