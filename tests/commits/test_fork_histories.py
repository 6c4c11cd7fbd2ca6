"""Jobs and forks of them, run, rolled back, maintained and dropped in any order: no one needs what another deletes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from statelib.commits import (
    CommitLog,
    NothingToDo,
    Retention,
    commit,
    maintain,
    oldest_restorable,
    plan,
    publish,
    record_audit,
    rollback,
    stage,
    verify,
)
from statelib.commits.forks import forked_from, forks_of, is_being_dropped
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork
from statelib.commits.versions.promotion import go_back, promote, serving
from statelib.commits.versions.sink_history import sink_history
from statelib.comparison.matches import Resources
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.repair.repair import repair
from statelib.storage import Storage
from statelib.task import describe_topology
from tests.commits import toy
from tests.commits.toy import DAY
from tests.commits.versions.test_fork import Killed
from tests.effort import examples

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

DAYS = 12
ACTIONS = st.tuples(
    st.sampled_from(
        [
            "run",
            "run",
            "run",
            "fork",
            "fork",
            "maintain",
            "maintain",
            "roll back",
            "drop",
            "promote",
            "back",
            "repair",
            "repair",
        ]
    ),
    st.integers(0, 20),  # which job
    st.integers(0, 20),  # which commit, or how many to keep
    st.none() | st.integers(1, 12),  # at which step it is killed, before it is given again
)


class House:
    """A warehouse with a job and its forks."""

    def __init__(self, root: Path) -> None:
        self.warehouse = Storage(str(root / "warehouse"))
        self.scratch = root / "scratch"
        self.jobs = ["counting"]
        self.serves = "counting"
        self.made = self.attempts = 0
        toy.archive_events(self.warehouse, 0, days=DAYS, per_day=4)

    def act(self, what: str, which: int, number: int) -> None:
        """One action; what cannot be is refused, and nothing has changed."""
        job = self.jobs[which % len(self.jobs)]
        head = CommitLog(self.warehouse, job).head_number()
        n = number % max(head, 1) + 1
        try:
            if what in {"promote", "back", "repair"}:
                self.serve(what, job)
            elif what == "run":
                self.run(job)
            elif what == "maintain":
                maintain(self.warehouse, job, Retention(n), now_ms=0)
            elif what == "roll back" and head:
                rollback(self.warehouse, job, n, now_ms=0)
            elif what == "fork" and head:
                fork(self.warehouse, job, f"f{self.made}", n, now_ms=0)
                self.jobs.append(f"f{self.made}")
                self.made += 1
            elif what == "drop":
                drop_fork(self.warehouse, job, now_ms=0)
                self.jobs.remove(job)
        except ConfigurationError:
            if what == "run":
                raise

    def serve(self, what: str, job: str) -> None:
        """What changes that readers of the first job, or of a fork's, get."""
        if what == "repair":
            self.repair(job)
        elif what == "back":
            self.serves = go_back(self.warehouse, "counting", now_ms=0).serving
        else:
            promote(self.warehouse, job, "counting", now_ms=0, allow_behind=True)
            self.serves = job

    def repair(self, name: str) -> None:
        """The job takes the answers of a fork, once that has come as far."""
        base = forked_from(self.warehouse, name)
        head = None if base is None else CommitLog(self.warehouse, base.job).head()
        if head is None:
            return
        while (CommitLog(self.warehouse, name).head().until_ms or 0) < (head.until_ms or 0):
            self.run(name)
        self.attempts += 1
        resources = Resources(self.scratch)
        repair(self.warehouse, head.job, name, resources, attempt=f"a{self.attempts}", now_ms=0, supersede=True)

    def run(self, name: str) -> None:
        job = toy.job() if name == "counting" else toy.job().as_fork(name)
        head = CommitLog(self.warehouse, name).head()
        until = 1 if head is None else (head.until_ms or 0) // DAY + 1
        planned = plan(
            job,
            self.warehouse,
            now_ms=1,
            until_ms=until * DAY,
            describe=lambda archives: describe_topology(
                job.topology, {topic: archive.reader(0, 0, 0) for topic, archive in archives.items()}
            ),
        )
        if isinstance(planned, NothingToDo):
            return
        shutil.rmtree(self.scratch / name, ignore_errors=True)
        stage(self.warehouse, planned, toy.replay(self.warehouse, planned, self.scratch))
        record_audit(self.warehouse, planned, toy.passed(planned))
        commit(self.warehouse, planned, now_ms=2)
        publish(self.warehouse, name)

    def check(self) -> None:
        """All that can be restored is there, and readers read a job that is."""
        assert serving(self.warehouse, "counting") == self.serves
        assert self.serves in self.jobs
        assert not CommitLog(self.warehouse, self.serves).head_number() or sink_history(self.warehouse, self.serves)
        needed = set()
        for job in self.jobs:
            if is_being_dropped(self.warehouse, job):
                continue  # nobody uses it any more
            log = CommitLog(self.warehouse, job)
            if log.head_number():
                assert not verify(self.warehouse, job, everything=True).damages
            for n in range(oldest_restorable(self.warehouse, job), log.head_number() + 1):
                needed |= log.read(n).state_files().keys()
        stored = {entry.path for entry in self.warehouse.list("jobs") if "/state/" in entry.path}
        assert needed <= stored

    def counted(self, job: str) -> dict[str, int]:
        head = CommitLog(self.warehouse, job).head()
        shutil.rmtree(self.scratch / "looked-at", ignore_errors=True)
        return {} if head is None else toy.counts_as_of(self.warehouse, head, self.scratch / "looked-at")


@examples(12, 250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, min_size=6, max_size=22))
def test_nobody_deletes_what_another_needs(tmp_path_factory, actions):
    house = House(tmp_path_factory.mktemp("house"))
    house.run("counting")
    for what, which, number, killed_at in actions:
        if killed_at is not None and what in {"fork", "maintain", "drop", "roll back", "promote", "repair"}:
            before = list(house.jobs)
            steps = []

            def kill(name, steps=steps, at=killed_at):
                steps.append(name)
                if len(steps) == at:
                    raise Killed

            try:
                with observed(kill):
                    house.act(what, which, number)
            except Killed:
                if what == "promote" and serving(house.warehouse, "counting") == house.jobs[which % len(house.jobs)]:
                    house.serves = serving(house.warehouse, "counting")  # it was done
                house.check()
                assert house.jobs == before
                house.act(what, which, number)
        else:
            house.act(what, which, number)
        house.check()
    for job in house.jobs:
        house.run(job)  # each can go on
        assert sum(house.counted(job).values()) == sum(
            CommitLog(house.warehouse, job).head().source_offsets()["events"].values()
        )
    promote(house.warehouse, "counting", "counting", now_ms=0, allow_behind=True)
    house.serves = "counting"
    while len(house.jobs) > 1:
        leaf = next(job for job in house.jobs[1:] if not forks_of(house.warehouse, job))
        drop_fork(house.warehouse, leaf, now_ms=0)
        house.jobs.remove(leaf)
        house.check()
    maintain(house.warehouse, "counting", Retention(1), now_ms=0)
    head = CommitLog(house.warehouse, "counting").head()
    assert {
        entry.path for entry in house.warehouse.list("jobs") if "/state/" in entry.path
    } == head.state_files().keys()
    assert house.warehouse.folders("jobs") == ("jobs/counting",)
    assert house.warehouse.folders("topics") == ("topics/counts", "topics/events")
