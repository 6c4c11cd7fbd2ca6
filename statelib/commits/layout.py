"""Where a job's documents lie below the warehouse, and the log of its commits.

::

    topics/<topic>/                        a topic archive
    jobs/<job>/commits/<n, 20 digits>.json the commit; contiguous from 1, never deleted and never overwritten
    jobs/<job>/commits/head.json           a hint at the newest commit, overwritten after each
    jobs/<job>/topologies/<fingerprint>.json  what a topology is made of; never deleted and never overwritten
    jobs/<job>/runs/<run id>/plan.json     see `statelib.documents.manifests`, as for the next two
                            /staged.json
                            /audit.json
                            /placement.json, /copies.json  see `statelib.placement.documents`
                            /spark/         see `hindstream.spark.submission.record`
    jobs/<job>/state/<task>/<sha256>.<run id>  files of checkpoints
    jobs/<job>/staging/<run id>/           repartition topics between the stages of a run
                               /_outcomes/ what single tasks have made; see `statelib.commits.run.kept`
    jobs/<job>/maintenance.json            what has been swept
    jobs/<job>/hold.json                   who holds the job; see `statelib.commits.hold`
    jobs/<job>/forks/<fork>.json           see `statelib.commits.forks`
    jobs/<job>/dropping.json               see `statelib.commits.versions.drop_fork`
    jobs/<job>/expired/<n, 20 digits>.json see `statelib.commits.expiry`
    jobs/<job>/rewrites.json               how far files have been looked at: see `statelib.commits.rewriting.rewrite`
    topics/<topic>/_rollbacks/<n, 20 digits>.json  see `statelib.documents.upkeep.Rollback`
    topics/<topic>/_rewrites/<n, 20 digits>.json   see `statelib.commits.rewriting.rewrite_log`

A commit's number is claimed for ever: if commits could be deleted, a driver that slept through many of them could
create its own, long overtaken, under a number that is free again. What is expired is what a commit points to.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.documents.manifests import Audit, Commit, Staged
from statelib.documents.places import state_folder
from statelib.documents.plans import Plan
from statelib.documents.topologies import TopologyDescription
from statelib.errors.fault_points import step
from statelib.errors.kinds import CorruptedDataError, FencedError
from statelib.topics.places import archive_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from statelib.documents.topologies import Migration
    from statelib.storage import Storage

_NUMBERED = re.compile(r"(\d{20})\.json")
_RUN_ID = re.compile(r"(\d{8,})-([1-9]\d*)")


def run_id(commit: int, attempt: int) -> str:
    """Name of the ``attempt``-th try (from 1) at commit number ``commit``."""
    return f"{commit:08d}-{attempt}"


def parse_run_id(name: str) -> tuple[int, int] | None:
    """Commit number and try of a run id; None if it is not one."""
    match = _RUN_ID.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def topic_path(topic: str) -> str:
    """The archive of a topic, below the warehouse."""
    return archive_path(topic)


def rollback_path(topic: str, commit: int) -> str:
    """What a topic's readers are told of its writer's rollback with this commit number."""
    return f"{topic_path(topic)}/_rollbacks/{commit:020d}.json"


def rewrite_path(topic: str, n: int) -> str:
    """Rewrite ``n`` of a topic's files."""
    return f"{topic_path(topic)}/_rewrites/{n:020d}.json"


def numbers_in(storage: Storage, folder: str) -> list[int]:
    """The numbers of the documents in a folder that are called by theirs, ``<n, 20 digits>.json``; ascending."""
    names = (entry.path.rpartition("/")[2] for entry in storage.list(folder))
    return [int(match[1]) for match in map(_NUMBERED.fullmatch, names) if match]


def quarantine_topic(job: str) -> str:
    """The sink for records that could not be used, of a job that asks for one (``on_bad_record = "quarantine"``)."""
    return f"{job}-quarantine"


def late_topic(job: str) -> str:
    """The sink for records that operators drop since they are late, of a job that asks for one (``on_late_record``)."""
    return f"{job}-late"


def fork_topic(topic: str, fork: str) -> str:
    """What a fork calls a sink that its job writes to ``topic``."""
    return f"{topic}.{fork}"


def rolled_back(commits: Iterable[Commit]) -> dict[int, int]:
    """Which commits have been taken back by rollbacks among ``commits``, and by which one (the first)."""
    taken_back: dict[int, int] = {}
    for commit in commits:
        if commit.rolled_back_to is not None:
            for n in range(commit.rolled_back_to + 1, commit.commit):
                taken_back[n] = min(commit.commit, taken_back.get(n, commit.commit))
    return taken_back


def changelog_topic(job: str, store: str) -> str:
    """Kafka's name for the changelog of a store."""
    return f"{job}-{store}-changelog"


