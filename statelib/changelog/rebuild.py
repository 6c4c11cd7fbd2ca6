"""Rebuilds a task's state from the changelogs of its stores alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.changelog.restore import restore
from statelib.columns.schema_text import decode_schema
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, Runs, changelog_topic, rolled_back
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import StoreDescription
    from statelib.storage import Storage
    from statelib.stores.backend import Backend
    from statelib.topics.archive import TopicArchive


def rebuild(warehouse: Storage, commit: Commit, task_id: str, backend: Backend) -> dict[str, int]:
    """Writes the stores of a task as of a commit, from their changelogs.

    Args:
        warehouse: Root of all durable data. The commit must be published.
        commit: The commit.
        task_id: The task.
        backend: An empty one.

    Returns:
        How many records each store's changelog had.

    Raises:
        ConfigurationError: A store of the task has no changelog, or nobody wrote the topology down; or a rollback has
            taken the commit back, and with it its part of the changelogs.
        CorruptedDataError: A changelog does not go as far as the commit.
    """
    logged = logged_stores(warehouse, commit, task_id)
    return {store.name: _rebuild(warehouse, commit, task_id, store, backend) for store in logged}


def logged_stores(warehouse: Storage, commit: Commit, task_id: str) -> tuple[StoreDescription, ...]:
    """The stores of a task, all of which can be rebuilt as of a commit. Args and errors as of `rebuild`."""
    _check_standing(warehouse, commit)
    described = Runs(warehouse, commit.job).topology(commit.fingerprint)
    if described is None:
        raise ConfigurationError(
            f"there is no description of the topology of commit {commit.commit}",
            job=commit.job,
            next_step="run the job once more with this release, which writes it",
        )
    sub, _, partition = task_id.partition("_")
    stores = tuple(store for store in described.stores if store.sub_topology == int(sub))
    offsets = commit.tasks[task_id].sink_offsets
    ends = {store.name: offsets.get(f"{changelog_topic(commit.job, store.name)}/{partition}") for store in stores}
    silent = [name for name, end in ends.items() if end is None]
    if silent:
        raise ConfigurationError(
            f"a store of the task has no changelog: {', '.join(silent)}",
            job=commit.job,
            task=task_id,
            next_step="restore the state's files from a copy of the warehouse, roll back to an undamaged commit"
            f" (hindstream state verify {commit.job} names it), or give the job a new name: it then replays all",
        )
    for name, end in ends.items():
        _open(warehouse, changelog_topic(commit.job, name), int(partition), end or 0)
    return stores


def _check_standing(warehouse: Storage, commit: Commit) -> None:
    log = CommitLog(warehouse, commit.job)
    by = rolled_back(log.read(n) for n in range(commit.commit + 1, log.head_number() + 1)).get(commit.commit)
    if by is not None:
        raise ConfigurationError(
            f"commit {by} has rolled back commit {commit.commit}: the changelogs hold other records now",
            job=commit.job,
            next_step="rebuild the state of another commit",
        )


def _rebuild(warehouse: Storage, commit: Commit, task_id: str, store: StoreDescription, backend: Backend) -> int:
    position = commit.tasks[task_id].position
    partition = int(task_id.partition("_")[2])
    topic = changelog_topic(commit.job, store.name)
    end = position.sink_offsets[f"{topic}/{partition}"]
    clocks = position.clocks.get(store.node, {})
    try:
        return restore(
            store,
            decode_schema(store.arrow_schema),
            changelog_records(warehouse, topic, partition, end),
            backend,
            clock_ms=position.stream_time if store.kind == "deduplication" else clocks.get("store_time", NO_TIMESTAMP),
            clocks=clocks,
            semantics=commit.semantics or "kip",
            # It may have been a plain store; as shipped, refused ones are logged.
            takes_late=(commit.semantics or "kip") == "kip",
        )
    except CorruptedDataError as error:
        step = error.next_step or "restore the archive of the changelog from a copy"
        place = {"topic": topic, "partition": partition, **error.place}
        raise CorruptedDataError(error.what, next_step=step, **place) from error


def changelog_records(warehouse: Storage, topic: str, partition: int, end: int) -> Iterator[pa.RecordBatch]:
    """A partition of a changelog from its beginning to the offset ``end``.

    Raises:
        CorruptedDataError: It does not go that far.
    """
    archive = _open(warehouse, topic, partition, end)
    if archive is None:
        return
    for batch in archive.reader(partition, 0, end):
        yield pa.RecordBatch.from_arrays(
            [batch.column("key"), batch.column("value"), batch.column("timestamp").cast(pa.int64())],
            ["key", "value", "timestamp"],
        )


def _open(warehouse: Storage, topic: str, partition: int, end: int) -> TopicArchive | None:
    """The archive of a changelog that goes as far as ``end``; None: there is nothing to be read."""
    if end == 0:
        return None
    archive = open_archive_if_present(warehouse, topic)
    if archive is None or archive.end_offsets()[partition] < end:
        raise CorruptedDataError(
            f"the changelog ends before offset {end}, where the commit's state does",
            topic=topic,
            partition=partition,
            file=warehouse.uri(f"topics/{topic}"),
            next_step="publish the commit (hindstream publish), or restore the archive from a copy",
        )
    return archive
