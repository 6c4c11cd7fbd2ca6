"""How a job reads sources whose values have changed since its state was made.

State holds values of the types that the sources had. While the topology stays the same the job goes on reading them
with these types: fields that are new since are not seen, numbers that are wider are read as before as long as they fit.
So one slice or a hundred give the same answer, wherever a change falls. A changed topology gets the present types if
the state goes together with them, else it reads as before, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import Schema as DeltaSchema

from statelib.errors.kinds import ConfigurationError
from statelib.topics.parquet.schema import topic_schema_of
from statelib.topics.parquet.schema_changes import changes, united

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import Evolution, TopologyDescription
    from statelib.topics.archive import TopicArchive


def settle_schemas(
    settle: Callable[..., Evolution | None],
    archives: Mapping[str, TopicArchive],
    before: Mapping[str, TopicArchive],
    describe: Callable[[Mapping[str, TopicArchive]], TopologyDescription] | None,
    *,
    is_new: bool,
) -> tuple[Evolution | None, Mapping[str, TopicArchive]]:
    """Settles a job's topology (`settle_topology`) together with the types that its sources are read with.

    Args:
        settle: `settle_topology`, which lacks ``describe`` and may lack ``write``.
        archives: Of the sources.
        before: The same, as `read_as_before` gives them.
        describe: Describes the topology, given the archives.
        is_new: Whether the head has another topology.

    Returns:
        What ``settle`` gives, and the archives as they are read.

    Raises:
        ConfigurationError: What ``settle`` raises.
    """

    def settled(reading: Mapping[str, TopicArchive], *, write: bool = True) -> Evolution | None:
        return settle(describe=None if describe is None else lambda: describe(reading), write=write)

    if is_new and any(archive is not archives[topic] for topic, archive in before.items()):
        try:
            settled(archives, write=False)
        except ConfigurationError as error:  # the state may have values of the former types
            try:
                settled(before, write=False)
            except ConfigurationError:
                raise error from None
        else:
            return settled(archives), archives
    return settled(before), before


def read_as_before(archives: Mapping[str, TopicArchive], head: Commit) -> dict[str, TopicArchive]:
    """The archives of a job's sources, each read with the types that it had for the head's run.

    Raises:
        ConfigurationError: A topic has no longer what the job reads.
    """
    before = {source.topic: source.delta_schema for source in head.sources}
    return {
        topic: _read_as(archive, before[topic], head) if topic in before else archive  # new: see `settle_topology`
        for topic, archive in archives.items()
    }


def unseen(archives: Mapping[str, TopicArchive]) -> tuple[str, ...]:
    """What has changed of topics that are read as before, in words, a sentence each."""
    return tuple(
        f"the values of topic {topic} have changed; this job reads them with their former types: {', '.join(found)}"
        for topic, archive in archives.items()
        if (found := list(changes(archive.schema.field("value").type, archive.table_schema.field("value").type)))
    )


def same_schema(one: str, other: str) -> bool:
    """Whether two Delta schemas are the same; the format of the table, which is noted in them, may differ."""
    return bool(_types(one).equals(_types(other)))


def _types(delta_schema: str) -> pa.Schema:
    return topic_schema_of(pa.schema(DeltaSchema.from_json(delta_schema).to_arrow()))


def _read_as(archive: TopicArchive, before: str, head: Commit) -> TopicArchive:
    if same_schema(before, archive.schema_json):
        return archive
    known, found = _types(before), archive.table_schema
    if _holds(found, known):
        return archive.reading_as(before)
    of_keys = list(changes(known.field("key").type, found.field("key").type, "key"))
    of_values = list(changes(known.field("value").type, found.field("value").type))
    raise ConfigurationError(
        f"the topic's schema is no longer that of commit {head.commit}: {', '.join(of_keys + of_values)}",
        job=head.job,
        topic=archive.topic,
        next_step="archive the topic with the former schema,"
        " or give the job a new name: it then replays from the beginning",
    )


def _holds(topic: pa.Schema, before: pa.Schema) -> bool:
    """Whether a topic's records can be read as they were: fields are there, numbers no narrower, keys the same."""
    if not topic.field("key").type.equals(before.field("key").type):
        return False
    try:
        return bool(united(topic.field("value").type, before.field("value").type).equals(topic.field("value").type))
    except ConfigurationError:
        return False
