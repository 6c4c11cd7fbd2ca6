"""A warehouse with a job and its versions, on which every command is given in any order, each checked by a model."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeVar

import hindstream
from statelib.commits import NothingToDo, Retention, maintain, oldest_restorable, rollback
from statelib.commits.rewriting.topic_files import FilePolicy
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.promotion import go_back, promote, serving
from statelib.comparison.matches import Resources
from statelib.comparison.sinks import JobCommit, compare_sinks
from statelib.errors.kinds import ConfigurationError
from statelib.repair.repair import repair
from tests.commits.versions.model import SINKS, Has, Reference, Row, Version, as_readers, differences
from tests.repair.histories import HOUR, archive, as_fork
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")
NAMES = ("a", "b", "c.d", "job-late", "large")
"""Of forks; a name is given again when its fork was dropped."""

LAST_HOUR = 60


class House:
    """A job called ``job`` and forks of it, and what is known of them.

    Attributes:
        told: What has been done.
        has: By job and commit.
        standing: By job, the commits that have not been rolled back.
        base: By fork, the job and the commit that it stands on; commit 0: it replays from the beginning.
        promoted: Who serves the job's readers, and before that who would again on the way back.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self._root, self._chance = root, random.Random(seed)
        self._job = Pipeline(root / "job", Version().topology())
        self._reference = Reference(root, seed)
        self._warehouse = self._job.warehouse
        self._now_ms = 0
        archive(self._job, seed)
        self.told: list[str] = []
        self.has: dict[str, dict[int, Has]] = {"job": {}}
        self.standing: dict[str, set[int]] = {"job": set()}
        self.base: dict[str, tuple[str, int]] = {}
        self.promoted = ["job"]

    def act(self) -> None:
        """Gives some command for some job."""
        often = (self.run, self.fork, self.roll_back, self.repair, self.fill)
        act = self._chance.choice(
            [*often, *often, self.run, self.begin, self.maintain, self.promote, self.back, self.drop]
        )
        job = self._chance.choice(sorted(self.has))
        self.told.append(f"{act.__name__} {job}")
        act(job)

    def run(self, job: str, end: int | None = None, version: Version | None = None, *, is_filled: bool = False) -> None:
        """Replays further, sometimes with another version whose state fits."""
        has, n = self._now(job), self._head(job)
        end = end or has.end + self._chance.randint(1, 15)
        if not has.end < end <= LAST_HOUR:
            return
        before = has.state[-1][0] if has.state else Version()
        if version is None:
            version = before._replace(least=self._chance.choice([before.least] * 3 + [0, 50, 80]))
        pipeline = self._pipeline(job, version)
        is_filled = is_filled and n > 0 and version != before
        stores = [
            store.name
            for sub in pipeline.topology.sub_topologies
            for processor in sub.processors
            for store in processor.spec.state_stores()
        ]
        self.told[-1] += f" to {end} as {tuple(version)}{', filled' if is_filled else ''}"
        if not isinstance(pipeline.run(end * HOUR, fill_stores=stores if is_filled else []), NothingToDo):
            self.has[job][n + 1] = has.after(version, end, is_filled=is_filled)
            self.standing[job].add(n + 1)

    def fill(self, job: str) -> None:
        """Replays further with a version whose state does not fit, and fills its stores."""
        version = Version(self._chance.choice([20, 50]), self._chance.choice([1, 2, 6]), self._chance.choice([1, 3, 9]))
        if self._head(job):
            self.run(job, version=version, is_filled=True)

    def fork(self, job: str) -> None:
        """Makes a fork of some commit, which may not be one to fork."""
        n, new = self._chance.randint(0, self._head(job) + 1), self._free_name()
        if new is not None:
            self.told[-1] += f"@{n} {new}"
            may = self._can_be_restored(job, n)
            if self._given(may, lambda: fork(self._warehouse, job, new, n, now_ms=self._now_ms)):
                self.has[new], self.standing[new], self.base[new] = {1: self.has[job][n]}, {1}, (job, n)

    def begin(self, job: str) -> None:
        """Makes a fork that replays from the beginning."""
        new = self._free_name()
        if new is not None and self._head(job):
            self.told[-1] += f" {new}"
            fork_from_beginning(self._warehouse, job, new)
            self.has[new], self.standing[new], self.base[new] = {}, set(), (job, 0)

    def roll_back(self, job: str) -> None:
        """Goes back to some commit, which may be none to go back to."""
        to, head = self._chance.randint(0, self._head(job)), self._head(job)
        self.told[-1] += f" to {to}"
        loses = any(before == job and n > to for before, n in self._chain(self.promoted[-1]))
        may = self._can_be_restored(job, to) and to != head and not loses
        made = self._given(may if to != head else None, lambda: rollback(self._warehouse, job, to, now_ms=self._now_ms))
        if made is not None and made.commit > head:
            self.standing[job] = {n for n in self.standing[job] if n <= to} | {made.commit}
            self.has[job][made.commit] = self.has[job][to]

    def maintain(self, job: str) -> None:
        """Expires states, deletes what nobody needs, and merges files of sinks maybe."""
        files = FilePolicy(f"m{self._tick()}", keep_replaced_ms=0, every_commits=1, fully=True)
        keep = Retention(self._chance.randint(1, 4))
        if self._head(job):
            merged = self._chance.choice([None, files])
            maintain(self._warehouse, job, keep, now_ms=self._now_ms, files=merged)

    def repair(self, job: str) -> None:
        """Lets a fork come as far as the job, and the job take its answers."""
        end = self._now("job").end
        if job == "job" or not end:
            return
        if self._now(job).end < end:
            self.run(job, end)
        if not self._head(job):
            return
        may = self.base[job][0] == "job" and self._now(job).end == end and not self._is_orphan(job)
        attempt = f"a{self._tick()}"
        made = self._given(
            may,
            lambda: repair(
                self._warehouse, "job", job, Resources(self._scratch()), attempt=attempt, now_ms=self._now_ms
            ),
            or_refused="would have to come back",
        )
        if made is not None and made.commit.commit > self._head("job"):
            self.has["job"][made.commit.commit] = self._now(job)
            self.standing["job"].add(made.commit.commit)

    def promote(self, job: str) -> None:
        """Lets the job's readers read some version."""
        now, allow_behind = self.promoted[-1], self._chance.random() < 0.6
        is_behind = self._now(job).end < self._now(now).end and not allow_behind
        may = bool(self._head(job)) and (job == now or not (is_behind or self._is_orphan(job)))
        made = self._given(
            may, lambda: promote(self._warehouse, job, "job", now_ms=self._tick(), allow_behind=allow_behind)
        )
        if made is not None and job != now:
            self.promoted.append(job)

    def back(self, _: str) -> None:
        """Takes the last promotion back."""
        if self._given(len(self.promoted) > 1, lambda: go_back(self._warehouse, "job", now_ms=self._tick())):
            self.promoted.pop()
            while self.promoted[-1] != "job" and (
                self.promoted[-1] not in self.has or self._is_orphan(self.promoted[-1])
            ):
                self.promoted.pop()

    def drop(self, job: str) -> None:
        """Drops a fork."""
        may = job != "job" and all(base != job for base, _ in self.base.values()) and self.promoted[-1] != job
        if self._given(may, lambda: drop_fork(self._warehouse, job, now_ms=self._tick())):
            del self.has[job], self.standing[job], self.base[job]
            self.promoted = ["dropped" if name == job else name for name in self.promoted]

    def check(self, *, every_commit: bool = False) -> None:
        """Readers of each version have what they must have, or are told that its beginning is lost."""
        for job in filter(self._head, sorted(self.has)):
            if self._is_orphan(job):
                assert self._given(False, lambda job=job: self._rows(job, self._head(job), "large")) is None
                continue
            for n in sorted(self.standing[job]) if every_commit else [self._head(job)]:
                wanted = self._reference.readers(self.has[job][n])
                for sink in SINKS if self.has[job][n].written else ():
                    assert as_readers(sink, self._rows(job, n, sink)) == wanted[sink], (job, n, sink)
        serves = serving(self._warehouse, "job")
        assert serves == self.promoted[-1]
        if self._now(serves).written:
            read = hindstream.read("large", job="job", warehouse=self._warehouse.uri(""))
            assert read.job == serves
            assert _plain(read) == self._rows(serves, self._head(serves), "large")

    def check_difference(self, chance: random.Random) -> None:
        """Two versions at some commits differ by what plain Python finds."""
        jobs = [job for job in sorted(self.has) if self._head(job) and not self._is_orphan(job)]
        a, b = (JobCommit(job, chance.choice(sorted(self.standing[job]))) for job in chance.choices(jobs, k=2))
        way = chance.choice([None, "latest", "set", "order"])
        for sink in compare_sinks(self._warehouse, a, b, Resources(self._scratch()), way=way).sinks:
            if sink.a in SINKS:
                found, in_a, in_b = sink.difference, *(self._rows(of.job, of.commit, sink.a) for of in (a, b))
                assert (found.only_a, found.only_b, found.changed) == differences(in_a, in_b, found.way), (
                    a,
                    b,
                    sink.a,
                    way,
                )

    def check_states(self) -> None:
        """Stores have what they must have."""
        for job in sorted(self.has):
            if steps := self._now(job).state:
                assert self._pipeline(job, steps[-1][0]).state() == self._reference.job(steps).state(), job

    def _given(self, may: bool | None, command: Callable[[], T], or_refused: str | None = None) -> T | None:
        """What a command gives; None: it is refused, as it must be if it may not. ``may`` is None: either is right."""
        refused = None
        try:
            made = command()
        except ConfigurationError as error:
            refused = error
        if refused is None:
            assert may is not False, made
            return made
        assert not may or (or_refused is not None and or_refused in str(refused)), refused
        self.told[-1] += f": refused, {refused.what}"
        return None

    def _head(self, job: str) -> int:
        return max(self.has[job], default=0)

    def _now(self, job: str) -> Has:
        return self.has[job].get(self._head(job), Has())

    def _tick(self) -> int:
        self._now_ms += 1
        return self._now_ms

    def _free_name(self) -> str | None:
        self._tick()
        free = [name for name in NAMES if name not in self.has]
        return self._chance.choice(free) if free else None

    def _scratch(self) -> Path:
        folder = self._root / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def _pipeline(self, job: str, version: Version) -> Pipeline:
        directory = self._root / f"run-{job}"
        uri = self._warehouse.uri("")
        made = (
            Pipeline(directory, version.topology(), warehouse=uri)
            if job == "job"
            else as_fork(self._job, directory, job, version.topology())
        )
        made.now_ms = self._tick()
        return made

    def _chain(self, job: str) -> list[tuple[str, int]]:
        """The jobs before a fork, each with the commit that it goes on from."""
        base = self.base.get(job)
        return [] if base is None or not base[1] else [base, *self._chain(base[0])]

    def _is_orphan(self, job: str) -> bool:
        return any(n not in self.standing[before] for before, n in self._chain(job))

    def _can_be_restored(self, job: str, commit: int) -> bool:
        return commit in self.standing[job] and commit >= oldest_restorable(self._warehouse, job)

    def _rows(self, job: str, commit: int, sink: str) -> list[Row]:
        read = hindstream.read(sink, job=job, commit=commit, warehouse=self._warehouse.uri(""))
        return _plain(read)


def _plain(read: Any) -> list[Row]:
    return [
        (
            row["partition"],
            row["offset"],
            repr(row["key"]),
            round(row["timestamp"].timestamp() * 1000),
            None if row["value"] is None else repr(row["value"]),
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row in (read.to_arrow(flat=False).to_pylist() if len(read) else ())
    ]
