"""The warehouse: whether it can be reached, and does what commits rest on."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

from hindstream.console.numbers import time_text
from hindstream.doctor.finding import Finding, found
from hindstream.runs import open_warehouse
from statelib.commits import CommitLog, oldest_restorable, published_through
from statelib.commits.hold import read_hold
from statelib.commits.open_runs import open_run_after
from statelib.commits.sources.changed_archives import changed_by_others
from statelib.commits.sources.checks import goes_on, open_sources
from statelib.commits.stored_files import lost_state_files
from statelib.topics.slices import starting_offsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.manifests import Commit
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


def check_warehouse(settings: Settings) -> Iterator[Finding]:
    """Whether objects can be made, read and deleted, and of two that make the same one wins."""
    warehouse = open_warehouse(settings)
    path = f"doctor/{uuid.uuid4().hex}"
    try:
        first, second = (warehouse.put_if_absent(path, data) for data in (b"first", b"second"))
        kept = warehouse.get(path)
    finally:
        warehouse.delete(path)
    if (first, second, kept) == (True, False, b"first"):
        yield Finding("warehouse", "ok", f"{warehouse.uri('')}: writes, reads and deletes, and creates only if absent")
    else:
        step = "use a store that has conditional writes (docs/object-stores.md): two runs could both commit in this one"
        yield Finding("warehouse", "wrong", f"{warehouse.uri('')} does not create only if absent", step)


def check_job(job: str, settings: Settings) -> Iterator[Finding]:
    """How a job stands, and whether the files of its state are there."""
    warehouse = open_warehouse(settings)
    log = CommitLog(warehouse, job)
    head = log.head()
    if head is None:
        step = "run it: hindstream run FILE.py:NAME"
        yield Finding(f"job {job}", "look", f"there is no commit of it in {warehouse.uri('')}", step)
        return
    when = time_text(head.created_at_ms)
    oldest = oldest_restorable(warehouse, job)
    yield Finding(f"job {job}", "ok", f"commit {head.commit} of {when}; states of {oldest} and later can be restored")
    hold = read_hold(warehouse, job)
    if hold is not None:
        step = f"if nobody is working on it any more: hindstream release {job} {hold.holder}"
        yield Finding(f"job {job}", "look", f"{hold.holder} holds it ({hold.reason}): nobody can plan a run", step)
    run = open_run_after(warehouse, job, head.commit)
    if run is not None:
        yield Finding(f"job {job}", "look", f"run {run} is open", "the next run continues it")
    shown = published_through(warehouse, job)
    if shown < head.commit:
        step = "hindstream publish FILE.py:NAME"
        yield Finding(f"job {job}", "look", f"its sinks show commits up to {shown}, not {head.commit}", step)
    yield from _check_archives(job, settings, warehouse, head)
    yield from _check_files(job, settings)


def _check_archives(job: str, settings: Settings, warehouse: Storage, head: Commit) -> Iterator[Finding]:
    """Whether the job can go on with its sources, and what other programs have done to its archives."""
    yield from found(f"job {job}", partial(_check_sources, settings, warehouse, head))
    for note in changed_by_others(warehouse, head):
        yield Finding(f"job {job}", "look", note, "docs/runbooks/damaged-data.md says what can be done")


def _check_sources(settings: Settings, warehouse: Storage, head: Commit) -> Iterator[Finding]:
    """Raises what the next plan would."""
    archives = open_sources(warehouse, [source.topic for source in head.sources], head)
    goes_on(warehouse, head, archives, settings.recreated_sources)
    for topic, offsets in head.source_offsets().items():
        starting_offsets(archives[topic], offsets)
    yield from ()


def _check_files(job: str, settings: Settings) -> Iterator[Finding]:
    warehouse = open_warehouse(settings)
    head = CommitLog(warehouse, job).head()
    missing, count = [], 0
    for task_id, task in (head.tasks if head else {}).items():
        count += len(task.state.files)
        missing += [path for path, _ in lost_state_files(warehouse, job, task_id, task.state)]
    if missing:
        step = f"hindstream state verify {job} names an undamaged commit (docs/runbooks/damaged-data.md)"
        what = f"{len(missing)} of {count} state files are missing or cut off, such as {missing[0]}"
        yield Finding(f"job {job}", "wrong", what, step)
    else:
        yield Finding(f"job {job}", "ok", f"all {count} state files are there, in their sizes")
