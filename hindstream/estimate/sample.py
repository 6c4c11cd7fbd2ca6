"""Replays the beginning of a job's input in a folder that is deleted afterwards, to see what comes of its records.

All of it is real: archives, operators, stores, checkpoints, commits. It runs in this process, and its clock is CPU
time, so that what else the machine does hardly matters. There is no audit.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.estimate.evidence import evidence_of
from hindstream.estimate.usage import TaskMemory
from hindstream.report.documents import load_runs
from hindstream.runs import now_ms
from hindstream.spark.phases.plan import planner
from hindstream.spark.phases.task_work import stages_of
from statelib.commits import NothingToDo, commit, record_audit, stage, topic_path
from statelib.commits.archives import open_archive
from statelib.documents.manifests import Audit
from statelib.storage import Storage
from statelib.task import NodeSeconds, replay_here
from statelib.topics.archive import TopicArchive

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from hindstream.estimate.evidence import Evidence
    from hindstream.estimate.history import History
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.topics.files import ArchiveFile
    from statelib.topics.version import TopicVersion

SAMPLE_RECORDS = 200_000
"""Of all sources together."""

LEAST_OF_A_PARTITION = 2_000
"""So that a small table is there whole, and what meets it finds it."""

SLICES = 2
"""So that it shows how state grows, and what it takes to go on with it."""


def sampled(
    job: Job, settings: Settings, warehouse: Storage, whole: History, records: int, slices: int = SLICES
) -> Evidence | None:
    """What the first records tell; None: there are none.

    Args:
        job: The job.
        settings: Its settings.
        warehouse: With its sources.
        whole: All that the sources hold.
        records: How many to replay, over all partitions alike; of small partitions more.
        slices: In how many slices.

    Raises:
        HindstreamError: What the run of these records would raise.
    """
    share = min(1.0, records / whole.records) if whole.records else 0.0
    taken = {
        (part.topic, part.partition): round(min(part.records, max(part.records * share, LEAST_OF_A_PARTITION)))
        for part in whole.parts
    }
    if not any(taken.values()):
        return None
    with tempfile.TemporaryDirectory(prefix="hindstream-estimate-") as folder:
        alone = replace(job, expectations={}, source_samples={}, figures=None, kafka_sinks=(), iceberg_sinks=())
        # Once more than is looked at: the first time, code is loaded.
        for attempt in ("first", "again"):
            root = Path(folder) / attempt
            places = {"warehouse": str(root / "warehouse"), "state_dir": root / "state", "storage_options": {}}
            given = settings.model_copy(update={**places, "until": None, "end_of_input": "hold", "fork": None})
            scratch, spent, memory = Storage(given.warehouse), NodeSeconds(time.process_time), TaskMemory()
            for number in range(1, slices + 1):
                for topic in job.topology.source_topics:
                    _copy(open_archive(warehouse, topic), scratch, taken, (number, slices))
                with memory.watching():
                    _replay(alone, given, scratch, spent)
        runs = [run for run in load_runs(scratch, job.name) if run.staged and run.plan.records]
        if not runs:
            return None
        found = evidence_of(runs, "sample", begin_ms=whole.begin_ms)
        return replace(found, node_seconds=spent.seconds, task_bytes=memory.peak_bytes)


def _copy(archive: TopicVersion, scratch: Storage, taken: dict[tuple[str, int], int], slice_: tuple[int, int]) -> None:
    """Adds what a slice has of a topic, of each partition alike, with its offsets; ``slice_``: which of how many."""
    number, slices = slice_
    copy = TopicArchive.ensure(
        scratch.uri(topic_path(archive.topic)), archive.schema, archive.partitions, topic=archive.topic
    )
    files: list[ArchiveFile] = []
    for partition in range(archive.partitions):
        of_it = taken[archive.topic, partition]
        begin, end = (of_it * n // slices for n in (number - 1, number))
        if begin == end:
            continue
        writer = copy.writer(partition, attempt=f"sample-{number}")
        for batch in _rows(archive, partition, begin, end):
            writer.write(batch)
        files += writer.close()
    copy.commit(files, app_id="sample", app_version=number)


def _rows(archive: TopicVersion, partition: int, begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """The records of a partition from number ``begin`` to before ``end``."""
    seen = 0
    for batch in archive.reader(partition):
        first, last = max(begin - seen, 0), min(end - seen, len(batch))
        if first < last:
            yield batch.slice(first, last - first)
        seen += len(batch)
        if seen >= end:
            return


def _replay(job: Job, settings: Settings, scratch: Storage, spent: NodeSeconds) -> None:
    planned = planner(job, settings, scratch)()
    if isinstance(planned, NothingToDo):
        return
    work = stages_of(job, planned, scratch, settings)
    stage(scratch, planned, replay_here(work, planned, attempt="sample", clock=time.process_time, spent=spent))
    record_audit(scratch, planned, Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0))
    commit(scratch, planned, now_ms=now_ms())
