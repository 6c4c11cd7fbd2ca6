"""Small files of sources are merged by who reads them: nobody's answer changes, and nobody's file goes too early."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from statelib.commits import FilePolicy, Retention, maintain, plan
from statelib.commits.archives import open_archive
from statelib.commits.rewriting.source_files import compact_topic
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from tests.commits import toy
from tests.commits.rewriting.test_rewrite import at
from tests.commits.toy import DAY

pytestmark = pytest.mark.thorough

DAYS = 12
LATER = 365 * DAY
STEPS = [
    "rewrite.written",
    "rewrite.before-create",
    "rewrite.created",
    "rewrite.before-commit",
    "rewrite.committed",
    "rewrite.before-delete",
    "rewrite.deleted",
]
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.commits.rewriting.test_source_files"])


def policy(attempt="m", *, keep_ms=DAY, target=4_800, **options):
    return FilePolicy(attempt, target_bytes=target, keep_replaced_ms=keep_ms, **options)


def upkeep(warehouse, attempt="m", job="counting", *, now_ms=LATER, **options):
    return maintain(warehouse, job, Retention(1), now_ms=now_ms, files=policy(attempt, **options))


def compact(warehouse, topic="events", attempt="c", *, now_ms=LATER, despite_others=False, **options):
    return compact_topic(warehouse, topic, policy(attempt, **options), now_ms=now_ms, despite_others=despite_others)


def records(warehouse, topic="events", version=None):
    archive = open_archive(warehouse, topic, version)
    return [archive.reader(p).read_all() for p in range(archive.partitions)]


def live(warehouse, topic="events"):
    return {f"topics/{topic}/{file.path}" for file in open_archive(warehouse, topic).all_files()}


def stored(warehouse, topic="events"):
    return {entry.path for entry in warehouse.list(f"topics/{topic}") if "partition=" in entry.path}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A warehouse with a source of twelve small commits."""
    root = tmp_path_factory.mktemp("made")
    for day in range(DAYS):
        toy.archive_events(Storage(str(root / "warehouse")), day, per_day=4)
    return root / "warehouse"


@pytest.fixture
def warehouse(tmp_path, made):
    shutil.copytree(made, tmp_path / "warehouse")
    return Storage(str(tmp_path / "warehouse"))


def test_a_job_merges_its_source_and_goes_on(warehouse, run_slice):
    before = records(warehouse)
    assert upkeep(warehouse).merged_files == 0, "no job has read it"
    run_slice(until_ms=3 * DAY)
    version = open_archive(warehouse, "events").version
    done = upkeep(warehouse)
    assert done.merged_files > done.merged_into > 0
    assert len(live(warehouse)) < 2 * DAYS
    assert records(warehouse) == before == records(warehouse, version=version), "who planned before still reads"
    run_slice()
    assert sum(map(len, records(warehouse, "counts"))) == sum(map(len, before))
    toy.archive_events(warehouse, DAYS, per_day=4)
    run_slice()
    assert sum(map(len, records(warehouse, "counts"))) == sum(map(len, records(warehouse))) == 4 * (DAYS + 1)


def test_what_was_replaced_goes_when_its_time_has_come(warehouse, run_slice):
    run_slice()
    replaced = live(warehouse)
    upkeep(warehouse)
    replaced -= live(warehouse)
    assert replaced <= stored(warehouse)
    upkeep(warehouse, "again", now_ms=LATER + DAY - 1)
    assert replaced <= stored(warehouse)
    assert upkeep(warehouse, "late", now_ms=LATER + DAY).deleted_files >= len(replaced)
    assert not replaced & stored(warehouse)
    upkeep(warehouse, "last", now_ms=LATER + 2 * DAY)
    assert live(warehouse) == stored(warehouse)


def test_a_plan_of_any_job_keeps_what_it_reads(warehouse, run_slice, scratch):
    run_slice()
    planned = plan(toy.job("other", sink="others"), warehouse, now_ms=1)
    upkeep(warehouse, keep_ms=0)
    upkeep(warehouse, "again", keep_ms=0, now_ms=LATER + 1)
    archive = open_archive(warehouse, "events", planned.sources[0].delta_version)
    assert {f"topics/events/{file.path}" for file in archive.all_files()} <= stored(warehouse)


@pytest.mark.parametrize(
    "step", ["rewrite.written", "rewrite.before-create", "rewrite.created", "rewrite.before-commit"]
)
def test_two_jobs_that_merge_it_at_once(warehouse, run_slice, step):
    run_slice()
    run_slice(job=toy.job("other", sink="others"))
    before = records(warehouse)
    with at(step, lambda: upkeep(warehouse, "b", "other")):
        upkeep(warehouse, "a")
    assert records(warehouse) == before
    assert sum(file.rows for file in open_archive(warehouse, "events").all_files()) == 4 * DAYS
    for n, job in enumerate(("counting", "other", "counting")):
        upkeep(warehouse, f"later{n}", job, now_ms=LATER + (n + 1) * DAY)
    assert live(warehouse) == stored(warehouse)


