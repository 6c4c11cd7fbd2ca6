"""``hindstream try``: another version of a job on its history, in one command."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from hindstream.cli.arguments import check_page
from hindstream.cli.versions.diff import print_difference
from hindstream.slices import time_ms
from hindstream.trials.forks import begin, drop_dead_trials, dropped_at_the_end
from hindstream.trials.replay import replay
from hindstream.trials.sentences import repairs_told, side_told
from hindstream.trials.wanted import Against, check_compared, compared, planned, sampled
from statelib.commits.layout import CommitLog
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from hindstream.cli.versions.diff import Asked
    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_TERMINATED = 143


@dataclass(frozen=True)
class Tried:
    """What is tried.

    Attributes:
        new: Where the other version is.
        against: The job, by name or by where it is, and maybe a commit; None: the one whose name the version has.
        start: From when on it is tried: ISO 8601 with time zone, or ms; None: from the beginning.
        end: Up to when; None: up to the commit.
        fork: What the fork is called.
        keep: Whether it stays.
        sample_keys: The share of the keys that is replayed and compared; None: all.
    """

    new: str
    against: str | None
    start: str | None
    end: str | None
    fork: str
    keep: bool
    sample_keys: float | None = None


def try_version(tried: Tried, asked: Asked, settings: Settings, *, output: Output) -> None:
    """Forks the job, replays, prints how the versions differ, and drops the forks in all cases.

    Raises:
        ConfigurationError: Stores are to be compared of a sample of keys, or it is to be kept; see
            `hindstream.trials.wanted.planned` and `print_difference`.
        HindstreamError: That of the phase that failed.
        Exit: With the code `hindstream.cli.versions.diff.DIFFERENT`: there is a difference.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    _check_sample(tried, asked)
    if asked.page is not None:
        check_page(asked.page)
    new = load_job(tried.new)
    against = Against.of(tried.against, new)
    drop_dead(against.job, settings)
    start_ms, end_ms = (
        None if text is None else time_ms(option, text) for option, text in (("from", tried.start), ("to", tried.end))
    )
    trial = planned(
        warehouse, new, against, tried.fork, start_ms=start_ms, end_ms=end_ms, sample_keys=tried.sample_keys
    )
    check_compared(warehouse, trial, new, asked.sinks, asked.stores, asked.rules)
    asked = replace(asked, within=replace(asked.within, keys=sampled(trial)))
    if tried.keep:
        check_name_is_free(warehouse, tried.fork)
    with ended_by_signals(), dropped_at_the_end(trial, settings, keep=tried.keep):
        begin(trial, settings, keep=tried.keep)
        for side, what in ((trial.new, tried.new), (trial.old, tried.against)):
            if side is not None:
                typer.echo(side_told(side, str(what), start_ms), err=True)
        for sentence in repairs_told(warehouse, trial):
            typer.echo(sentence, err=True)
        replay(trial, new, against.version, settings, keep=tried.keep)
        print_difference(*compared(trial), asked, settings, output=output)


def _check_sample(tried: Tried, asked: Asked) -> None:
    for option, is_given in (("--keep", tried.keep), ("--stores", asked.stores is not None)):
        if is_given and tried.sample_keys is not None:
            what = f"--sample-keys goes without {option}: the fork's state is complete for the sample's keys alone"
            raise ConfigurationError(what, setting=option, next_step=f"leave out --sample-keys, or {option}")


def drop_dead(job: str, settings: Settings) -> None:
    """Drops forks that were left by commands that were killed, and says so."""
    for dead in drop_dead_trials(job, settings):
        typer.echo(f"{dead} was left by a command that was killed, and has been dropped.", err=True)


def check_name_is_free(warehouse: Storage, fork: str) -> None:
    """Makes sure that there is no job of a name yet.

    Raises:
        ConfigurationError: There is one.
    """
    if CommitLog(warehouse, fork).head_number():
        step = f"choose another name, or drop that fork first: hindstream drop {fork}"
        raise ConfigurationError("there is a job of this name already", job=fork, next_step=step)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM, by which servers of builds end a command, ends it as Ctrl-C does: with all that has to be done then."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as Python calls it
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
