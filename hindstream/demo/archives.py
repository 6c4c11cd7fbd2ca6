"""Puts the demo's topics into a warehouse, once."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from hindstream.demo import data
from statelib.commits import topic_path
from statelib.commits.archives import open_archive_if_present
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.storage import Storage

_APPLICATION = "hindstream-demo"


def prepare_topics(warehouse: Storage, *, announce: Callable[[str], object]) -> int:
    """Archives ``flights`` and ``weather``, unless they are there.

    A call that was interrupted is made good by the next one: each topic is one Delta commit.

    Args:
        warehouse: Root of all durable data.
        announce: Is told what is about to be done.

    Returns:
        How many topics were archived; 0: all were there.

    Raises:
        ConfigurationError: The data is not installed, or a topic of that name has another shape.
    """
    archived = 0
    for topic, records in data.RECORDS.items():
        if _is_there(warehouse, topic):
            continue
        announce(f"archiving the topic {topic}")
        table = records()
        schema = topic_schema(table.schema.field("key").type, table.schema.field("value").type)
        archive = TopicArchive.ensure(
            warehouse.uri(topic_path(topic)), schema, data.PARTITIONS, topic=topic, options=warehouse.options
        )
        attempt = f"demo-{uuid.uuid4().hex[:8]}"
        archived += append_records(archive, table, attempt=attempt, app_id=_APPLICATION, app_version=1)
    return archived


def _is_there(warehouse: Storage, topic: str) -> bool:
    archive = open_archive_if_present(warehouse, topic)
    return archive is not None and archive.has_committed(_APPLICATION, 1)
