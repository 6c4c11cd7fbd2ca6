"""Copies topics into archives, wherever they come from: a Kafka cluster, or files of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.spark.lake.ingest import ingest
from statelib.job.lake_topic import LakeTopic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hindstream.spark.kafka.archive import Copied
    from statelib.ingest.load import Loaded
    from statelib.job.topics import Topic
    from statelib.settings.settings import Settings


def archive(topics: Sequence[Topic], settings: Settings) -> Iterator[Copied | Loaded]:
    """Copies what is new of each topic, one after the other.

    Raises:
        HindstreamError: As `hindstream.kafka.archive_topics` and `hindstream.spark.ingest`.
    """
    for topic in topics:
        if isinstance(topic, LakeTopic):
            yield ingest(topic, settings)
        else:
            from hindstream.spark.kafka.archive import archive_topics  # noqa: PLC0415 - an extra

            yield from archive_topics([topic], settings)