@pytest.mark.parametrize("step", ["rewrite.written", "rewrite.before-commit"])
def test_somebody_adds_meanwhile(warehouse, run_slice, step):
    run_slice()
    with at(step, lambda: toy.archive_events(warehouse, DAYS, per_day=4)):
        assert upkeep(warehouse).merged_files
    found = [row for table in records(warehouse) for row in table["value"].to_pylist()]
    assert sorted(found) == list(range(4 * (DAYS + 1)))


def test_a_topic_that_a_job_writes_is_left_to_it(warehouse, run_slice):
    for day in range(1, DAYS):
        run_slice(until_ms=day * DAY)
    run_slice(job=toy.job("reader", source="counts", sink="copies"))
    before = live(warehouse, "counts")
    upkeep(warehouse, job="reader")
    assert live(warehouse, "counts") == before
    with pytest.raises(ConfigurationError, match="the job counting writes the topic") as refused:
        compact(warehouse, "counts")
    assert refused.value.place["topic"] == "counts"


def test_a_table_that_another_program_writes_is_left_alone(warehouse, run_slice):
    run_slice()
    archive = open_archive(warehouse, "events")
    row = {"offset": archive.end_offsets()[0], "key": "k0", "value": 7, "partition": 0}
    names = {field.name: field.type for field in archive.table_schema}
    columns = {name: pa.array([row.get(name)], type_) for name, type_ in names.items() if name != "timestamp"}
    columns |= {"timestamp": pa.array([9], names["timestamp"]), "partition": pa.array([0], pa.int32())}
    write_deltalake(archive.uri, pa.table(columns), mode="append")
    before = live(warehouse)
    upkeep(warehouse)
    assert live(warehouse) == before
    with pytest.raises(ConfigurationError, match=r"another program .*WRITE by .*delta-rs"):
        compact(warehouse)
    kept = records(warehouse)
    assert compact(warehouse, despite_others=True).left < len(before)
    assert records(warehouse) == kept


def test_what_has_come_just_now_is_left_alone(warehouse, run_slice):
    run_slice()
    came = max(open_archive(warehouse, "events").archived_at_ms(f) or 0 for f in _files(warehouse))
    assert came == 0, "the toy's archive does not say: such files count as old"
    young = open_archive(warehouse, "events")
    writer = young.writer(0, attempt="young")
    end = young.end_offsets()[0]
    batch = next(iter(young.reader(0, end - 1)))
    writer.write(batch.set_column(batch.schema.get_field_index("offset"), "offset", pa.array([end])))
    files = writer.close()
    assert young.commit(files, app_id="x", app_version=1, modification_time_ms=LATER)
    upkeep(warehouse, target=1 << 12, now_ms=LATER + 1)
    assert f"topics/events/{files[0].path}" in live(warehouse)


def test_all_small_files_become_one_a_partition(warehouse):
    before, files = records(warehouse), len(live(warehouse))
    done = compact(warehouse, target=1 << 20)
    assert (done.replaced, done.files, done.left) == (files, 2, 2)
    assert records(warehouse) == before
    again = compact(warehouse, attempt="d", target=1 << 20)
    assert (again.replaced, again.files, again.left) == (0, 0, 2)
    assert compact(warehouse, attempt="e", now_ms=LATER + DAY).deleted == files
    assert live(warehouse) == stored(warehouse)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_and_compacted_again(warehouse, tmp_path, step):
    before = records(warehouse)
    for attempt in itertools.count():
        process = _processes.Process(target=_compact_until, args=(tmp_path / "warehouse", step, 2**attempt))
        process.start()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        assert records(warehouse) == before
    assert attempt > 0
    assert records(warehouse) == before
    assert compact(warehouse, attempt="last", target=1 << 20, keep_ms=0, now_ms=LATER + 1).left == 2
    assert live(warehouse) == stored(warehouse)


def _compact_until(root: Path, step: str, times: int) -> None:
    counter = itertools.count(1)

    def kill(name: str) -> None:
        if name == step and next(counter) == times:
            os.kill(os.getpid(), signal.SIGKILL)

    with observed(kill):
        compact(Storage(str(root)), attempt=f"k{times}", target=9_000, keep_ms=0)


def _files(warehouse):
    return open_archive(warehouse, "events").all_files()
