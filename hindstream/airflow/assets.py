"""Topics of the warehouse as Airflow's assets: what a run publishes gives each sink an event.

Airflow learns what the sinks are when a task runs: a DAG file is read without its job. So events go through an alias,
which the publishing task has as an outlet. An event without a partition starts consumers that have plain assets as
their schedule; one with a partition those that Airflow calls partition-aware, and no others. So a sink has both where a
slice has a partition and somebody knows the asset.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from airflow.sdk import Asset, AssetAlias

from hindstream.airflow.intervals import interval_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.sdk import BaseOperator, Context

    from statelib.documents.manifests import Audit, Commit
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.topics.files import ArchiveFile

PARTITION_FORMAT = "%Y-%m-%dT%H:%M:%S"
"""Of a partition's key, the beginning of the slice: what Airflow's own timetables write and its mappers read."""

_log = logging.getLogger(__name__)


def topic_asset(topic: str, *, warehouse: str) -> Asset:
    """The asset of a topic in a warehouse: a source's, or a sink's.

    Args:
        topic: As the job calls it.
        warehouse: As in the settings: a path or a URL.
    """
    scheme, _, path = warehouse.rpartition("://")
    root = f"file://{Path(path).expanduser().resolve()}" if scheme in {"", "file"} else warehouse.rstrip("/")
    return Asset(f"{root}/topics/{topic}")


def source_assets(job: Job, settings: Settings) -> list[Asset]:
    """The assets of what a job reads."""
    return [topic_asset(topic, warehouse=settings.warehouse) for topic in job.topology.source_topics]


def tell_sources(operator: BaseOperator, job: Job, settings: Settings) -> None:
    """Makes inlets of what a job reads, when its task runs.

    That is too late for Airflow's graph of assets, which is made of the DAG file. But its OpenLineage provider tells of
    them as inputs when the task has ended.
    """
    sources = source_assets(job, settings)
    operator.inlets.extend(asset for asset in sources if asset not in operator.inlets)


def assets_of(schedule: object) -> list[Asset]:
    """The assets that a schedule of Airflow waits for."""
    asked = getattr(schedule, "asset_condition", schedule)
    if isinstance(asked, Asset):
        return [asked]
    parts = asked if isinstance(asked, list | tuple) else getattr(asked, "objects", ())
    return [asset for part in parts for asset in assets_of(part)]


def alias_as_outlet(operator: BaseOperator) -> AssetAlias:
    """The alias under which a task makes events of assets, which its outlets get."""
    dag = operator.get_dag()
    alias = AssetAlias(operator.task_id if dag is None else f"{dag.dag_id}.{operator.task_id}")
    operator.outlets.append(alias)
    return alias


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """What Airflow is told when a topic has got records.

    Attributes:
        asset: The topic's.
        extra: What goes with the event, as JSON: ``topic`` and ``records``; of a sink also ``job``, ``commit``,
            ``run_id``, ``time_range`` (timestamps of the first and the last record), ``slice`` (its ends in event time;
            None: where the history begins, all there is) and ``audit`` (how many of its checks
            passed, and how many warned).
    """

    asset: Asset
    extra: dict[str, Any]


def published_topics(job: Job, settings: Settings, run_id: str | None) -> list[TopicEvent]:
    """What a run has published, each sink whether or not it has got records; nothing of a run that has no commit.

    Args:
        job: The job.
        settings: Its settings.
        run_id: The run; None: the newest.
    """
    from hindstream.runs import find_plan, open_warehouse  # noqa: PLC0415 - parsing a DAG file must stay quick
    from statelib.commits import CommitLog, Runs  # noqa: PLC0415

    warehouse = open_warehouse(settings)
    plan = find_plan(warehouse, job.name, run_id)
    log = CommitLog(warehouse, job.name)
    if plan.commit > log.head_number() or (made := log.read(plan.commit)).run_id != plan.run_id:
        return []
    former = log.read(plan.commit - 1) if plan.commit > 1 else None
    audit = Runs(warehouse, job.name).audit(plan.run_id)
    topics = dict.fromkeys([*job.topology.sink_topics, *(sink.topic for sink in made.sinks)])
    return [
        TopicEvent(topic_asset(topic, warehouse=settings.warehouse), _extra(topic, made, former, audit))
        for topic in topics
    ]


def tell(context: Context, alias: AssetAlias, published: Iterable[TopicEvent]) -> None:
    """Has Airflow make the events when the task has succeeded.

    Args:
        context: That of the task.
        alias: An outlet of the task.
        published: What there is to tell.
    """
    events, outlets = context["outlet_events"], context["task"].outlets
    partition = partition_of(context)
    for topic in published:
        is_outlet = topic.asset in outlets
        event: Any = events[topic.asset]
        event.extra = topic.extra
        if partition is not None and hasattr(event, "add_partitions"):
            event.add_partitions(partition)
            outlets.extend([] if is_outlet else [topic.asset])  # Airflow passes over it, if no DAG knows the asset
        elif is_outlet:  # Airflow makes an event of it anyhow
            continue
        events[alias].add(topic.asset, extra=topic.extra)


def partition_of(context: Context) -> str | None:
    """The key of the slice's partition: where its data interval begins, in the time zone of the schedule.

    Returns:
        None: the slice is not a data interval.
    """
    start_ms, _ = interval_of(context)
    if start_ms is None:
        return None
    dag = context["dag"]
    zone = getattr(dag.timetable, "timezone", dag.timezone)  # a timetable may have one of its own
    return partition_key(
        datetime.fromtimestamp(start_ms / 1000, UTC), ZoneInfo(zone) if isinstance(zone, str) else zone
    )


def partition_key(start: datetime, zone: tzinfo) -> str:
    """The key of the partition that begins at a time, as Airflow's `CronPartitionTimetable` writes it: by the clock.

    Where clocks go back, they show an hour twice, and Airflow reads a key as the second time (`make_aware`), which is
    also where the slices of its cron expressions for days and longer begin. A slice that begins at the first has its
    offset in the key, ``2024-10-27T02:00:00+0200``: so no other slice has the same, but Airflow's temporal mappers
    refuse it.

    Args:
        start: Aware.
        zone: That of the schedule.
    """
    shown = start.astimezone(zone)
    if shown.replace(fold=1).utcoffset() == shown.utcoffset():
        return shown.strftime(PARTITION_FORMAT)
    key = shown.strftime(f"{PARTITION_FORMAT}%z")
    _log.warning(
        "clocks show this hour twice, so the partition is %s, which Airflow's temporal mappers refuse; "
        "give the DAG a start_date in UTC if its consumers need them",
        key,
    )
    return key


def _extra(topic: str, made: Commit, former: Commit | None, audit: Audit | None) -> dict[str, Any]:
    files = [sink.file.in_log for sink in made.sinks if sink.topic == topic]
    checks = [] if audit is None else [check.success for check in audit.checks if check.topic == topic]
    return {
        "job": made.job,
        "commit": made.commit,
        "run_id": made.run_id,
        "topic": topic,
        "records": sum(file.rows for file in files),
        "time_range": _time_range(files),
        "slice": [_iso(former.until_ms if former else None), _iso(made.until_ms)],
        "audit": {"passed": checks.count(True), "warnings": checks.count(False)},
    }


def _time_range(files: list[ArchiveFile]) -> list[str | None] | None:
    """Timestamps of the first and the last record by time; None: there is none that has one."""
    firsts = [file.min_timestamp_ms for file in files if file.min_timestamp_ms is not None]
    lasts = [file.max_timestamp_ms for file in files if file.max_timestamp_ms is not None]
    return [_iso(min(firsts)), _iso(max(lasts))] if firsts and lasts else None


def _iso(time_ms: int | None) -> str | None:
    from statelib.topics.files import iso_timestamp  # noqa: PLC0415 - parsing a DAG file must stay quick

    return None if time_ms is None else iso_timestamp(time_ms)
