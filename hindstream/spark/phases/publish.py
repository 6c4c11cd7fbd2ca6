"""Fifth phase: shows the readers of the sinks what has been committed."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hindstream.lineage.reported import reported
from hindstream.runs import open_warehouse
from hindstream.spark.phases.command import phase_main
from statelib.commits import publish as publish_commits
from statelib.commits.versions.publishers import publisher_of
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.commits import Published
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


@reported("publish")
def run(job: Job, settings: Settings, run_id: str | None = None) -> tuple[Published, ...]:  # noqa: ARG001
    """Publishes every commit that the sinks' archives lack, and what topics of Kafka and tables of Iceberg lack.

    A repeat changes nothing.

    Raises:
        HindstreamError: See `statelib.commits.publication.publish`, `hindstream.kafka.publish.publish_to_kafka` and
            `hindstream.iceberg.publish.publish_to_iceberg`.
    """
    warehouse = open_warehouse(settings)
    added = publish_commits(warehouse, job.name)
    for part in added:
        what, where = ("added", "to") if part.rows >= 0 else ("took", "out of")
        _log.info(
            "%s: commit %d %s %s %s %s",
            job.name,
            part.commit,
            what,
            counted(abs(part.rows), "record"),
            where,
            part.topic,
        )
    if _publishes_to_kafka(job, warehouse):
        from hindstream.kafka.publish import publish_to_kafka  # noqa: PLC0415  (an extra, which not every job needs)

        for sent in publish_to_kafka(job, warehouse, settings):
            if sent.left_to is None:
                _log.info("%s: %s sent to Kafka's %s", job.name, counted(sent.records, "record"), sent.topic)
            if sent.corrections:
                of = counted(sent.corrections, "of them corrects", "of them correct")
                _log.info("%s: %s what another job has published to %s", job.name, of, sent.topic)
    if job.iceberg_sinks:
        _publish_to_iceberg(job, warehouse)
    return added


def _publish_to_iceberg(job: Job, warehouse: Storage) -> None:
    if find_spec("pyiceberg") is None:
        what, step = "pyiceberg is not installed, which publishes to Iceberg tables", "pip install 'hindstream[lake]'"
        raise ConfigurationError(what, job=job.name, next_step=step)
    from hindstream.iceberg.publish import publish_to_iceberg  # noqa: PLC0415  (an extra, which not every job needs)

    for done in publish_to_iceberg(job, warehouse):
        if done.left_to is not None:
            _log.info("%s: the Iceberg table %s is left to %s", job.name, done.table, done.left_to)
            continue
        _log.info("%s: %s added to the Iceberg table %s", job.name, counted(done.added, "row"), done.table)
        if done.removed:
            _log.info("%s: %s taken out of it", job.name, counted(done.removed, "row"))


def _publishes_to_kafka(job: Job, warehouse: Storage) -> bool:
    """Whether any topic is this job's; says whose the others are."""
    is_any = False
    for topic in job.kafka_sinks:
        publisher = publisher_of(warehouse, job.name, topic.archive_name)
        if publisher.job == job.name:
            is_any = True
        else:
            what = "%s: Kafka's %s is left to %s, which the readers of %s read"
            _log.info(what, job.name, topic.name, publisher.job, publisher.readers)
    return is_any


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/publish.py``: ``--job FILE.py:NAME [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Publishes what has been committed.")
