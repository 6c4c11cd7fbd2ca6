"""What the runbooks are about, brought about in a folder with the job `rates`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable

from statelib.commits import CommitLog, take_hold
from statelib.commits.run.audit import record_audit
from statelib.commits.run.stage import stage
from statelib.documents.manifests import Audit
from statelib.documents.plans import Plan
from statelib.job.job import load_job
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JOB = '''\
"""Rates by currency."""

from datetime import timedelta

from statelib import Job, Materialized, Stores, StreamsBuilder, expect

CHECKS = {{"rates-seen": (expect("expect_column_values_to_be_between", column="value", min_value=0),)}}

builder = StreamsBuilder("rates")
builder.table("rate", Materialized.as_({store})).to_stream().to("rates-seen")
job = Job("rates", builder.build(), expectations=CHECKS)
'''
PLAIN, VERSIONED = '"rates"', 'Stores.persistent_versioned_key_value_store("rates", timedelta(minutes=5))'
SETTINGS = """\
warehouse = "warehouse"
spark_master = "local[2]"
engine = "local"

[storage_options]
aws_endpoint_url = "http://127.0.0.1:9"
aws_region = "eu-central-1"
allow_http = "true"
"""
MINUTE = 60_000
IN_2100 = 4_102_444_800_000
TYPES = (pa.string(), pa.int64())


def bring_about(name: str) -> None:
    """Starts over in the current directory, unless the situation is one that goes on."""
    _SITUATIONS[name]()


def _job(store: str) -> None:
    Path("jobs").mkdir(exist_ok=True)
    Path("jobs/rates.py").write_text(JOB.format(store=store))


def _anew(
    minutes: Sequence[int] = (), *, changelogs: Sequence[str] = ("rates",), wrong: bool = False, future: bool = False
) -> Pipeline:
    """A record every 6 s for 6 minutes; slices of the first have been replayed, with the plain store."""
    for path in ("warehouse", "backup", ".hindstream"):
        shutil.rmtree(path, ignore_errors=True)
    Path("hindstream.toml").write_text(SETTINGS)
    _job(PLAIN)
    topology = load_job("jobs/rates.py:job").topology
    warehouse, state_dir = str(Path("warehouse").absolute()), str(Path(".hindstream").absolute())
    pipeline = Pipeline(Path(), topology, "rates", warehouse=warehouse, changelogs=changelogs)
    pipeline._settings = replace(pipeline._settings, state_dir=state_dir)
    rows = [(f"c{n % 5}", -5 if wrong and n == 7 else n, n * 6_000) for n in range(60)]
    if future:
        rows[25] = (*rows[25][:2], IN_2100)
    pipeline.archive("rate", rows, TYPES, 2, archived_at_ms=10 * MINUTE)
    for until in minutes:
        pipeline.run(until * MINUTE)
    return pipeline


def _stamped_2100() -> None:
    """A record in the middle is stamped 2100; the slice of the first two minutes has been replayed."""
    pipeline = _anew(future=True)
    pipeline.run(2 * MINUTE)


def _two_commits(changelogs: Sequence[str] = ("rates",)) -> None:
    _anew((2, 4), changelogs=changelogs)
    shutil.copytree("warehouse", "backup")


def _harm(pattern: str) -> None:
    """Flips a bit in the middle of each file of a pattern; nothing else has a copy of it on this host."""
    shutil.rmtree(".hindstream")
    files = sorted(Path("warehouse").glob(pattern))
    assert files, pattern
    for file in files:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 4
        file.write_bytes(data)


def _log() -> CommitLog:
    return CommitLog(Storage("warehouse"), "rates")


def _state_files(commit: int) -> set[str]:
    tasks = _log().read(commit).tasks
    return {f"jobs/rates/state/{name}/{file.stored_name}" for name, task in tasks.items() for file in task.state.files}


def _damaged_state() -> None:
    _two_commits()
    _harm(min(_state_files(2)))


def _damaged_newest_state() -> None:
    _two_commits(changelogs=())
    _harm(min(_state_files(2) - _state_files(1)))


def _damaged_commit() -> None:
    _two_commits()
    _harm("jobs/rates/commits/*2.json")


def _damaged_source() -> None:
    _two_commits()
    _harm("topics/rate/**/*.parquet")


def _damaged_sink() -> None:
    _two_commits()
    _harm("topics/rates-seen/" + next(sink.file.path for sink in _log().read(2).sinks if sink.topic == "rates-seen"))


def _damaged_log() -> None:
    _two_commits()
    _harm("topics/rate/_delta_log/*1.json")


def _wrong_record() -> None:
    _anew(wrong=True)


def _mended_record() -> None:
    _anew()


def _broken_off() -> None:
    _anew((2,))
    _job(VERSIONED)
    take_hold(Storage("warehouse"), "rates", "migration-of-rates", reason="migration of rates", now_ms=0)


def _versioned() -> None:
    _anew((4,))
    _job(VERSIONED)


def _replayed(pipeline: Pipeline, until_ms: int) -> Plan:
    plan = pipeline.plan(until_ms)
    assert isinstance(plan, Plan)
    stage(pipeline.warehouse, plan, pipeline.replay(plan))
    return plan


def _overtaken() -> None:
    pipeline = _anew((2,))
    plan = _replayed(pipeline, 4 * MINUTE)
    passed = Audit(run_id=plan.run_id, success=True, checks=(), data_docs=None, seconds=0)
    record_audit(pipeline.warehouse, plan, passed)
    pipeline.run(5 * MINUTE)


def _killed() -> None:
    _replayed(_anew((2,)), 6 * MINUTE + 1)


def _nobody() -> None:
    _anew()


def _recreated_source() -> None:
    """With the same records at the same offsets, in another table."""
    _two_commits()
    archive = TopicArchive.open("warehouse/topics/rate")
    records = [archive.reader(partition).read_all() for partition in range(archive.partitions)]
    shutil.rmtree("warehouse/topics/rate")
    anew = TopicArchive.create(str(Path("warehouse/topics/rate").absolute()), archive.schema, archive.partitions)
    files = []
    for partition, table in enumerate(records):
        with anew.writer(partition, attempt="anew") as writer:
            writer.write(table)
            files += writer.close()
    anew.commit(files, app_id="anew", app_version=1)


def _delete_by_another_program(topic: str) -> None:
    _two_commits()
    DeltaTable(f"warehouse/topics/{topic}").delete()


def _no_sink() -> None:
    _two_commits()
    shutil.rmtree("warehouse/topics/rates-seen")


def _no_runs() -> None:
    _two_commits()
    shutil.rmtree("warehouse/jobs/rates/runs")


_SITUATIONS: dict[str, Callable[[], None]] = {
    "two commits": _two_commits,
    "a job whose store is versioned now": _versioned,
    "a wrong record in the source": _wrong_record,
    "a record of the source is stamped 2100": _stamped_2100,
    "the record is mended": _mended_record,
    "a migration that was broken off": _broken_off,
    "a state file is damaged": _damaged_state,
    "a state file of the newest commit is damaged": _damaged_newest_state,
    "a commit's document is damaged": _damaged_commit,
    "a file of the source is damaged": _damaged_source,
    "a file of a sink is damaged": _damaged_sink,
    "the source's Delta log is damaged": _damaged_log,
    "a source was deleted and made anew": _recreated_source,
    "another program has deleted records of the source": partial(_delete_by_another_program, "rate"),
    "another program has deleted records of the sink": partial(_delete_by_another_program, "rates-seen"),
    "the sink's archive is gone": _no_sink,
    "the folders of the runs are gone": _no_runs,
    "a store that nobody serves": _nobody,
    "another driver has committed first": _overtaken,
    "a driver that was killed after its replay": _killed,
}
