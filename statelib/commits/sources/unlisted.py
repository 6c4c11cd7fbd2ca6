"""Archives that a pattern of the topology matches, and that the topology does not list.

In Kafka the topic would be read from the moment it is there. Here that moment would be chance, so nothing is replayed
until it is listed: no topic is left out in silence, and none is read half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import late_topic, quarantine_topic
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection

    from statelib.commits.job_definition import JobDefinition
    from statelib.storage import Storage


def check_all_listed(job: JobDefinition, warehouse: Storage) -> None:
    """Looks whether the warehouse has a topic that a pattern matches and that is not listed with it.

    Topics that Hindstream itself makes for jobs do not count: late and quarantined records, changelogs, sinks of forks.

    Raises:
        ConfigurationError: It has.
    """
    if not job.topology.has_patterns:
        return
    topics, jobs = _names(warehouse, "topics"), _names(warehouse, "jobs")
    matched = job.topology.matched_by_pattern(topic for topic in topics if not _is_of_a_job(topic, topics, jobs))
    for topic, source in matched.items():
        if open_archive_if_present(warehouse, topic) is not None:
            raise ConfigurationError(
                "a topic of the warehouse matches the pattern of a source, which does not list it",
                job=job.name,
                topic=topic,
                node=source,
                next_step="add it to the source's topics=[...], or write a pattern that does not match it",
            )


def _names(warehouse: Storage, folder: str) -> list[str]:
    return [path.rpartition("/")[2] for path in warehouse.folders(folder)]


def _is_of_a_job(topic: str, topics: Collection[str], jobs: Collection[str]) -> bool:
    sink, _, fork = topic.rpartition(".")
    if sink in topics and fork in jobs:
        return True
    return any(
        topic in {quarantine_topic(job), late_topic(job)}
        or (topic.startswith(f"{job}-") and topic.endswith("-changelog"))
        for job in jobs
    )
