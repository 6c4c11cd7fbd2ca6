"""Loads the new files of a lake into a topic archive, in this process or on Spark, and says what came of it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from hindstream.console.progress import Progress as Shown
from hindstream.lineage.reported import copy_reported
from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.lake.query_results import QueryResults
from statelib.checkpoint.scratch import ScratchFolder
from statelib.ingest.formats.estimate import estimated_rows
from statelib.ingest.load import Load, load_here
from statelib.ingest.stages import no_progress
from statelib.storage import Storage

if TYPE_CHECKING:
    from statelib.ingest.load import Loaded
    from statelib.ingest.plan import LoadPlan
    from statelib.ingest.stages import Progress
    from statelib.job.lake_topic import LakeTopic
    from statelib.settings.settings import Settings

_FILES_LOOKED_AT = 100
"""Into so many files a look does not take long."""

_HERE_BYTES = 1 << 30
"""Files of so many bytes are loaded in this process: Spark takes longer to start than it would save."""


def ingest(topic: LakeTopic, settings: Settings, *, progress: Progress = no_progress) -> Loaded:
    """Adds the records of new files to a topic archive, exactly once; it is created if it does not exist.

    A load that was stopped, wherever, is begun anew by the same call; nothing is missing then, and nothing is there
    twice.

    Args:
        topic: What is loaded.
        settings: See `Settings`: where the warehouse is, ``ingest_engine``, ``on_bad_record``, ``source_options``.
        progress: Is told the numbers of records and of bytes of files that have been read since it was told last.

    Raises:
        ConfigurationError: The files do not go together with each other, with the archive, or with what is asked for.
        InputError: A file has changed since it was loaded, or cannot be read; or a row cannot become a record.
        FencedError: Another load of the topic was quicker; what that has done stands.
        RetryableError: The lake, the warehouse or Spark did not answer.
    """
    with copy_reported(topic, settings) as copying:
        loaded = _ingested(topic, settings, progress)
        copying.is_new, copying.records = loaded.number is not None, loaded.records
        return loaded


def _ingested(topic: LakeTopic, settings: Settings, progress: Progress) -> Loaded:
    warehouse, attempt = open_warehouse(settings), uuid.uuid4().hex[:15]
    with QueryResults(topic, warehouse, attempt, settings) as results:
        load = Load(
            topic,
            warehouse,
            settings.source_store_options,
            topic.on_bad_record or settings.on_bad_record,
            attempt=attempt,
            now_ms=now_ms(),
            run_query=results,
        )
        return load.nothing if load.plan is None else _loaded(load, load.plan, settings, progress)


def _loaded(load: Load, plan: LoadPlan, settings: Settings, progress: Progress) -> Loaded:
    on_spark = settings.ingest_engine == "spark"
    if settings.ingest_engine == "auto":
        on_spark = len(plan.files) > 1 and plan.size_bytes > _HERE_BYTES
    if on_spark:
        from hindstream.spark.lake.stages import load_on_spark  # noqa: PLC0415 - only large loads need Spark

        return load_on_spark(load, settings, _rows_about(plan))
    scratch = ScratchFolder(settings.local_state_dir / "loads")
    try:
        with Shown(f"loading {load.topic.archive_name}", _rows_about(plan)) as shown:

            def tell(records: int, size_bytes: int) -> None:
                shown.advance(records)
                progress(records, size_bytes)

            return load_here(load, Storage(str(scratch.path)), settings.memory_budget_bytes, tell)
    finally:
        scratch.close()


def _rows_about(plan: LoadPlan) -> int | None:
    """How many rows there are, for the time that is left; None: nobody knows."""
    if len(plan.files) > _FILES_LOOKED_AT:
        return None
    return sum(estimated_rows(file, plan.reader.files) for file in plan.files)
