"""Damages one file of a whole job, then does all that reads it: the damage is named, or it has changed nothing.

The job is small and has everything: a source archive with a checkpoint in its Delta log, deduplication, windows and
suppress over four stages, three commits, maintenance, a fourth run that has been audited and not committed yet, a
report's history and a host's cache. What follows the damage: that run is committed and published, another slice is
replayed, maintenance runs, and every record, document and state is read.

A case is a seed and a kind of file (`KINDS`); which file, and what happens to it, follow from the seed.
`Corruption.run` tells what came of it:

- ``named``: an error named the file, and the way out; with the file restored, all went on as if nothing had been;
- ``harmless``: everything came out as without the damage, byte for byte (state: content for content), if only in
  another try of the same run.

Anything else raises `UnnoticedError`.

    python -m tests.faults.corruption [CASES OF EACH KIND] [FIRST SEED] [KIND...]
"""

from __future__ import annotations

import fnmatch
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from hindstream.report.history import follow
from statelib.commits import (
    CommitLog,
    FilePolicy,
    Retention,
    Runs,
    commit,
    maintain,
    publish,
    read_staged,
    record_audit,
    stage,
)
from statelib.commits.archives import open_archive
from statelib.commits.layout import changelog_topic
from statelib.documents.manifests import Audit
from statelib.documents.plans import Plan
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, HindstreamError, InputError, RetryableError
from tests.task.pipeline import Pipeline
from tests.task.test_run import TYPES, sales, topology

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB = "job"
HOURS = [hour * 3_600_000 for hour in (1, 2, 3, 4)]
"""Where the slices end: three that are committed, and the open one."""

LAST = 5 * 3_600_000

_STORE = "by-hour"
_CHANGELOG = changelog_topic(JOB, _STORE)
_TOPICS = ("once", "by-hour", _CHANGELOG)
_JOB = f"warehouse/jobs/{JOB}"
KINDS: dict[str, str] = {
    "source file": "warehouse/topics/sales/partition=*/*.parquet",
    "source log entry": "warehouse/topics/sales/_delta_log/*1[01].json",  # after the checkpoint
    "source log checkpoint": "warehouse/topics/sales/_delta_log/*.checkpoint.parquet",
    "last checkpoint": "warehouse/topics/sales/_delta_log/_last_checkpoint",
    "sink file": "warehouse/topics/[ob]*/partition=*/*.parquet",
    "sink log entry": "warehouse/topics/[ob]*/_delta_log/*.json",
    "sink log checkpoint": "warehouse/topics/once/_delta_log/*.checkpoint.parquet",
    "changelog file": f"warehouse/topics/{_CHANGELOG}/partition=*/*.parquet",
    "rewrite": "warehouse/topics/*/_rewrites/*.json",
    "rewriting record": f"{_JOB}/rewrites.json",
    "commit": f"{_JOB}/commits/0*.json",
    "head hint": f"{_JOB}/commits/head.json",
    "plan": f"{_JOB}/runs/*/plan.json",
    "staged": f"{_JOB}/runs/*/staged.json",
    "audit": f"{_JOB}/runs/*/audit.json",
    "topology": f"{_JOB}/topologies/*.json",
    "mark of what has expired": f"{_JOB}/expired/*.json",
    "maintenance record": f"{_JOB}/maintenance.json",
    "history of the report": f"{_JOB}/reports/history.json",
    "state file": f"{_JOB}/state/*/*",
    "cached state file": f"state/cache/{JOB}/*/*",
    "cached state file, unseen": f"state/cache/{JOB}/*/*",
    "record of the cache": f"state/cache/{JOB}/*.json",
    "repartition file": f"{_JOB}/staging/*/*",
    "staged file": "warehouse/topics/[ob]*/partition=*/*",
}
"""By kind of file, where those of the kind are: a pattern below the job's root, in which ``*`` takes slashes too."""

WHILE_RUNNING = ("repartition file", "staged file")
"""Kinds that are damaged as soon as a task has written them."""


class UnnoticedError(AssertionError):
    """Damage that nobody noticed has changed something, or was not told as it should be."""


