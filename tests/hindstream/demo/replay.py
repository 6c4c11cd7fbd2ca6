"""Replays the demo in this process: every phase but Spark, Airflow and Great Expectations."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from hindstream.demo import DELAYS, NAME
from hindstream.demo.job import job
from hindstream.spark.phases.task_work import stages_of
from statelib.commits import NothingToDo, commit, plan, publish, record_audit, stage
from statelib.commits.archives import open_archive
from statelib.documents.manifests import Audit, Staged
from statelib.serdes import serde_for
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from statelib.task import replay_here


def replay(warehouse: Storage, until_ms: int | None, state_dir: Path, **settings: object) -> Staged | NothingToDo:
    """One slice, committed and published."""
    demo = job()
    planned = plan(demo, warehouse, now_ms=0, until_ms=until_ms)
    if isinstance(planned, NothingToDo):
        return planned
    given = {"warehouse": warehouse.uri(""), "state_dir": str(state_dir), **settings}
    stages = stages_of(demo, planned, warehouse, load_settings(given, environ={}))
    staged = stage(warehouse, planned, replay_here(stages, planned, attempt="0", clock=time.perf_counter))
    record_audit(warehouse, planned, Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0.0))
    commit(warehouse, planned, now_ms=0)
    publish(warehouse, NAME)
    return staged


def published(warehouse: Storage, topic: str = DELAYS) -> dict[int, pa.Table]:
    """All records of a topic's archive by partition: offsets, timestamps, keys, values."""
    archive = open_archive(warehouse, topic)
    return {p: archive.reader(p).read_all().combine_chunks() for p in range(archive.partitions)}


def equal_bytes(one: dict[int, pa.Table], other: dict[int, pa.Table]) -> bool:
    """Whether both hold the same records, bit for bit: floats, NaN and signs of zero included."""
    return {p: _bytes(table) for p, table in one.items()} == {p: _bytes(table) for p, table in other.items()}


def _bytes(table: pa.Table) -> list[bytes | None]:
    """Each record in the bytes that Hindstream's own row format gives it."""
    return [
        data
        for batch in table.to_batches()
        for data in serde_for(batch.to_struct_array().type).serialize(batch.to_struct_array()).to_pylist()
    ]
