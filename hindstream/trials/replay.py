"""Replays what the forks of a trial lack, one slice after the other."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from hindstream.console.progress import Progress
from hindstream.spark.phases.pipeline import run_slice
from statelib.errors.kinds import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.commits.versions.trials import Side, Trial
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_PAGES = {"report", "data_docs"}
"""What an error names that is written into a job's folder."""


def replay(
    trial: Trial, new: Job, old: Job | None, settings: Settings, *, then: Job | None = None, keep: bool = False
) -> None:
    """Replays what the forks lack. A repeat goes on where it has ended.

    Args:
        trial: What is tried, whose forks have been made.
        new: The job's other version.
        old: The job as it is, if it has to be replayed.
        settings: See `Settings`; stores that begin empty, or are made anew, are those of the other version. No store
            has a changelog here, and the files of sources stay as they are.
        then: The job as it is, if the fork replays that before or after the other version.
        keep: Whether the version that is tried stays. If not, no report is written: it would go with the fork.

    Raises:
        HindstreamError: That of the phase that failed. It names no page that goes with the fork.
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
                is_kept = keep and side is not trial.old
                for _ in _slices(side, job, given, is_sample=trial.sample_keys is not None, is_kept=is_kept):
                    progress.advance()


def slices_of(trial: Trial) -> int:
    """How many slices are replayed."""
    around = [side for side in (trial.before, trial.then) if side is not None]
    return sum(len(side.ends) for side in (*trial.sides, *around))


def _slices(side: Side, job: Job, settings: Settings, *, is_sample: bool, is_kept: bool) -> Iterator[None]:
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
        of_fork = dataclasses.replace(of_fork, expectations={}, source_samples={})
    for number, ends in enumerate(side.ends, start=1):
        is_sealed = side.seals and number == len(side.ends)
        given = settings.model_copy(update={**own, "end_of_input": "seal" if is_sealed else "hold"})
        try:  # if a topic that only the job reads has moved on, there is nothing to do
            run_slice(of_fork, given, end_offsets=ends, leeway=side.leeway_of(number), with_report=is_kept)
        except InputError as error:
            if is_kept or not _PAGES & error.place.keys():
                raise
            raise _without_pages(error) from error
        yield


def _without_pages(error: InputError) -> InputError:
    """The failure of an audit, for who cannot look at its pages: they go with the fork."""
    place = {name: value for name, value in error.place.items() if name not in _PAGES}
    step = "fix the version and try it again; with --keep NAME the fork stays, with the report of the run"
    return InputError(error.what, next_step=step, **place)