@dataclass(frozen=True)
class Damage:
    """What is done to a file's bytes; ``at`` and ``length`` in bytes but for a flipped bit's place."""

    how: str
    at: int
    length: int

    @classmethod
    def chosen(cls, chance: random.Random, size: int) -> Damage:
        """Mostly a flipped bit."""
        how = chance.choices(["flip", "cut", "zero", "swap"], [7, 1, 1, 1])[0]
        length = max(1, min(size // 3, chance.choice([16, 64, 512])))
        bound = 8 * size if how == "flip" else size - 2 * length if how == "swap" else size
        return cls(how, chance.randrange(max(bound, 1)), length)

    def applied(self, data: bytes) -> bytes:
        """The damaged bytes."""
        if self.how == "flip":
            damaged = bytearray(data)
            byte, bit = divmod(self.at % (8 * len(data)), 8)
            damaged[byte] ^= 1 << bit
            return bytes(damaged)
        if self.how == "cut":
            return data[: self.at]
        middle, end = self.at + self.length, self.at + 2 * self.length
        if self.how == "zero":
            return data[: self.at] + bytes(len(data[self.at : middle])) + data[middle:]
        return data[: self.at] + data[middle:end] + data[self.at : middle] + data[end:]


@dataclass(frozen=True)
class Case:
    """One damage to one file."""

    kind: str
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came of a case: ``named`` or ``harmless``."""

    case: Case
    what: str
    file: str
    damage: Damage
    error: str | None = None


@dataclass
class _Spot:
    """The file that a case damages, once it is known."""

    file: Path = field(default_factory=Path)
    good: bytes = b""
    damage: Damage = field(default_factory=lambda: Damage("none", 0, 0))


class Corruption:
    """A job to be damaged, again and again, in copies below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._base = directory / "base"
        _prepare(self._base)
        self._expected = self._undisturbed("undisturbed")

    def run(self, case: Case, damage: Damage | None = None) -> Outcome:
        """Runs a case; ``damage`` instead of what its seed says.

        Raises:
            UnnoticedError: See the module's docstring.
        """
        chance = random.Random(f"{case.kind} {case.seed}")
        root = Path(shutil.copytree(self._base, self._directory / f"{case.kind} {case.seed}"))
        spot = _Spot()
        try:
            error = self._disturbed(root, case, chance, spot, damage)
            name = str(spot.file.relative_to(root))
            if error is None:
                return Outcome(case, "harmless", name, spot.damage)
            self._check_error(error, case, spot)
            if case.kind not in WHILE_RUNNING:
                _replace(spot.file, spot.good, spot.file.stat().st_mtime_ns)
                self._check(_everything(root), f"{case}: after {name} was restored")
            return Outcome(case, "named", name, spot.damage, str(error))
        finally:
            shutil.rmtree(root)

    @property
    def root(self) -> Path:
        """Where the job is that the copies are made of."""
        return self._base

    def files(self, kind: str) -> list[str]:
        """The files of a kind, relative to the job's root; none of those that are `WHILE_RUNNING`."""
        return [str(file.relative_to(self._base)) for file in _files(self._base, kind)]

    def _undisturbed(self, name: str) -> dict[str, Any]:
        return _everything(Path(shutil.copytree(self._base, self._directory / name)))

    def _disturbed(
        self, root: Path, case: Case, chance: random.Random, spot: _Spot, damage: Damage | None
    ) -> HindstreamError | None:
        """The error that the damage has led to; None: none, and all is as it should be."""

        def harm(files: Sequence[Path]) -> None:
            spot.file = chance.choice(files)
            spot.good = spot.file.read_bytes()
            spot.damage = damage or Damage.chosen(chance, len(spot.good))
            before = spot.file.stat().st_mtime_ns
            _replace(spot.file, spot.damage.applied(spot.good), before, in_place=case.kind.endswith("unseen"))

        if case.kind == "state file":
            shutil.rmtree(root / "state")  # else the host has its copies
        if case.kind not in WHILE_RUNNING:
            harm(_files(root, case.kind))
            found = _result(root)
        else:
            skipped = chance.randrange(3)
            before = set(_files(root, case.kind))

            def observe(name: str) -> None:
                nonlocal skipped
                if name != "task.files-staged" or spot.file != Path():
                    return
                made = [file for file in _files(root, case.kind) if file not in before]
                skipped -= bool(made)
                if skipped < 0:
                    harm(made)

            with observed(observe):
                found = _result(root)
        if isinstance(found, HindstreamError):
            return found
        self._check(found, f"{case}: {spot.file.name}, {spot.damage}")
        return None

    def _check(self, found: dict[str, Any], where: str) -> None:
        different = [name for name in found if found[name] != self._expected[name]]
        if different:
            raise UnnoticedError(f"{where}: other {', '.join(different)}")

    def _check_error(self, error: HindstreamError, case: Case, spot: _Spot) -> None:
        if not isinstance(error, (CorruptedDataError, InputError, ConfigurationError)):
            raise UnnoticedError(f"{case}: {spot.file.name}, {spot.damage}: {type(error).__name__}: {error}") from error
        if spot.file.name not in str(error) or not error.next_step:
            raise UnnoticedError(f"{case}: {spot.file}, {spot.damage}: not named: {error!r} {error}") from error


def _files(root: Path, kind: str) -> list[Path]:
    pattern = str(root / KINDS[kind])
    return sorted(path for path in root.rglob("*") if path.is_file() and fnmatch.fnmatch(str(path), pattern))


def _replace(file: Path, data: bytes, modified_ns: int, *, in_place: bool = False) -> None:
    """Puts ``data`` into a file; ``in_place`` nobody can tell it from the file that was there."""
    if in_place:
        with file.open("r+b") as opened:
            opened.write(data)
            opened.truncate()
        os.utime(file, ns=(modified_ns, modified_ns))
    else:
        part = file.with_name("part")
        part.write_bytes(data)
        part.replace(file)


def _pipeline(root: Path) -> Pipeline:
    return Pipeline(root, topology(over_all_partitions=True), JOB, changelogs=[_STORE], batch_records=50)


def _maintain(pipeline: Pipeline) -> None:
    files = FilePolicy("m", target_bytes=4_000, keep_replaced_ms=1, every_commits=1)
    maintain(pipeline.warehouse, JOB, Retention(2), now_ms=0, files=files)


def _prepare(root: Path) -> None:
    pipeline = _pipeline(root)
    records = sales(5, 330)
    for part in range(11):
        pipeline.archive("sales", records[30 * part : 30 * (part + 1)], TYPES, partitions=2)
    for hour in HOURS[:3]:
        _slice(pipeline, hour)
        _maintain(pipeline)
    DeltaTable(str(root / "warehouse/topics/once")).create_checkpoint()
    _report(pipeline)
    _slice(pipeline, HOURS[3], through="audit")


def _slice(pipeline: Pipeline, until_ms: int, through: str = "publish") -> None:
    """One slice, resumed where it was interrupted."""
    warehouse = pipeline.warehouse
    planned = pipeline.plan(until_ms)
    if isinstance(planned, Plan):
        if read_staged(warehouse, planned) is None:
            stage(warehouse, planned, pipeline.replay(planned))
        if Runs(warehouse, JOB).audit(planned.run_id) is None:
            passed = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0)
            record_audit(warehouse, planned, passed)
        if through == "audit":
            return
        commit(warehouse, planned, now_ms=0)
    publish(warehouse, JOB)


def _report(pipeline: Pipeline) -> dict[str, Any]:
    path = f"jobs/{JOB}/reports/history.json"
    history, _ = follow(pipeline.warehouse, JOB, path)
    pipeline.warehouse.put(path, history.encode())
    # An open run whose documents are damaged is given up for another try: that is the one difference to be seen.
    return history.model_dump(exclude={"runs", "newest", "last", "seconds"})


def _result(root: Path) -> dict[str, Any] | HindstreamError:
    """What everything comes to, or the error that ends it; what can be tried again is, as a scheduler would."""
    for _ in range(3):
        try:
            return _everything(root)
        except RetryableError as error:
            found: HindstreamError = error
        except HindstreamError as error:
            return error
    return found


def _everything(root: Path) -> dict[str, Any]:
    """Goes on with the job to its end, and gives all that is there then."""
    pipeline = _pipeline(root)
    for until_ms in (HOURS[3], LAST):
        _slice(pipeline, until_ms)
    _maintain(pipeline)
    runs, log = Runs(pipeline.warehouse, JOB), CommitLog(pipeline.warehouse, JOB)
    commits = [log.read(n) for n in range(log.head_number(), 0, -1)]
    documents = [document(made.run_id) for made in commits for document in (runs.plan, runs.staged, runs.audit)]
    return {
        "source": [(row[0], row[1], row[2], row[4]) for row in pipeline.output("sales")],
        **{topic: pipeline.output(topic) for topic in _TOPICS},
        "published": [open_archive(pipeline.warehouse, topic).last_transaction(JOB) for topic in _TOPICS],
        "commits": [
            (made.commit, {task_id: task.position for task_id, task in made.tasks.items()}) for made in commits
        ],
        "sink files": [(sink.topic, sink.file.sha256) for made in commits for sink in made.sinks],
        "documents": [document is not None for document in documents],
        "topology": runs.topology(commits[0].fingerprint),
        "state": pipeline.state(),
        "report": _report(pipeline),
    }


def main(arguments: Sequence[str]) -> int:
    """Runs cases of each kind; the number of those that went unnoticed, at most 1."""
    cases = int(arguments[0]) if arguments else 25
    first = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(1 << 31)
    counts: Counter[tuple[str, str]] = Counter()
    print(f"seeds from {first}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        corruption = Corruption(Path(directory))
        for kind in arguments[2:] or KINDS:
            for seed in range(first, first + cases):
                try:
                    what = corruption.run(Case(kind, seed)).what
                except Exception as error:  # noqa: BLE001 - any other error is a failure to be shown, not the end
                    what = "UNNOTICED"
                    print(f"{Case(kind, seed)}: {type(error).__name__}: {error}", flush=True)
                counts[kind, what] += 1
            said = ", ".join(f"{counts[kind, what]} {what}" for what in ("named", "harmless", "UNNOTICED"))
            print(f"{kind}: {said}", flush=True)
    return int(any(what == "UNNOTICED" for _, what in counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
