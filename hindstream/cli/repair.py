"""``hindstream repair``: a fork replays with the corrected topology, and the job takes its answers."""

from __future__ import annotations

import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hindstream.cli.diff import show_difference
from hindstream.cli.try_version import check_name_is_free, drop_dead, ended_by_signals, told
from hindstream.console.numbers import count_text
from hindstream.console.results import Results
from hindstream.runs import now_ms
from hindstream.slices import time_ms
from hindstream.trials import begin, compared, dropped_at_the_end, replay
from statelib.commits.trials import plan_trial
from statelib.comparison.matches import Resources
from statelib.job.job import load_job
from statelib.repair.repair import repair
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from hindstream.cli.diff import Asked
    from hindstream.console.json_lines import Output
    from statelib.repair.repair import Repaired
    from statelib.settings.settings import Settings


@dataclass(frozen=True)
class Wanted:
    """What is repaired.

    Attributes:
        job: Where the corrected job is.
        start: Since when the job is wrong: ISO 8601 with time zone, or ms.
        fork: What the fork is called.
        keep: Whether it stays.
        yes: Whether nobody is asked.
        supersede: See `statelib.repair.repair.repair`.
    """

    job: str
    start: str
    fork: str
    keep: bool
    yes: bool
    supersede: bool


def repair_job(wanted: Wanted, asked: Asked, settings: Settings, *, output: Output) -> None:
    """Forks the job, replays, prints the differences, asks, publishes them, and drops the fork in all cases.

    Raises:
        ConfigurationError: See `statelib.commits.trials.plan_trial` and `statelib.repair.repair.repair`.
        HindstreamError: That of the phase that failed.
        Exit: With code 1: the question was answered with no.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    corrected, out = load_job(wanted.job), Results(output)
    drop_dead(corrected.name, settings)
    start_ms = time_ms("from", wanted.start)
    topology = corrected.as_fork(wanted.fork).topology
    trial = plan_trial(warehouse, corrected.name, topology, wanted.fork, start_ms=start_ms)
    if wanted.keep:
        check_name_is_free(warehouse, wanted.fork)
    with ended_by_signals(), dropped_at_the_end(trial, settings, keep=wanted.keep):
        begin(trial, settings, keep=wanted.keep)
        typer.echo(told(trial.new, wanted.job, start_ms), err=True)
        replay(trial, corrected, None, settings)
        show_difference(*compared(trial), asked, settings, output=output)
        question = f"Let {corrected.name} take the state of B, and publish these differences?"
        if not wanted.yes and not typer.confirm(question, err=True):
            raise typer.Exit(1)
        with tempfile.TemporaryDirectory(prefix="hindstream-repair-") as scratch:
            done = repair(
                warehouse,
                corrected.name,
                wanted.fork,
                Resources(Path(scratch)),
                attempt=uuid.uuid4().hex[:16],
                now_ms=now_ms(),
                supersede=wanted.supersede,
            )
        out.say(_told(done))
        out.result({"job": corrected.name, "commit": done.commit.commit, "records": done.records})


def _told(done: Repaired) -> str:
    written = [f"{count_text(n)} to {topic}" for topic, n in done.records.items() if n]
    corrections = f"it has written {', '.join(written)}" if written else "its sinks were right, and get no record"
    return f"Commit {done.commit.commit} repairs {done.commit.job}: {corrections}."
