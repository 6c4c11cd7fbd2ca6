"""What a job's sources are, and whether they are still what the job's state rests on.

A plan writes down of each archive its table's id, its number of partitions and its schema. An archive that was deleted
and made anew under the same name has another id: its offsets count other records, so the job does not go on in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive
from statelib.commits.layout import topic_path
from statelib.commits.sources.rollbacks import check_rollbacks
from statelib.commits.sources.schemas import read_as_before
from statelib.documents.plans import SourceTopic
from statelib.documents.upkeep import ROLLBACKS
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.topics.delta.log import ArchiveNotFoundError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

EndOffsets = dict[str, dict[int, int]]
"""By source topic and partition, the offset before which a slice ends."""


def source_topics(archives: Mapping[str, TopicArchive]) -> tuple[SourceTopic, ...]:
    """What the archives of a job's sources are, by topic."""
    return tuple(
        SourceTopic(
            topic=topic,
            delta_version=archive.version,
            table_id=archive.table_id,
            partitions=archive.partitions,
            rollback=archive.last_transaction(ROLLBACKS) or 0,
            delta_schema=json.dumps(json.loads(archive.schema_json), sort_keys=True),  # else its maps come in any order
        )
        for topic, archive in archives.items()
    )


def check_sources(job: str, head: Commit, sources: Sequence[SourceTopic]) -> None:
    """The state rests on each source's partitions: they may not change under it.

    Args:
        job: The job's name.
        head: Its newest commit.
        sources: The sources as they are now.

    Raises:
        ConfigurationError: A source has other partitions.
    """
    for known, source in _known(head, sources):
        if source.partitions != known.partitions:
            raise ConfigurationError(
                f"the topic has {counted(source.partitions, 'partition')}, and had {known.partitions} at commit"
                f" {head.commit}: its keys would no longer find their state",
                job=job,
                topic=source.topic,
                next_step=f"restore the archive with {counted(known.partitions, 'partition')},"
                " or give the job a new name: it then replays from the beginning",
            )


def check_tables(job: str, head: Commit, sources: Sequence[SourceTopic], recreated: Collection[str] = ()) -> None:
    """The state rests on each source's records: its archive may not be another one.

    Args:
        job: The job's name.
        head: Its newest commit.
        sources: The sources as they are now.
        recreated: Sources that may be other tables, with the same records at the same offsets.

    Raises:
        ConfigurationError: A source is another table.
    """
    for known, source in _known(head, sources):
        if known.table_id not in {None, source.table_id} and source.topic not in recreated:
            raise ConfigurationError(
                f"the topic's archive has been deleted and created again since commit {head.commit}, so the commit's"
                " offsets do not apply to it",
                job=job,
                topic=source.topic,
                next_step="restore the former archive from a copy; if the new one has the same records at the same"
                f" offsets, say so: --set recreated_sources={source.topic}; or give the job a new name: it then"
                " replays from the beginning (docs/runbooks/damaged-data.md)",
            )


def open_sources(warehouse: Storage, topics: Iterable[str], head: Commit | None) -> dict[str, TopicArchive]:
    """The archives of a job's sources, by topic.

    Raises:
        ConfigurationError: One has no archive.
    """
    return {topic: _open_source(warehouse, topic, head) for topic in topics}


def _open_source(warehouse: Storage, topic: str, head: Commit | None) -> TopicArchive:
    try:
        return open_archive(warehouse, topic)
    except ArchiveNotFoundError as error:
        if head is None or all(source.topic != topic for source in head.sources):
            raise
        raise ConfigurationError(
            f"there is no topic archive any more, or its log is gone, but commit {head.commit} depends on it",
            job=head.job,
            topic=topic,
            file=warehouse.uri(topic_path(topic)),
            next_step="restore its folder from a copy of the warehouse (docs/runbooks/damaged-data.md)",
        ) from error


def goes_on(
    warehouse: Storage, head: Commit, archives: Mapping[str, TopicArchive], recreated: Collection[str] = ()
) -> dict[str, TopicArchive]:
    """The archives of a job's sources as it reads them, after checking that they are still what its state rests on.

    Args:
        warehouse: Root of all durable data.
        head: The job's newest commit.
        archives: The archives, by topic.
        recreated: Sources that may be other tables, with the same records at the same offsets.

    Raises:
        ConfigurationError: A source is another table, has other types or partitions, or was rolled back.
    """
    sources = source_topics(archives)
    check_sources(head.job, head, sources)
    before = read_as_before(archives, head)
    check_tables(head.job, head, sources, recreated)
    check_rollbacks(warehouse, head, sources)
    return before


def _known(head: Commit, sources: Sequence[SourceTopic]) -> Iterator[tuple[SourceTopic, SourceTopic]]:
    """Each source as it was for the head, and as it is; without those that only another topology has."""
    before = {source.topic: source for source in head.sources}
    return ((before[source.topic], source) for source in sources if source.topic in before)
