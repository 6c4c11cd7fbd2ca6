"""``hindstream repair``: a fork replays with the corrected topology, and the job takes its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from hindstream.cli.arguments import check_page
from hindstream.cli.versions.diff import show_difference
from hindstream.cli.versions.try_version import check_name_is_free, drop_dead, ended_by_signals
from hindstream.console.results import Results
from hindstream.slices import time_ms
from hindstream.trials.forks import begin, dropped_at_the_end
from hindstream.trials.repairs import check_keys, planned_repair, publish_repair
from hindstream.trials.replay import replay
from hindstream.trials.sentences import repair_told, repaired_told, repairs_told
from hindstream.trials.wanted import compared
from statelib.job.job import load_job
from statelib.repair.lateness import check_let_in
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from hindstream.cli.versions.diff import Asked
    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings


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
        ConfigurationError: See `hindstream.trials.repairs`.
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
    then = None if wanted.then is None else load_job(wanted.then)
    planned = planned_repair(
        warehouse, corrected, then, wanted.fork, start_ms=start_ms, end_ms=end_ms, late=wanted.late
    )
    trial = planned.trial
    asked = replace(asked, split_ms=end_ms)
    if wanted.keep:
        check_name_is_free(warehouse, wanted.fork)
    with ended_by_signals(), dropped_at_the_end(trial, settings, keep=wanted.keep):
        begin(trial, settings, keep=wanted.keep)
        first = repair_told(planned, wanted.job, wanted.then, start_ms, end_ms)
        for sentence in (*first, *repairs_told(warehouse, trial)):
            typer.echo(sentence, err=True)
        replay(trial, corrected, None, settings, then=then or corrected, keep=wanted.keep)
        if wanted.late:
            check_let_in(warehouse, wanted.fork)
        show_difference(*compared(trial), asked, settings, output=output)
        check_keys(warehouse, corrected.name, wanted.fork, wanted.keys)
        question = f"Let {corrected.name} take the state of B, and publish these differences?"
        if not wanted.yes and not typer.confirm(question, err=True):
            raise typer.Exit(1)
        done = publish_repair(corrected, wanted.fork, settings, end_ms=end_ms, supersede=wanted.supersede)
        out.say(repaired_told(done))
        out.result({"job": corrected.name, "commit": done.commit.commit, "records": done.records})
