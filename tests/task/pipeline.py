"""Runs jobs slice by slice in this process, over real archives, stores and commits, without Spark."""

from __future__ import annotations

import itertools
import shutil
import time
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.checkpoint import Checkpoints
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.layout import CommitLog, topic_path
from statelib.commits.publication.publish import publish
from statelib.commits.run.audit import reconcile, record_audit
from statelib.commits.run.commit import commit
from statelib.commits.run.plan import NothingToDo, plan
from statelib.commits.run.stage import stage
from statelib.documents.manifests import Audit, Staged
from statelib.documents.plans import Leeway, Plan
from statelib.operators.suppress.store import resolve_references
from statelib.storage import Storage
from statelib.stores.rocksdb import RocksDbBackend
from statelib.stores.spec import families_of
from statelib.task import Stages, TaskSettings, describe_topology, replay_here
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.commits.sources.checks import EndOffsets
    from statelib.documents.topologies import TopologyDescription
    from statelib.settings.max_future import MaxFuture
    from statelib.settings.semantics import EndOfInput
    from statelib.topology import Topology

_attempts = itertools.count()


class Pipeline:
    """A job with a warehouse of its own.

    Args:
        directory: For the state, and for the warehouse unless that is elsewhere.
        topology: What to run.
        name: The job's.
        attempt: Names this process's attempts.
        warehouse: Where it is; None: below ``directory``.
        changelogs: Stores that keep one.
        max_future: Which records are from the future; None: none is.
        sample_keys: The share of the keys that are replayed; None: all.
        code: What outcomes of single tasks are kept with; None: they are not.
        settings: Of `TaskSettings`.
    """

    def __init__(
        self,
        directory: Path,
        topology: Topology,
        name: str = "job",
        attempt: str = "t",
        warehouse: str | None = None,
        changelogs: Sequence[str] = (),
        max_future: MaxFuture | None = None,
        sample_keys: float | None = None,
        code: str | None = None,
        **settings: Any,
    ) -> None:
        self.name = name
        self.topology = topology
        self.attempt = attempt
        warehouse = warehouse or str(directory / "warehouse")
        self._settings = TaskSettings(warehouse, str(directory / "state"), **settings)
        self.warehouse = Storage(warehouse, self._settings.storage_options)
        self._changelogs = changelogs
        self._max_future = max_future
        self._sample_keys = sample_keys
        self._code = code
        self.now_ms = 0

    def with_settings(self, **settings: Any) -> Pipeline:
        """The same job with some settings changed."""
        changed = copy(self)
        changed._settings = replace(self._settings, **settings)
        return changed

    def archive(self, topic: str, rows: Sequence[tuple[Any, Any, int | None]], types: tuple[pa.DataType, pa.DataType],
                partitions: int = 1, archived_at_ms: int = 0) -> None:  # fmt: skip
        """Adds (key, value, timestamp) to a topic, which is made if it is not there."""
        uri = self.warehouse.uri(topic_path(topic))
        archive = TopicArchive.ensure(
            uri, topic_schema(*types), partitions, topic=topic, options=self.warehouse.options
        )
        keys, values, timestamps = zip(*rows, strict=True) if rows else ((), (), ())
        table = pa.table(
            {
                "key": pa.array(keys, types[0]),
                "value": pa.array(values, types[1]),
                "timestamp": pa.array(timestamps, pa.timestamp("ms", "UTC")),
            }
        )
        version = (archive.last_transaction("test") or 0) + 1
        append_records(
            archive,
            table,
            attempt=f"a{version}",
            app_id="test",
            app_version=version,
            modification_time_ms=archived_at_ms,
        )

    def plan(
        self,
        until_ms: int | None = None,
        end_of_input: EndOfInput = "hold",
        reset_stores: Sequence[str] = (),
        migrate_stores: Sequence[str] = (),
        end_offsets: EndOffsets | None = None,
        fill_stores: Sequence[str] = (),
        leeway: Leeway | None = None,
    ) -> Plan | NothingToDo:
        """Plans a slice."""
        return plan(
            self,
            self.warehouse,
            now_ms=self.now_ms,
            until_ms=until_ms,
            end_offsets=end_offsets,
            end_of_input=end_of_input,
            semantics=self._settings.semantics,
            describe=self._described,
            reset_stores=reset_stores,
            migrate_stores=migrate_stores,
            fill_stores=fill_stores,
            changelogs=self._changelogs,
            max_future=self._max_future,
            sample_keys=self._sample_keys,
            leeway=leeway,
        )

    def _described(self, archives: Mapping[str, TopicArchive]) -> TopologyDescription:
        return describe_topology(self.topology, {name: archive.reader(0, 0, 0) for name, archive in archives.items()})

    def run(
        self,
        until_ms: int | None = None,
        end_of_input: EndOfInput = "hold",
        reset_stores: Sequence[str] = (),
        migrate_stores: Sequence[str] = (),
        end_offsets: EndOffsets | None = None,
        fill_stores: Sequence[str] = (),
        leeway: Leeway | None = None,
    ) -> Staged | NothingToDo:
        """One slice, committed and published; every record must be accounted for."""
        planned = self.plan(until_ms, end_of_input, reset_stores, migrate_stores, end_offsets, fill_stores, leeway)
        if isinstance(planned, NothingToDo):
            return planned
        staged = stage(self.warehouse, planned, self.replay(planned))
        wrong = [row for row in reconcile(self.topology, planned, staged) if row.difference]
        assert not wrong, wrong
        record_audit(
            self.warehouse, planned, Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0)
        )
        commit(self.warehouse, planned, now_ms=self.now_ms)
        publish(self.warehouse, self.name)
        return staged

    def replay(self, planned: Plan) -> Staged:
        """Stages the slice."""
        log = CommitLog(self.warehouse, self.name)
        previous = log.read(planned.commit - 1) if planned.commit > 1 else None
        stages = Stages(self.topology, planned, previous, self.warehouse, self._settings, code=self._code)
        return replay_here(stages, planned, attempt=f"{self.attempt}{next(_attempts)}", clock=time.perf_counter)

    def state(self) -> dict[str, dict[str, list[tuple[bytes, bytes]]]]:
        """All that the stores hold as of the last commit, by task and family; restored as the next slice would.

        Buffers of suppress have in them what they may refer to in other stores.
        """
        log = CommitLog(self.warehouse, self.name)
        content = {}
        for task_id, task in log.read(log.head_number()).tasks.items():
            sub = self.topology.sub_topologies[int(task_id.partition("_")[0])]
            stores = [store for processor in sub.processors for store in processor.spec.state_stores()]
            families = families_of(stores)
            directory = Path(self._settings.state_dir) / "looked-at" / task_id
            if families:
                cache = directory.with_suffix(".cache")
                Checkpoints(self.warehouse, self.name, task_id, cache).restore(task.state, directory)
                backend = RocksDbBackend(directory, create=False)
                resolve_references(backend, [store.name for store in stores if store.kind == "suppression-buffer"])
                content[task_id] = {family: list(backend.scan(family)) for family in families}
                backend.close()
                shutil.rmtree(directory)
        return content

    def output_if_present(self, topic: str) -> list[tuple[int, int, Any, Any, int]]:
        """As `output`; nothing where nothing has been written."""
        return self.output(topic) if open_archive_if_present(self.warehouse, topic) is not None else []

    def output(self, topic: str) -> list[tuple[int, int, Any, Any, int]]:
        """(partition, offset, key, value, timestamp) of all published records."""
        archive = open_archive(self.warehouse, topic)
        records = []
        for partition in range(archive.partitions):
            for row in archive.reader(partition).read_all().to_pylist():
                timestamp = round(row["timestamp"].timestamp() * 1000)
                records.append((partition, row["offset"], row["key"], row["value"], timestamp))
        return records
