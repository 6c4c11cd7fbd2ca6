"""What a trial or a repair replays, in words: for a person who waits for it, or is asked whether to approve it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.console.numbers import count_text, duration_text
from statelib.columns.times import instant_text
from statelib.commits.lineage import lineage
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.trials.repairs import PlannedRepair
    from statelib.commits.versions.trials import Side, Trial
    from statelib.repair.lateness import LateInterval
    from statelib.repair.repair import Repaired
    from statelib.storage import Storage


def side_told(side: Side, what: str, start_ms: int | None) -> str:
    """What a version of a job goes on from, for a person."""
    begins = f"goes on from commit {side.commit} of {side.job}"
    if not side.commit:
        begins = "replays from the beginning"
        if start_ms is not None:
            begins += f": no commit whose state is kept has ended by {instant_text(start_ms)}"
    return f"{what}, as {side.fork}, {begins}; {counted(len(side.ends), 'slice')} to replay."


def repairs_told(warehouse: Storage, trial: Trial) -> Iterator[str]:
    """That what is replayed has been repaired, for a person: a repair's file may have been another one."""
    if trial.old is not None:
        return  # the job is replayed with its file, too
    first = trial.before or trial.new
    job, commit = trial.at or (trial.job, None)
    after = first.commit if first.job == job else 0
    of_job = (made for made in lineage(warehouse, job, commit) if made.job == job)
    since = [made.commit for made in of_job if made.repaired_by is not None and made.commit > after]
    if since:
        by = " and ".join(f"commit {commit}" for commit in since)
        yield f"The job was repaired since, by {by}. What another file corrected there shows as a difference."


def repair_told(planned: PlannedRepair, job: str, then: str | None, start_ms: int, end_ms: int | None) -> Iterator[str]:
    """Which file replays what, and which late records are let in.

    Args:
        planned: What is replayed.
        job: Where the corrected job is.
        then: Where the job is as it is; None: there is one file.
        start_ms: When the interval begins.
        end_ms: When it ends; None: now.
    """
    trial, own = planned.trial, then or job
    if trial.before is None:
        yield side_told(trial.new, job, start_ms)
    else:
        yield side_told(trial.before, own, start_ms)
        slices = counted(len(trial.new.ends), "slice")
        yield f"Then {job} replays what came from {instant_text(start_ms)} on; {slices}."
    if trial.then is not None:
        slices = counted(len(trial.then.ends), "slice")
        yield f"Then {own} replays what came from {instant_text(end_ms or 0)} on; {slices}."
    if planned.late is not None:
        yield from _late_told(planned.late)


def repaired_told(done: Repaired) -> str:
    """What a repair has written."""
    written = [f"{count_text(n)} to {topic}" for topic, n in done.records.items() if n]
    corrections = f"it has written {', '.join(written)}" if written else "its sinks were right, and get no record"
    return f"Commit {done.commit.commit} repairs {done.commit.job}: {corrections}."


def _late_told(late: LateInterval) -> Iterator[str]:
    times = counted(late.turned_away, "time")
    latest = duration_text(late.latest_ms)
    yield f"In the runs of this interval, records came too late for a window {times}, by up to {latest}."
    for node, records in late.stay_out.items():
        yield f"{node} dropped {counted(records, 'late record')}, which stay out: only another file can let them in."
