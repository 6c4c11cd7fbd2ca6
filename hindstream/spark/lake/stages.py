"""Runs the two stages of a load on Spark: tasks of some files each, and a task for each partition.

The runs between the stages lie in the warehouse, where all workers find them, and are deleted in the end.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.spark.lake.leftovers import FilesOfLoad, delete_old
from hindstream.spark.session.session import spark_context
from hindstream.spark.tasks.told import tell
from hindstream.spark.tasks.works import Work, carry_user_code, run_works
from statelib.commits.layout import topic_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.ingest.load import Load, Loaded
    from statelib.ingest.sources.files import SourceFile
    from statelib.ingest.stages import MergePartition, SortedFiles, SortFiles
    from statelib.settings.settings import Settings

_FOLDER = "_loads"
_TASK_BYTES = 512 << 20
"""Of files that one task reads; one that is larger is a task's alone."""


def load_on_spark(load: Load, settings: Settings, rows: int | None = None) -> Loaded:
    """Does a whole load on Spark.

    Args:
        load: It.
        settings: See `Settings`.
        rows: How many rows the files have, about; None: nobody knows.

    Raises:
        HindstreamError: As `statelib.ingest.load.Load` and its stages.
    """
    assert load.plan is not None  # noqa: S101 - asked for where files are new
    carry_user_code()
    context = spark_context(settings)
    topic, run = load.topic.archive_name, f"load-{load.attempt}"
    between = FilesOfLoad(load.warehouse.within(f"{topic_path(topic)}/{_FOLDER}/{load.attempt}"))
    state_dir = str(settings.state_dir)
    try:
        with between.kept():
            sort = load.sort_files(between.storage, settings.memory_budget_bytes, in_memory=False)
            groups = _groups(load.plan.files)
            sorting = [
                Work(topic, run, f"files {n}", state_dir, _Sort(sort, between, tuple(files), f"{n:06d}"))
                for n, files in enumerate(groups)
            ]
            parts: list[SortedFiles] = [
                pickle.loads(made)  # noqa: S301 - from our own workers
                for made in run_works(context, sorting, name=f"read files of {topic}", records=rows)
            ]
            merge = load.merge_partition(parts)
            merging = [
                Work(topic, run, f"partition {p}", state_dir, _Merge(merge, p))
                for p in range(load.plan.shape.partitions)
            ]
            written = [
                pickle.loads(made)  # noqa: S301 - from our own workers
                for made in run_works(context, merging, name=f"merge {topic}")
            ]
            return load.commit(parts, [file for files in written for file in files])
    finally:
        delete_old(load.warehouse, topic, _FOLDER, load.now_ms)


def _groups(files: Sequence[SourceFile]) -> list[list[SourceFile]]:
    """Neighbouring files, so many that their sizes make a task."""
    groups: list[list[SourceFile]] = []
    size = 0
    for file in files:
        if not groups or size + file.size_bytes > _TASK_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.size_bytes
    return groups


@dataclass(frozen=True, slots=True)
class _Sort:
    """Runs in a worker: the first stage for some files."""

    sort: SortFiles
    between: FilesOfLoad
    files: tuple[SourceFile, ...]
    number: str

    def __call__(self, attempt: str) -> bytes:
        with self.between.written():
            return pickle.dumps(self.sort(self.files, f"{self.number}-{attempt}", lambda records, _: tell(records)))


@dataclass(frozen=True, slots=True)
class _Merge:
    """Runs in a worker: the second stage for a partition."""

    merge: MergePartition
    partition: int

    def __call__(self, attempt: str) -> bytes:
        return pickle.dumps(self.merge(self.partition, f"load.{attempt}"))
