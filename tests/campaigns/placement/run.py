"""``python -m tests.campaigns placement``: hosts with a gigabyte of state and more come, are lost and learn.

A job goes on over it all on a Spark standalone cluster, whose hosts have disks of their own, with copies made in the
background of the next slice. What it publishes is compared with what one process publishes. The last line says what
held.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.console.numbers import bytes_text
from hindstream.report.documents import load_run
from hindstream.report.placement import waiting
from hindstream.runs import open_warehouse
from hindstream.spark.phases.pipeline import run_slice
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from tests.campaigns.placement import profiles
from tests.campaigns.placement.profiles import NAME, SINK, SLICE_MS, STORE, Size, archive_all
from tests.campaigns.placement.restores import restore_seconds
from tests.hindstream.spark.placement.placed_driver import Run, driven
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from statelib.documents.manifests import Commit
    from tests.hindstream.spark.placement.placed_driver import Driver
    from tests.spark_cluster import SparkCluster

_JOB = f"{profiles.__file__}:job", NAME
_HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
_ADDED = "127.0.0.5"
_MOST_TO_LEARN = 8


@dataclass
class _Checks:
    """What is looked at, and whether it held."""

    failed: list[str] = field(default_factory=list)
    passed: int = 0

    def note(self, what: str, *, holds: bool) -> None:
        print(f"  {'holds' if holds else 'FAILS'}: {what}", flush=True)
        if holds:
            self.passed += 1
        else:
            self.failed.append(what)


def main(arguments: Sequence[str]) -> int:
    """Runs it; 1: something did not hold."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="python -m tests.campaigns placement", description=__doc__
    )
    parser.add_argument("--profiles", type=int, default=1_200_000, help="each has a kilobyte of state")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    given = parser.parse_args(arguments)
    size = Size(profiles=given.profiles, updates=given.profiles // 100, visits=100_000, slices=16)
    logging.basicConfig(level=logging.WARNING)
    folder, checks = Path(tempfile.mkdtemp(prefix="hindstream-placement-")), _Checks()
    print(f"{size}, seed {given.seed}, in {folder}", flush=True)
    try:
        _together(folder, size, given.seed, checks)
        _compared(folder, size, checks)
        _restored(folder, checks)
    finally:
        if not given.keep:
            shutil.rmtree(folder)
    print(f"{checks.passed} held, {len(checks.failed)} did not: {'; '.join(checks.failed) or 'none'}", flush=True)
    return 1 if checks.failed else 0


def _together(folder: Path, size: Size, seed: int, checks: _Checks) -> None:
    given = {
        "num_standby_replicas": 1,
        "max_warmup_replicas": 1,
        "acceptable_recovery_lag": 0,
        "changelogs": [STORE],
        "standby_updates": "background",
        "memory_budget_bytes": 256 << 20,
    }
    with spark_cluster(folder, *_HOSTS) as cluster, driven(folder, cluster, _JOB, SLICE_MS, **given) as driver:
        warehouse = open_warehouse(driver.settings)
        archive_all(warehouse, size, seed=seed)
        driver.ask(f"slots {len(_HOSTS)}")
        first = _slice(driver, "the first slice makes all of the state")
        state_bytes = sum(task.state.size_bytes for task in first.staged.tasks)
        checks.note(f"there is 1 GB of state or more: {bytes_text(state_bytes)}", holds=state_bytes >= 10**9)
        driver.ask("wait")
        for _ in range(3):
            run = _slice(driver, "nothing happens")
            _nothing_fetched(run, checks)
            checks.note("nothing moves", holds=not run.placement.moves)
            driver.ask("wait")
        _lose(driver, cluster, warehouse, checks)
        _add(driver, cluster, checks)
        while driver.slices < size.slices:
            run = _slice(driver, "nothing happens")
            _nothing_fetched(run, checks)
        driver.ask("wait")


def _lose(driver: Driver, cluster: SparkCluster, warehouse: Storage, checks: _Checks) -> None:
    """A host with its disk, after a commit that its standbys do not have yet."""
    run = _slice(driver, "the host 127.0.0.3 is lost right after it", unkept=True)
    cluster.kill("127.0.0.3", with_disk=True)
    gone = run.hosts["127.0.0.3"]
    log = CommitLog(warehouse, NAME)
    delta = _delta_bytes(log.read(log.head_number()), log.read(log.head_number() - 1), gone.active)
    after = _slice(driver, "its tasks are where their standbys were")
    checks.note(
        f"what was fetched, {bytes_text(after.fetched_bytes)}, is the last delta, {bytes_text(delta)}",
        holds=0 < after.fetched_bytes == delta,
    )
    moved = {move.task_id for move in after.placement.moves}
    checks.note("only its tasks have moved", holds=moved == set(gone.active))
    driver.ask("wait")


def _add(driver: Driver, cluster: SparkCluster, checks: _Checks) -> None:
    """A host that learns one task after the other, while slices follow each other without a pause."""
    cluster.add(_ADDED)
    driver.ask(f"slots {len(_HOSTS)}")
    took = 0
    for _ in range(_MOST_TO_LEARN):
        run = _slice(driver, "a host has come")
        _nothing_fetched(run, checks)
        took = len(run.hosts[_ADDED].active)
        if run.placement.is_final:
            break
    fair = len(run.staged.tasks) // len(run.hosts)
    checks.note(f"the new host has its share, {took} of {len(run.staged.tasks)} tasks", holds=took >= fair)


def _slice(driver: Driver, what: str, *, unkept: bool = False) -> Run:
    started = time.perf_counter()
    run = driver.run(unkept=unkept)
    seconds = time.perf_counter() - started
    found = waiting(load_run(open_warehouse(driver.settings), NAME, run.staged.run_id))
    assert found is not None
    learning = sum(len(host.learning) for host in run.hosts.values())
    print(
        f"{run.staged.run_id}, {what}: {seconds:.1f} s, {len(run.hosts)} hosts,"
        f" {len(run.placement.moves)} moves, {learning} learning, {bytes_text(run.fetched_bytes)} fetched;"
        f" first task after {found.first_seconds:.1f} s, last after {found.last_seconds:.1f} s",
        flush=True,
    )
    return run


def _nothing_fetched(run: Run, checks: _Checks) -> None:
    owners = run.placement.owners()
    elsewhere = sum(task.process_id != owners[task.task_id].process_id for task in run.staged.tasks)
    checks.note("all tasks run where their state is, and fetch nothing", holds=not run.fetched_bytes and not elsewhere)


def _delta_bytes(head: Commit, before: Commit, tasks: Sequence[str]) -> int:
    """Files of some tasks that the commit before had not."""
    known = {file.sha256 for task_id in tasks for file in before.tasks[task_id].state.files}
    return sum(
        file.size_bytes for task_id in tasks for file in head.tasks[task_id].state.files if file.sha256 not in known
    )


def _compared(folder: Path, size: Size, checks: _Checks) -> None:
    """With the same slices in one process: another state directory and warehouse, which has the same archives."""
    alone = folder / "alone"
    for topic in ("profiles", "visits"):
        shutil.copytree(folder / "warehouse" / "topics" / topic, alone / "warehouse" / "topics" / topic)
    given = {
        "warehouse": str(alone / "warehouse"),
        "state_dir": str(alone / "state"),
        "spark_master": "local[1]",
        "audit_engine": "pandas",
        "changelogs": [STORE],
        "memory_budget_bytes": 256 << 20,
    }
    settings, job = load_settings(given, environ={}), profiles.job()
    for number in range(1, size.slices + 1):
        run_slice(job, settings, number * SLICE_MS)
    here, there = (Storage(str(root / "warehouse")) for root in (alone, folder))
    files = _files(here)
    checks.note(
        f"{len(files)} files are those of one process, byte for byte", holds=bool(files) and files == _files(there)
    )
    ours, others = _published(here), _published(there)
    records = sum(map(len, ours))
    same = all(one.equals(other) for one, other in zip(ours, others, strict=True))
    checks.note(f"{records:,} records are published as by one process", holds=bool(records) and same)


def _files(warehouse: Storage) -> list[tuple[object, ...]]:
    """What each commit has added to the topics, by the SHA-256 of its files."""
    log = CommitLog(warehouse, NAME)
    return [
        (n, sink.topic, sink.file.partition, sink.file.first_offset, sink.file.sha256)
        for n in range(1, log.head_number() + 1)
        for sink in sorted(log.read(n).sinks, key=lambda sink: (sink.topic, sink.file.partition))
    ]


def _published(warehouse: Storage) -> list[pa.Table]:
    archive = open_archive(warehouse, SINK)
    return [archive.reader(partition).read_all() for partition in range(archive.partitions)]


def _restored(folder: Path, checks: _Checks) -> None:
    seconds = restore_seconds(Storage(str(folder / "warehouse")), NAME, folder / "restores")
    print("seconds to restore all tasks: " + ", ".join(f"{way} {took:.2f}" for way, took in seconds.items()))
    ratio = seconds["changelog"] / seconds["standby"]
    checks.note(f"a standby restores ten times faster than a changelog: {ratio:.1f}", holds=ratio >= 10)