def renamed_changelogs(job: str, migrations: Iterable[Migration]) -> dict[str, str]:
    """By the topic of each store's changelog that has got another name, what it is called now."""
    return {
        changelog_topic(job, migration.before.name): changelog_topic(job, migration.now.name)
        for migration in migrations
        if migration.before.name != migration.now.name
    }


@dataclass(frozen=True, slots=True)
class JobLayout:
    """Paths of one job, relative to the warehouse."""

    job: str

    @property
    def root(self) -> str:
        """The job's folder."""
        return f"jobs/{self.job}"

    @property
    def head_hint(self) -> str:
        """The hint at the newest commit."""
        return f"{self.root}/commits/head.json"

    @property
    def maintenance(self) -> str:
        """What has been swept."""
        return f"{self.root}/maintenance.json"

    @property
    def rewriting(self) -> str:
        """How far the files of the topics that the job writes have been looked at."""
        return f"{self.root}/rewrites.json"

    @property
    def hold(self) -> str:
        """Who holds the job."""
        return f"{self.root}/hold.json"

    def topology(self, fingerprint: str) -> str:
        """The description of a topology."""
        return f"{self.root}/topologies/{fingerprint}.json"

    def fork(self, name: str) -> str:
        """That the fork ``name`` stands on the job."""
        return f"{self.root}/forks/{name}.json"

    def promotion(self, n: int) -> str:
        """The n-th promotion over the job."""
        return f"{self.root}/promotions/{n:020d}.json"

    @property
    def dropping(self) -> str:
        """That the job, a fork, is being dropped."""
        return f"{self.root}/dropping.json"

    def expired(self, n: int) -> str:
        """The mark that commits before ``n`` have expired."""
        return f"{self.root}/expired/{n:020d}.json"

    def commit(self, n: int) -> str:
        """Commit ``n``."""
        return f"{self.root}/commits/{n:020d}.json"

    def run(self, run_id: str) -> str:
        """The folder of a run's documents."""
        return f"{self.root}/runs/{run_id}"

    def plan(self, run_id: str) -> str:
        """A run's plan."""
        return f"{self.run(run_id)}/plan.json"

    def staged(self, run_id: str) -> str:
        """What a run made."""
        return f"{self.run(run_id)}/staged.json"

    def audit(self, run_id: str) -> str:
        """What the checks said of a run."""
        return f"{self.run(run_id)}/audit.json"

    def placement(self, run_id: str) -> str:
        """Which host got which task of a run."""
        return f"{self.run(run_id)}/placement.json"

    def copies(self, run_id: str) -> str:
        """What came of standbys and learners after a run."""
        return f"{self.run(run_id)}/copies.json"

    def state(self, task_id: str) -> str:
        """The folder of a task's checkpoints: the prefix for `statelib.checkpoint`."""
        return state_folder(self.job, task_id)

    def staging(self, run_id: str) -> str:
        """The folder of a run's repartition topics."""
        return f"{self.root}/staging/{run_id}"


class Runs:
    """The documents of a job's runs, by run id. None: the run has not come that far."""

    def __init__(self, storage: Storage, job: str) -> None:
        self._storage = storage
        self.layout = JobLayout(job)

    def plan(self, run_id: str) -> Plan | None:
        """The run's plan."""
        return Plan.read_if_present(self._storage, self.layout.plan(run_id))

    def plan_of(self, commit: Commit) -> Plan:
        """The plan of the run that made ``commit``.

        Raises:
            CorruptedDataError: It is missing.
        """
        plan = self.plan(commit.run_id)
        if plan is None:
            raise CorruptedDataError(
                f"the plan of commit {commit.commit} is missing",
                file=self._storage.uri(self.layout.plan(commit.run_id)),
                next_step="restore the file from a copy of the warehouse",
            )
        return plan

    def staged(self, run_id: str) -> Staged | None:
        """What the run made."""
        return Staged.read_if_present(self._storage, self.layout.staged(run_id))

    def audit(self, run_id: str) -> Audit | None:
        """What the checks said of the run."""
        return Audit.read_if_present(self._storage, self.layout.audit(run_id))

    def is_quarantined(self, run_id: str) -> bool:
        """Whether the run's audit failed, so that it can never be committed."""
        audit = self.audit(run_id)
        return audit is not None and not audit.success

    def topology(self, fingerprint: str) -> TopologyDescription | None:
        """What a topology of the job is made of; None: nobody wrote it down (before documents of version 4)."""
        return TopologyDescription.read_if_present(self._storage, self.layout.topology(fingerprint))

    def attempts(self, commit: int) -> Iterator[Plan]:
        """The plans for one commit number, first try first."""
        attempt = 1
        while (plan := self.plan(run_id(commit, attempt))) is not None:
            yield plan
            attempt += 1

    def settle(self, wanted: Plan, is_same: Callable[[Plan], bool], phase: str) -> Plan:
        """The stored plan of a run that replays nothing: that of an interrupted call, or ``wanted`` as the next try.

        Args:
            wanted: Any try at its commit's number.
            is_same: Whether the last try wants the same.
            phase: What plans, for the names of its steps.
        """
        while True:
            tries = list(self.attempts(wanted.commit))
            if tries and is_same(tries[-1]):
                return tries[-1]
            plan = wanted.model_copy(update={"run_id": run_id(wanted.commit, len(tries) + 1)})
            step(f"{phase}.before-plan")
            if self._storage.put_if_absent(self.layout.plan(plan.run_id), plan.encode()):
                step(f"{phase}.planned")
                return plan


