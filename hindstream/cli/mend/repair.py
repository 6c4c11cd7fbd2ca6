"""``hindstream repair``: a fork replays with the corrected topology, and the job takes its answers."""

from __future__ import annotations

import tempfile
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hindstream.cli.arguments import check_page
from hindstream.console.keys import keys_of
from hindstream.cli.versions.diff import show_difference
from hindstream.cli.versions.try_version import check_name_is_free, drop_dead, ended_by_signals, repairs_told, told
from hindstream.console.numbers import count_text, duration_text
from hindstream.console.results import Results
from hindstream.lineage.reported import change_told
from hindstream.runs import now_ms
from hindstream.slices import time_ms
from hindstream.trials.forks import begin, dropped_at_the_end
from hindstream.trials.replay import replay
from hindstream.trials.wanted import compared
from statelib.columns.times import LAST_TIME_MS, instant_text
from statelib.commits.standing import standing_commit
from statelib.commits.versions.trials import plan_interval, plan_trial
from statelib.comparison.matches import Resources
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.repair.bound import check_bound
from statelib.repair.lateness import check_let_in, late_interval
from statelib.repair.repair import repair
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from hindstream.cli.versions.diff import Asked
    from hindstream.console.json_lines import Output
    from statelib.commits.versions.trials import Trial
    from statelib.job.job import Job
    from statelib.repair.lateness import LateInterval
    from statelib.repair.repair import Repaired
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


@dataclass(frozen=True)
class Wanted:
    """What is repaired.

    Attributes:
        job: Where the corrected job is.
        start: Since when the job is wrong: ISO 8601 with time zone, or ms.
        end: Until when; None: until now.
        then: Where the job is that goes on from then; None: it is the corrected one.
        keys: The keys that may change, as text; none: all.
        late: Whether the records of the interval are let in that came too late for their windows.
        fork: What the fork is called.
        keep: Whether it stays.
        yes: Whether nobody is asked.
        supersede: See `statelib.repair.repair.repair`.
    """

    job: str
    start: str
    end: str | None
    then: str | None
    keys: tuple[str, ...]
    late: bool
    fork: str
    keep: bool
    yes: bool
    supersede: bool


