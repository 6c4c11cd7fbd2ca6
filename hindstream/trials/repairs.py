"""A repair from its plan to its commit: which file replays what, the keys that may change, and what is published."""

from __future__ import annotations

import tempfile
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindstream.console.keys import keys_of
from hindstream.lineage.reported import change_told
from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.phases import publish
from statelib.columns.times import LAST_TIME_MS
from statelib.commits.standing import standing_commit
from statelib.commits.versions.trials import plan_interval, plan_trial
from statelib.comparison.matches import Resources
from statelib.errors.kinds import ConfigurationError
from statelib.repair.bound import check_bound
from statelib.repair.lateness import late_interval
from statelib.repair.repair import repair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from statelib.commits.versions.trials import Trial
    from statelib.job.job import Job
    from statelib.repair.lateness import LateInterval
    from statelib.repair.repair import Repaired
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class PlannedRepair:
    """What a repair replays.

    Attributes:
        trial: The fork, and what it replays with which file.
        late: What came too late in the interval, and is let in; None: no late records are.
    """

    trial: Trial
    late: LateInterval | None


def planned_repair(
    warehouse: Storage,
    corrected: Job,
    then: Job | None,
    fork: str,
    *,
    start_ms: int,
    end_ms: int | None,
    late: bool = False,
) -> PlannedRepair:
    """Plans a repair. The warehouse is only read.

    Args:
        warehouse: Root of all durable data.
        corrected: The corrected job; with ``late`` its own file.
        then: The job as it is, which replays what came before and after the interval; None: that is ``corrected``.
        fork: What the fork is to be called.
        start_ms: Since when the job is wrong.
        end_ms: Until when; None: until now.
        late: Whether the records of the interval are let in that came too late for their windows.

    Raises:
        ConfigurationError: What goes on after the interval is not what the job runs; there are two files, and late
            records are to be let in; see also `statelib.commits.versions.trials.plan_interval` and
            `statelib.repair.lateness.late_interval`.
    """
    let_in = _late(warehouse, corrected, then, start_ms, end_ms) if late else None
    own = then or corrected
    return PlannedRepair(_trial(warehouse, corrected, own, fork, start_ms, end_ms, let_in), let_in)


def check_keys(warehouse: Storage, job: str, fork: str, keys: Sequence[str]) -> None:
    """Makes sure that a repair would change the keys alone that may change.

    Args:
        warehouse: Root of all durable data.
        job: The job.
        fork: The fork that is to repair it, which has replayed everything.
        keys: These keys, as text, in each of their windows; none: all.

    Raises:
        ConfigurationError: Others would change, too.
    """
    if keys:
        with _scratch() as resources:
            check_bound(warehouse, job, fork, partial(_keys_of, keys), resources)


def publish_repair(
    job: Job, fork: str, settings: Settings, *, end_ms: int | None = None, supersede: bool = False
) -> Repaired:
    """Makes the fork's answers the job's, in topics of Kafka and tables of Iceberg too. A repeat changes nothing.

    Raises:
        HindstreamError: See `statelib.repair.repair.repair` and `hindstream.spark.phases.publish.run`.
    """
    warehouse, began_ms = open_warehouse(settings), now_ms()
    with _scratch() as resources:
        done = repair(
            warehouse,
            job.name,
            fork,
            resources,
            attempt=uuid.uuid4().hex[:16],
            now_ms=now_ms(),
            supersede=supersede,
            end_ms=end_ms,
        )
    change_told(done.commit, settings, began_ms)
    publish.run(job, settings, done.commit.run_id)
    return done


@contextmanager
def _scratch() -> Iterator[Resources]:
    with tempfile.TemporaryDirectory(prefix="hindstream-repair-") as folder:
        yield Resources(Path(folder))


def _keys_of(given: Sequence[str], sink: str, type_: pa.DataType) -> list[Any]:  # noqa: ARG001
    """What the keys that are given are in a sink; what can be none of its keys is left out."""
    found: list[Any] = []
    for text in given:
        with suppress(ConfigurationError):
            found += keys_of(text, type_)
    return found


def _late(warehouse: Storage, job: Job, then: Job | None, start_ms: int, end_ms: int | None) -> LateInterval:
    """What came too late in the interval."""
    if then is not None:
        what, step = "late records are let in by the job's own file", "leave --then out; repair twice to correct both"
        raise ConfigurationError(what, setting="--late, --then", next_step=step)
    return late_interval(warehouse, job.name, job.topology, start_ms, LAST_TIME_MS if end_ms is None else end_ms)


def _trial(
    warehouse: Storage,
    corrected: Job,
    then: Job,
    fork: str,
    start_ms: int,
    end_ms: int | None,
    late: LateInterval | None,
) -> Trial:
    """What is replayed."""
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
