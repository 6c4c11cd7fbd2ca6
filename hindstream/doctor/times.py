"""The times of a job's sources: what the statistics of their archives say of them, before any run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.doctor.finding import Finding
from hindstream.runs import now_ms, open_warehouse
from statelib.columns.times import instant_text, unit_hint
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive_if_present
from statelib.topics.time_leaps import leaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.topics.archive import TopicArchive


def check_times(job: Job | str, settings: Settings) -> Iterator[Finding]:
    """Whether records are stamped later than their archive got them, or in another unit than milliseconds."""
    warehouse = open_warehouse(settings)
    for topic in _sources(job, settings):
        archive = open_archive_if_present(warehouse, topic)
        if archive is not None and archive.rows:
            yield from _check_topic(archive, settings)


def _sources(job: Job | str, settings: Settings) -> Sequence[str]:
    """The topics that a job reads; of a job that is only named, those of its newest commit."""
    if not isinstance(job, str):
        return job.topology.source_topics
    head = CommitLog(open_warehouse(settings), job).head()
    return [source.topic for source in head.sources] if head is not None else []


def _check_topic(archive: TopicArchive, settings: Settings) -> Iterator[Finding]:
    about, is_good = f"topic {archive.topic}", True
    newest_ms = archive.max_timestamp_ms()
    if newest_ms is not None and (hint := unit_hint(newest_ms)) and newest_ms > 0:
        is_good = False
        step = "archive it again with times in milliseconds"
        yield Finding(about, "look", f"its newest record is stamped {instant_text(newest_ms)}{hint}", step)
    for partition in range(archive.partitions):
        record = next(leaps(archive, partition, unknown_ms=now_ms()), None)
        if record is None:
            continue
        is_good = False
        place = f"partition {partition}, offset {record.offset} is stamped {instant_text(record.timestamp_ms)}"
        what = f"{place}{unit_hint(record.timestamp_ms)}, later than the archive got it"
        if settings.max_future is None:
            step = "set max_future, or all that comes after it is late (docs/runbooks/records-from-the-future.md)"
            yield Finding(about, "look", what, step)
        else:
            yield Finding(about, "ok", f"{what}; max_future is set, and on_future_record: {settings.on_future_record}")
    if is_good:
        yield Finding(about, "ok", "no record is stamped a day or more later than the archive got it")
