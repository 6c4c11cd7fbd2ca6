"""Runs queries that are sources of topics, for a load or for a look at what it would come to."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from hindstream.runs import now_ms
from hindstream.spark.lake.leftovers import delete_all, delete_old
from statelib.commits.layout import topic_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.ingest.sources.files import SourceFile
    from statelib.ingest.sources.queries import RunQuery
    from statelib.job.lake_topic import LakeTopic
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_FOLDER = "_queries"


@contextmanager
def query_samples(settings: Settings) -> Iterator[RunQuery]:
    """Gives what takes a sample of queries' results, which are gone afterwards."""
    with TemporaryDirectory(prefix="hindstream-") as folder:

        def sample(query: str) -> list[SourceFile]:
            from hindstream.spark.lake.queries import query_sample  # noqa: PLC0415 - only queries need Spark

            return query_sample(query, settings, Path(folder))

        yield sample


class QueryResults:
    """Runs the queries of one attempt at a load, and keeps the results until it has ended.

    Args:
        topic: What is loaded.
        warehouse: The warehouse.
        attempt: Unique to this attempt.
        settings: For Spark.
    """

    def __init__(self, topic: LakeTopic, warehouse: Storage, attempt: str, settings: Settings) -> None:
        self._topic = topic.archive_name
        self._warehouse = warehouse
        self._folder = warehouse.within(f"{topic_path(self._topic)}/{_FOLDER}/{attempt}")
        self._settings = settings
        self._count = 0

    def __call__(self, query: str) -> list[SourceFile]:
        """The result of a query, as `hindstream.spark.lake.queries.query_result` writes it."""
        from hindstream.spark.lake.queries import query_result  # noqa: PLC0415 - only queries need Spark

        self._count += 1
        return query_result(query, self._settings, self._folder.within(f"{self._count:03d}"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._count:
            delete_all(self._folder)
            delete_old(self._warehouse, self._topic, _FOLDER, now_ms())