def repair_job(wanted: Wanted, asked: Asked, settings: Settings, *, output: Output) -> None:
    """Forks the job, replays, prints the differences, asks, publishes them, and drops the fork in all cases.

    Raises:
        ConfigurationError: See `statelib.commits.versions.trials.plan_trial` and `statelib.repair.repair.repair`.
        HindstreamError: That of the phase that failed.
        Exit: With code 1: the question was answered with no.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    if asked.page is not None:
        check_page(asked.page)
    corrected, out = load_job(wanted.job), Results(output)
    drop_dead(corrected.name, settings)
    start_ms = time_ms("from", wanted.start)
    end_ms = None if wanted.end is None else time_ms("to", wanted.end)
    then = corrected if wanted.then is None else load_job(wanted.then)
    late = _late(warehouse, corrected, wanted, start_ms, end_ms) if wanted.late else None
    trial = _planned(warehouse, corrected, then, wanted.fork, start_ms, end_ms, late)
    asked = replace(asked, split_ms=end_ms)
    if wanted.keep:
        check_name_is_free(warehouse, wanted.fork)
    with ended_by_signals(), dropped_at_the_end(trial, settings, keep=wanted.keep):
        begin(trial, settings, keep=wanted.keep)
        told_first = (*_plan_told(trial, wanted, start_ms, end_ms or 0), *_late_told(late))
        for sentence in (*told_first, *repairs_told(warehouse, trial)):
            typer.echo(sentence, err=True)
        replay(trial, corrected, None, settings, then=then, keep=wanted.keep)
        if late is not None:
            check_let_in(warehouse, wanted.fork)
        show_difference(*compared(trial), asked, settings, output=output)
        if wanted.keys:
            with _scratch() as resources:
                check_bound(warehouse, corrected.name, wanted.fork, partial(_keys_of, wanted.keys), resources)
        question = f"Let {corrected.name} take the state of B, and publish these differences?"
        if not wanted.yes and not typer.confirm(question, err=True):
            raise typer.Exit(1)
        began_ms = now_ms()
        with _scratch() as resources:
            done = repair(
                warehouse,
                corrected.name,
                wanted.fork,
                resources,
                attempt=uuid.uuid4().hex[:16],
                now_ms=now_ms(),
                supersede=wanted.supersede,
                end_ms=end_ms,
            )
        change_told(done.commit, settings, began_ms)
        out.say(_told(done))
        out.result({"job": corrected.name, "commit": done.commit.commit, "records": done.records})


@contextmanager
def _scratch() -> Iterator[Resources]:
    with tempfile.TemporaryDirectory(prefix="hindstream-repair-") as folder:
        yield Resources(Path(folder))


def _late(warehouse: Storage, job: Job, wanted: Wanted, start_ms: int, end_ms: int | None) -> LateInterval:
    """What came too late in the interval.

    Raises:
        ConfigurationError: Two files are given; or see `statelib.repair.lateness.late_interval`.
    """
    if wanted.then is not None:
        what, step = "late records are let in by the job's own file", "leave --then out; repair twice to correct both"
        raise ConfigurationError(what, setting="--late, --then", next_step=step)
    return late_interval(warehouse, job.name, job.topology, start_ms, LAST_TIME_MS if end_ms is None else end_ms)


def _keys_of(given: Sequence[str], sink: str, type_: pa.DataType) -> list[Any]:  # noqa: ARG001
    """What the keys that are given are in a sink; what can be none of its keys is left out."""
    found: list[Any] = []
    for text in given:
        with suppress(ConfigurationError):
            found += keys_of(text, type_)
    return found


def _planned(
    warehouse: Storage,
    corrected: Job,
    then: Job,
    fork: str,
    start_ms: int,
    end_ms: int | None,
    late: LateInterval | None,
) -> Trial:
    """What is replayed.

    Raises:
        ConfigurationError: What goes on after the interval is not what the job runs; see also
            `statelib.commits.versions.trials.plan_interval`.
    """
    topology = corrected.as_fork(fork).topology
    if late is not None and end_ms is None:
        end_ms = LAST_TIME_MS
    if end_ms is None and then is corrected:
        return plan_trial(warehouse, corrected.name, topology, fork, start_ms=start_ms)
    if end_ms is None:
        what = "it is not said when the job goes on with the other file"
        raise ConfigurationError(what, setting="--then", next_step="give the end of the interval: --to TIME")
    head = standing_commit(warehouse, corrected.name)
    runs = {then.topology.fingerprint}
    if head.repaired_by is not None:  # a repair's commit has the topology of its fork
        runs.add(then.as_fork(head.repaired_by.job).topology.fingerprint)
    if then.name != corrected.name or head.fingerprint not in runs:
        what = "the file is not what the job runs, and after --to it would go on with it"
        step = "give the job's own file for what comes after: --then FILE.py:NAME; or repair without --to"
        if late is not None:
            what = "the file is not what the job runs, and late records are let in by the job's own file"
            step = "give that file; repair twice to correct both"
        raise ConfigurationError(what, job=corrected.name, commit=head.commit, next_step=step)
    later = then.as_fork(fork).topology
    return plan_interval(
        warehouse,
        corrected.name,
        topology,
        later,
        fork,
        start_ms=start_ms,
        end_ms=end_ms,
        leeway=None if late is None else late.leeway,
        oldest_ms=None if late is None else late.oldest_ms,
    )


def _plan_told(trial: Trial, wanted: Wanted, start_ms: int, end_ms: int) -> Iterator[str]:
    """Which file replays what, for a person."""
    own = wanted.then or wanted.job
    if trial.before is None:
        yield told(trial.new, wanted.job, start_ms)
    else:
        yield told(trial.before, own, start_ms)
        slices = counted(len(trial.new.ends), "slice")
        yield f"Then {wanted.job} replays what came from {instant_text(start_ms)} on; {slices}."
    if trial.then is not None:
        slices = counted(len(trial.then.ends), "slice")
        yield f"Then {own} replays what came from {instant_text(end_ms)} on; {slices}."


def _late_told(late: LateInterval | None) -> Iterator[str]:
    """What is let in, and what is not, for a person."""
    if late is not None:
        times = counted(late.turned_away, "time")
        latest = duration_text(late.latest_ms)
        yield f"In the runs of this interval, a window was closed for a record {times}; the latest was {latest} late."
        for node, records in late.stay_out.items():
            yield f"{node} dropped {counted(records, 'late record')}, which stay out: that needs another file."


def _told(done: Repaired) -> str:
    written = [f"{count_text(n)} to {topic}" for topic, n in done.records.items() if n]
    corrections = f"it has written {', '.join(written)}" if written else "its sinks were right, and get no record"
    return f"Commit {done.commit.commit} repairs {done.commit.job}: {corrections}."
