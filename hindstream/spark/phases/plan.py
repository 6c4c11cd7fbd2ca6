"""First phase: fixes what the run will do. Makes good first what an interrupted publish has missed."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from hindstream.console.result_log import result_log
from hindstream.lineage.reported import published_late, reported
from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.expectations.plan_time import check_expectations
from hindstream.spark.phases.command import phase_main
from statelib.commits import CommitLog, NothingToDo, publish
from statelib.commits import plan as make_plan
from statelib.commits.forks import begins_empty, sample_of
from statelib.commits.sources.changed_archives import changed_by_others
from statelib.commits.standing import job_meant
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.task import describe_topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from statelib.commits.sources.checks import EndOffsets
    from statelib.documents.plans import Leeway, Plan
    from statelib.documents.topologies import TopologyDescription
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

_log = logging.getLogger(__name__)


@reported("plan")
def run(
    job: Job,
    settings: Settings,
    run_id: str | None = None,  # noqa: ARG001
    *,
    end_offsets: EndOffsets | None = None,
    leeway: Leeway | None = None,
) -> Plan | NothingToDo:
    """Plans the slice that ends at ``settings.until``, and with ``settings.end_of_input`` maybe the whole input.

    ``end_offsets``: it ends there instead. ``leeway``: what it lets in that the topology does not.

    A run that was killed between commit and publish has left a commit unseen; it is published first, because the next
    run may find nothing to do and end here.

    Returns:
        The plan, which names the run; or why there is none.

    Raises:
        HindstreamError: See `statelib.commits.run.plan` and `statelib.commits.publication.publish`.
    """
    warehouse = open_warehouse(settings)
    for made_good in publish(warehouse, job.name):
        _log.info("%s: published commit %d to %s, late", job.name, made_good.commit, made_good.topic)
        published_late(job, settings, made_good.commit)
    check_expectations(job, warehouse, settings.semantics)
    head = CommitLog(warehouse, job.name).head()
    planned = planner(job, settings, warehouse)(
        until_ms=settings.until_ms, end_offsets=end_offsets, end_of_input=settings.end_of_input, leeway=leeway
    )
    for note in changed_by_others(warehouse, head) if head else ():
        _log.warning("%s: %s", job.name, note)
    for record in planned.future_records:
        _log.warning("%s: %s. Next: %s", job.name, record, record.next_step)
    if isinstance(planned, NothingToDo):
        result_log.info("%s", planned)
    else:
        for change in planned.evolution.changes if planned.evolution else ():
            _log.warning("%s: the topology has changed: %s", job.name, change)
        for change in planned.unseen:
            _log.warning("%s: %s", job.name, change)
        if planned.begun_anew is not None:
            _log.warning("%s: %s", job.name, planned.begun_anew)
        _log.info("%s: run %s will replay %s", job.name, planned.run_id, counted(planned.records, "record"))
    return planned


def planner(job: Job, settings: Settings, warehouse: Storage) -> Callable[..., Plan | NothingToDo]:
    """`statelib.commits.run.plan` with all that the job and the settings say of its state; the slice is left to say.

    Raises:
        ConfigurationError: The job is to run as a fork that nobody has made.
    """
    is_made = settings.fork is None or CommitLog(warehouse, job.name).head_number() or begins_empty(warehouse, job.name)
    if not is_made:
        meant = job_meant(warehouse, job.name)
        step = f"{meant} If not, " if meant else ""
        step += f"make it: hindstream fork JOB {job.name}"
        raise ConfigurationError("there is no such fork", job=job.name, setting="fork", next_step=step)
    return partial(
        make_plan,
        job,
        warehouse,
        now_ms=now_ms(),
        semantics=settings.semantics,
        describe=partial(described, job, settings),
        reset_stores=settings.reset_stores,
        migrate_stores=settings.migrate_stores,
        fill_stores=settings.fill_stores,
        changelogs=settings.changelogs,
        recreated_sources=settings.recreated_sources,
        max_future=settings.max_future_rule,
        sample_keys=None if settings.fork is None else sample_of(warehouse, job.name),
    )


def described(job: Job, settings: Settings, archives: Mapping[str, TopicArchive]) -> TopologyDescription:
    """What the job's topology is made of, given the archives of its sources."""
    readers = {topic: archive.reader(0, 0, 0) for topic, archive in archives.items()}
    return describe_topology(job.topology, readers, settings.semantics)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/plan.py``: ``--job FILE.py:NAME [--until TIME] [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Plans the slice that ends at --until.")