class CommitLog:
    """A job's commits: contiguous numbers from 1, of which the largest is the head.

    Reading it takes neither a listing nor a look at all former commits: a hint names a commit that was the head once,
    and galloping from there finds the one that is.
    """

    def __init__(self, storage: Storage, job: str) -> None:
        self._storage = storage
        self.job = job
        self.layout = JobLayout(job)

    def head(self) -> Commit | None:
        """The newest commit; None before the first.

        Raises:
            CorruptedDataError: The commit is damaged.
        """
        n = self.head_number()
        return self.read(n) if n else None

    def head_number(self) -> int:
        """The newest commit's number; 0 before the first."""
        known, stride = self._hint(), 1
        if not self._exists(known):
            known = 0
        while self._exists(known + stride):
            known += stride
            stride *= 2
        while stride > 1:  # the head is from known to known + stride - 1
            stride //= 2
            if self._exists(known + stride):
                known += stride
        return known

    def read(self, n: int) -> Commit:
        """Commit ``n``.

        Raises:
            CorruptedDataError: It is damaged, or not there.
        """
        commit = self.read_if_present(n)
        if commit is None:
            raise CorruptedDataError(
                f"commit {n} of job {self.job} is missing",
                file=self._storage.uri(self.layout.commit(n)),
                next_step="restore the file from a copy of the warehouse: commits are never deleted by Hindstream",
            )
        return commit

    def read_if_present(self, n: int) -> Commit | None:
        """Commit ``n``, or None if it has not been made."""
        return Commit.read_if_present(self._storage, self.layout.commit(n))

    def history(self, limit: int | None = None) -> Iterator[Commit]:
        """The newest commits (at most ``limit``), newest first."""
        head = self.head_number()
        oldest = 1 if limit is None else max(1, head - limit + 1)
        for n in range(head, oldest - 1, -1):
            yield self.read(n)

    def create(self, commit: Commit) -> bool:
        """Makes ``commit`` true, unless there is one of its number; says whether this call did it.

        What it rests on is on the disk before it is, also where drivers that were killed have made the names.
        """
        sinks = {topic_path(sink.topic) for sink in commit.sinks}
        for directory in (self.layout.run(commit.run_id), f"{self.layout.root}/state", *sorted(sinks)):
            self._storage.sync(directory)
        return self._storage.put_if_absent(self.layout.commit(commit.commit), commit.encode())

    def claim(self, new: Commit, phase: str) -> Commit:
        """Makes ``new`` true, or finds that its run has done so already: a write may land and be told as failed.

        Args:
            new: The commit.
            phase: What does it, for the names of its steps.

        Raises:
            FencedError: The number is another run's.
        """
        step(f"{phase}.before-create")
        standing = new if self.create(new) else self.read(new.commit)
        self.check_own(standing, new.run_id)
        step(f"{phase}.created")
        self.advise_head(standing.commit)
        return standing

    def check_own(self, standing: Commit, run: str) -> None:
        """Makes sure that a commit is that of a run.

        Raises:
            FencedError: It is another run's.
        """
        if standing.run_id != run:
            raise FencedError(
                f"run {standing.run_id} has made commit {standing.commit} of job {self.job} before this run, {run};"
                " its result counts, and nothing of this run becomes visible",
                job=self.job,
                file=self._storage.uri(self.layout.commit(standing.commit)),
                next_step="nothing needs fixing; why there were two drivers: docs/runbooks/two-drivers.md",
            )

    def advise_head(self, n: int) -> None:
        """Leaves the hint that ``n`` is the head; correctness never rests on it."""
        self._storage.put(self.layout.head_hint, (json.dumps({"commit": n}) + "\n").encode())

    def _hint(self) -> int:
        data = self._storage.get_if_present(self.layout.head_hint)
        try:
            n = json.loads(data)["commit"] if data is not None else 0
        except (ValueError, KeyError, TypeError):
            return 0  # a damaged hint costs a longer search, nothing else
        return n if isinstance(n, int) and n > 0 else 0

    def _exists(self, n: int) -> bool:
        """Whether ``n`` is a commit, or 0, which stands before the first."""
        return n == 0 or self._storage.exists(self.layout.commit(n))
