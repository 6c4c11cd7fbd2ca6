"""How late the records of an interval were, and so which leeway lets all of them in (`statelib.topology.leeway`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.columns.times import LAST_TIME_MS
from statelib.commits.layout import CommitLog, Runs
from statelib.commits.versions.trials import runs_within
from statelib.documents.plans import Leeway
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.topology.leeway import may_have_leeway

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage
    from statelib.topology import Topology

_ANOTHER_FILE = "repair with a file that has a longer grace period, and without --late"


@dataclass(frozen=True, slots=True)
class LateInterval:
    """What the runs of an interval turned away.

    Attributes:
        leeway: With which no window turns anything away.
        turned_away: How often a window was closed for a record that came late.
        latest_ms: How late the latest record was.
        oldest_ms: No record was older for which a window was closed.
        stay_out: By node that has no leeway, how many records it dropped for being late. They stay out.
    """

    leeway: Leeway
    turned_away: int
    latest_ms: int
    oldest_ms: int
    stay_out: Mapping[str, int]


def late_interval(warehouse: Storage, job: str, topology: Topology, start_ms: int, end_ms: int) -> LateInterval:
    """What the runs that took up an interval say of late records.

    Args:
        warehouse: Root of all durable data.
        job: The job.
        topology: What it runs.
        start_ms: When the interval begins.
        end_ms: When it ends.

    Raises:
        ConfigurationError: Nothing was late that can be let in, or a run's figures are gone.
        CorruptedDataError: They are damaged.
    """
    kept_ms = may_have_leeway(topology)
    turned_away, latest_ms, oldest_ms = 0, 0, LAST_TIME_MS
    stay_out: Counter[str] = Counter()
    for before, run in runs_within(warehouse, job, start_ms, end_ms):
        staged = Runs(warehouse, run.job).staged(run.run_id)
        if staged is None:
            what = "the figures of a run of this interval are gone, so nobody knows how late its records were"
            raise ConfigurationError(what, job=run.job, run=run.run_id, next_step=_ANOTHER_FILE)
        for task in staged.tasks:
            for node, metrics in task.metrics.items():
                late = metrics.counters.get("late-record-drop", 0)
                if node in kept_ms and late:
                    turned_away += late
                    latest_ms = max(latest_ms, metrics.lateness.max_ms)
                    oldest_ms = min(oldest_ms, _clock_ms(before, task.task_id, node) - metrics.lateness.max_ms)
                elif node not in kept_ms:
                    stay_out[node] += metrics.accounts.get("late", 0) + metrics.accounts.get("refused", 0)
    left_out = {node: records for node, records in stay_out.items() if records}
    if not turned_away:
        what = "no record of this interval came too late for a window"
        if left_out:
            what += f"; only another file can let in what {', '.join(left_out)} dropped"
        step = "see in which runs records were late: hindstream status; or give a file with a longer grace period"
        raise ConfigurationError(what, job=job, setting="--late", next_step=step)
    leeway = Leeway(nodes=tuple(sorted(kept_ms)), kept_ms=latest_ms + max(kept_ms.values()), accepted_ms=latest_ms)
    return LateInterval(leeway, turned_away, latest_ms, oldest_ms, left_out)


def _clock_ms(before: Commit | None, task_id: str, node: str) -> int:
    """The time from which a task's operator went on in a run: it met each record of the run at this time or later."""
    task = None if before is None else before.tasks.get(task_id)
    clock = {} if task is None else task.position.clocks.get(node, {})
    return clock.get("stream_time", LAST_TIME_MS)  # it began then, so no commit before can have let go of anything


def check_let_in(warehouse: Storage, fork: str) -> None:
    """Makes sure that a fork has let in all that its leeway was meant for.

    It may not have if the job has had a longer grace period in some of the runs; and windows behind other windows may
    get what the upper ones let in later than anything came before, where one task's time is far behind another's.

    Raises:
        ConfigurationError: A window was closed in a run that let late records in.
    """
    log, runs = CommitLog(warehouse, fork), Runs(warehouse, fork)
    turned_away: Counter[str] = Counter()
    for number in range(1, log.head_number() + 1):
        commit = log.read(number)
        plan, staged = runs.plan(commit.run_id), runs.staged(commit.run_id)
        if plan is None or staged is None or plan.leeway is None or not plan.leeway.accepted_ms:
            continue
        for task in staged.tasks:
            for node in plan.leeway.nodes:
                if node in task.metrics:
                    turned_away[node] += task.metrics[node].counters.get("late-record-drop", 0)
    closed = [f"of {node} {counted(times, 'time')}" for node, times in turned_away.items() if times]
    if closed:
        what = f"windows were still closed for records that came late: {', '.join(closed)}"
        raise ConfigurationError(what, job=fork, setting="--late", next_step=_ANOTHER_FILE)
