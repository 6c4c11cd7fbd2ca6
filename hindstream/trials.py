"""Tries another version of a job on its history: forks it, replays, drops the forks.

What has to be replayed is planned by `statelib.commits.versions.trials`.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import socket
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindstream.console.differences import field_text, interval_sentences, sink_name, sink_sentences
from hindstream.console.progress import Progress
from hindstream.report.ledger_differences import ledger_sentences
from hindstream.runs import now_ms, open_warehouse, split_commit
from hindstream.spark.phases.pipeline import run_slice
from statelib.commits.forks import ancestors, forked_from, forks_of, holder_of, is_being_dropped, read_reference
from statelib.commits.job_names import check_job_name
from statelib.commits.layout import Runs, late_topic, quarantine_topic
from statelib.commits.standing import standing_commit
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.sink_history import sink_history
from statelib.commits.versions.trials import old_name, plan_trial
from statelib.comparison.fields import Rules
from statelib.comparison.jobs import compare_jobs
from statelib.comparison.matches import Resources
from statelib.comparison.sinks import JobCommit, check_known
from statelib.comparison.times import Interval
from statelib.documents.upkeep import Trial as TrialMark
from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.job.job import load_job
from statelib.records.key_sample import KeySample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.commits.versions.trials import Side, Trial
    from statelib.comparison.matches import Way
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)
_NO_RULES = Rules()

FORK_PREFIX = "try-"
"""How the names of forks begin that are dropped when they have been compared."""


@dataclass(frozen=True, slots=True)
class Against:
    """What another version is compared with.

    Attributes:
        job: The job's name.
        commit: As of which commit; None: the newest.
        version: What it runs; None: nobody has said.
    """

    job: str
    commit: int | None
    version: Job | None

    @classmethod
    def of(cls, reference: str | None, new: Job) -> Against:
        """What ``JOB[@COMMIT]`` says, the job's name or where it is; None: the job whose name the other version has.

        Raises:
            ConfigurationError: No job can have that name, or there is none where it is said to be.
        """
        if reference is None:
            return cls(new.name, None, None)
        place, commit = split_commit(reference)
        if ":" in place or place.endswith(".py"):
            old = load_job(place)
            return cls(old.name, commit, old)
        check_job_name(place)
        return cls(place, commit, None)


def share_of(text: str) -> float:
    """What ``1%`` or ``0.01`` says: a share of the keys.

    Raises:
        ConfigurationError: It is no share between 0 and 1.
    """
    is_percent = text.endswith("%")
    try:
        share = float(text.removesuffix("%")) / (100 if is_percent else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        step = "write --sample-keys 1%, or --sample-keys 0.01; leave it out for all keys"
        raise ConfigurationError(f"{text} is no part of the keys", setting="--sample-keys", next_step=step)
    return share


def planned(
    warehouse: Storage,
    new: Job,
    against: Against,
    fork: str,
    *,
    start_ms: int | None,
    end_ms: int | None,
    sample_keys: float | None = None,
) -> Trial:
    """What has to be replayed to compare a version with a job: see `statelib.commits.versions.trials.plan_trial`.

    ``sample_keys``: the share of the keys that is; None: all.

    Raises:
        ConfigurationError: Two ends are given, a commit and a time; or see there.
    """
    if against.commit is not None and end_ms is not None:
        step = f"give one of them: {against.job}@{against.commit}, or --to"
        raise ConfigurationError("two ends of the trial are given", job=against.job, next_step=step)
    trial = plan_trial(
        warehouse,
        against.job,
        new.as_fork(fork).topology,
        fork,
        old=None if against.version is None else against.version.topology,
        commit=against.commit,
        start_ms=start_ms,
        end_ms=end_ms,
    )
    return trial.model_copy(update={"sample_keys": sample_keys})


def compared(trial: Trial) -> tuple[JobCommit, JobCommit]:
    """The job and the version that is tried, where they are compared."""
    old = JobCommit(trial.old.fork) if trial.old is not None else JobCommit(*trial.at) if trial.at is not None else None
    return old or JobCommit(trial.job), JobCommit(trial.new.fork)


def check_compared(warehouse: Storage, trial: Trial, new: Job, sinks: Sequence[str], stores: Sequence[str]) -> None:
    """Makes sure that there will be what is to be compared, before anything is replayed.

    Args:
        warehouse: Root of all durable data.
        trial: What is tried.
        new: The job's other version.
        sinks: See `statelib.comparison.sinks.compare_sinks`.
        stores: See `statelib.comparison.stores.compare_stores`.

    Raises:
        ConfigurationError: One of them has no such sink, or store.
    """
    job, commit = trial.at or (trial.job, None)
    there = sink_history(warehouse, job, commit)
    aside = {topic for name in ancestors(warehouse, job) for topic in (late_topic(name), quarantine_topic(name))}
    begun = sink_history(warehouse, trial.new.job, trial.new.commit) if trial.new.commit else {}
    check_known("sink", sinks, there, {*new.topology.sink_topics, *aside, *begun}, (job, new.name))
    described = Runs(warehouse, job).topology(standing_commit(warehouse, job, commit).fingerprint)
    if described is not None:
        tasks = (processor for sub in new.topology.sub_topologies for processor in sub.processors)
        of_new = {store.name for processor in tasks for store in processor.spec.state_stores()}
        check_known("store", stores, {store.name for store in described.stores}, of_new, (job, new.name))


def sampled(trial: Trial) -> KeySample | None:
    """The keys that are replayed and compared; None: all."""
    return None if trial.sample_keys is None else KeySample(trial.sample_keys, seen=set())


def begin(trial: Trial, settings: Settings, *, keep: bool = False, outlives_process: bool = False) -> None:
    """Makes the forks. A repeat changes nothing.

    Args:
        trial: What is tried.
        settings: See `Settings`.
        keep: Whether the version that is tried stays, as any fork.
        outlives_process: Whether another process goes on with it, as in Airflow, and drops the forks.

    Raises:
        HindstreamError: See `statelib.commits.versions.fork`.
    """
    warehouse = open_warehouse(settings)
    process = None if outlives_process else os.getpid()
    of_trial = TrialMark(
        host=socket.gethostname(), process=process, began_at_ms=now_ms(), sample_keys=trial.sample_keys
    )
    for side in trial.sides:
        mark = None if keep and side is trial.new else of_trial
        if side.commit:
            fork(warehouse, side.job, side.fork, side.commit, now_ms=now_ms(), trial=mark)
        else:
            fork_from_beginning(warehouse, side.job, side.fork, trial=mark)


def replay(trial: Trial, new: Job, old: Job | None, settings: Settings, *, then: Job | None = None) -> None:
    """Replays what the forks lack. A repeat goes on where it has ended.

    Args:
        trial: What is tried, whose forks have been made.
        new: The job's other version.
        old: The job as it is, if it has to be replayed.
        settings: See `Settings`; stores that begin empty, or are made anew, are those of the other version. No store
            has a changelog here, and the files of sources stay as they are.
        then: The job as it is, if the fork replays that before or after the other version.

    Raises:
        HindstreamError: That of the phase that failed.
    """
    as_it_is = settings.model_copy(update={"fill_stores": (), "reset_stores": (), "migrate_stores": ()})
    with Progress(f"trying {trial.job}", slices_of(trial), unit="slices") as progress:
        of_all = (
            (trial.old, old, as_it_is),
            (trial.before, then, as_it_is),
            (trial.new, new, settings),
            (trial.then, then, as_it_is),
        )
        for side, job, given in of_all:
            if side is not None and job is not None:
                for _ in _slices(side, job, given, is_sample=trial.sample_keys is not None):
                    progress.advance()


def slices_of(trial: Trial) -> int:
    """How many slices are replayed."""
    around = [side for side in (trial.before, trial.then) if side is not None]
    return sum(len(side.ends) for side in (*trial.sides, *around))


def _slices(side: Side, job: Job, settings: Settings, *, is_sample: bool) -> Iterator[None]:
    own: dict[str, Any] = {
        "fork": side.fork,
        "until": None,
        "changelogs": (),
        "merge_source_files": False,
        "data_docs": "failed",
        "openlineage": False,  # what is tried reaches nobody
    }
    of_fork = job.as_fork(side.fork)
    if is_sample:  # expectations are about all keys
        of_fork = dataclasses.replace(of_fork, expectations={})
    for number, ends in enumerate(side.ends, start=1):
        is_sealed = side.seals and number == len(side.ends)
        given = settings.model_copy(update={**own, "end_of_input": "seal" if is_sealed else "hold"})
        run_slice(of_fork, given, end_offsets=ends)  # if a topic that only the job reads has moved on: nothing to do
        yield


def drop(trial: Trial, settings: Settings, *, keep: bool = False) -> None:
    """Drops the forks, with all that they have written. A repeat goes on where it has ended.

    Args:
        trial: What was tried.
        settings: See `Settings`.
        keep: Whether the version that was tried stays.

    Raises:
        HindstreamError: See `statelib.commits.versions.drop_fork`.
    """
    warehouse = open_warehouse(settings)
    for side in reversed(trial.sides[1:] if keep else trial.sides):
        if _is_there(warehouse, side.job, side.fork):
            _drop(warehouse, side.fork, settings)


def drop_named(fork: str, settings: Settings) -> None:
    """Drops the forks of the trial whose fork has this name, as far as they have been made.

    Raises:
        HindstreamError: See `statelib.commits.versions.drop_fork`.
    """
    warehouse = open_warehouse(settings)
    for name in (old_name(fork), fork):
        if holder_of(warehouse, name) is not None or is_being_dropped(warehouse, name):
            _drop(warehouse, name, settings)


@dataclass(frozen=True, slots=True)
class Told:
    """How a version differs from a job, in words.

    Attributes:
        is_empty: Whether it does not.
        subject: The first sentence.
        text: All of them.
    """

    is_empty: bool
    subject: str
    text: str


def told(
    trial: Trial, settings: Settings, *, sinks: Sequence[str] = (), way: Way | None = None, rules: Rules = _NO_RULES
) -> Told:
    """Compares the job and the version that is tried; see `statelib.comparison.jobs.compare_jobs`.

    Raises:
        ConfigurationError: See there.
    """
    with tempfile.TemporaryDirectory(prefix="hindstream-diff-") as scratch:
        resources = Resources(Path(scratch))
        warehouse = open_warehouse(settings)
        found = compare_jobs(
            warehouse,
            *compared(trial),
            resources,
            sinks=sinks,
            way=way,
            rules=rules,
            examples=0,
            within=Interval(keys=sampled(trial)),
        )
    first, *others = [
        *sink_sentences(found.sinks),
        *interval_sentences(found.within),
        *ledger_sentences(found.ledgers),
    ]
    fields = [
        f"{sink_name(sink)}: {field_text(field)}" for sink in found.sinks.sinks for field in sink.difference.fields
    ]
    return Told(found.is_empty, first, "\n".join([first, *others, *fields]))


@contextmanager
def dropped_at_the_end(trial: Trial, settings: Settings, *, keep: bool = False) -> Iterator[None]:
    """Whatever happens inside, the forks are dropped behind it; ``keep``: but for the version that is tried.

    Raises:
        HindstreamError: They cannot be dropped; if something has gone wrong before, only the log says so.
    """
    try:
        yield
    except BaseException:
        try:
            drop(trial, settings, keep=keep)
        except HindstreamError as error:
            _log.warning("the forks of the trial are still there: %s", error)
        raise
    drop(trial, settings, keep=keep)


def drop_dead_trials(job: str, settings: Settings) -> list[str]:
    """Drops forks of trials of a job that were killed on this host; gives their names.

    Raises:
        HindstreamError: See `statelib.commits.versions.drop_fork`.
    """
    warehouse, dropped = open_warehouse(settings), []
    of: str | None = job
    while of is not None:
        for name in forks_of(warehouse, of):
            reference = read_reference(warehouse, of, name)
            if reference is not None and reference.trial is not None and _is_dead(reference.trial):
                _drop(warehouse, name, settings)
                dropped.append(name)
        base = forked_from(warehouse, of)
        of = None if base is None else base.job
    for name in _half_dropped(warehouse):
        _drop(warehouse, name, settings)
        dropped.append(name)
    return dropped


def _half_dropped(warehouse: Storage) -> list[str]:
    """Forks of trials of which nothing but the record of the drop is left."""
    names = (path.rpartition("/")[2] for path in warehouse.folders("jobs"))
    return [
        name
        for name in names
        if name.startswith(FORK_PREFIX) and is_being_dropped(warehouse, name) and holder_of(warehouse, name) is None
    ]


def _is_there(warehouse: Storage, job: str, name: str) -> bool:
    return read_reference(warehouse, job, name) is not None or is_being_dropped(warehouse, name)


def _is_dead(trial: TrialMark) -> bool:
    if trial.process is None or trial.host != socket.gethostname():
        return False
    try:
        os.kill(trial.process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _drop(warehouse: Storage, name: str, settings: Settings) -> None:
    drop_fork(warehouse, name, now_ms=now_ms(), supersede=True)
    for kind in ("cache", "attempts", "inspect", "copies"):  # see `statelib.commits.local_state`
        shutil.rmtree(settings.local_state_dir / kind / name, ignore_errors=True)
