"""The job over records of a sample, by this engine: as one slice, each topic in one partition, in a scratch folder."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.errors.kinds import HindstreamError
from statelib.job.job import Job
from statelib.task import TaskSettings
from statelib.testing.scratch import ScratchJob
from statelib.topology import Sink, Topology

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from hindstream.porting.sample import Sample
    from statelib.settings.semantics import Semantics
    from statelib.settings.settings import Settings
    from statelib.topology import Node

_COLUMNS = ("key", "value", "timestamp", "headers")


@dataclass(frozen=True, slots=True)
class Written:
    """What the job makes of records.

    Attributes:
        sinks: By sink topic, its records in order: ``key``, ``value``, ``timestamp``, ``headers``. Of a sink that
            has none, nobody knows the types: it is left out.
        dropped: How many records its operators have dropped and counted, as Kafka counts them.
    """

    sinks: dict[str, pa.Table]
    dropped: int


class Engine:
    """See the module's docstring.

    Args:
        job: The job.
        sample: The records.
        settings: How bad records and records from the future are handled.
        folder: An empty one.
    """

    def __init__(self, job: Job, sample: Sample, settings: Settings, folder: Path) -> None:
        self._job = Job(job.name, _in_one_partition(job.topology))
        self._sample = sample
        self._settings = settings
        self._folder = folder
        self._runs = itertools.count()

    def run(self, places: NDArray[np.int64], semantics: Semantics) -> Written:
        """What it makes of the records at some places, which ascend.

        Raises:
            HindstreamError: As in a real run. It names the record where it is in its own topic.
        """
        folder = self._folder / str(next(self._runs))
        settings = TaskSettings(
            str(folder / "warehouse"),
            str(folder / "state"),
            semantics=semantics,
            on_bad_record=self._settings.on_bad_record,
            on_processing_error=self._settings.on_processing_error,
            on_future_record=self._settings.on_future_record,
        )
        scratch = ScratchJob(self._job, settings)
        records = self._sample.records(places)
        try:
            for topic, schema in zip(self._sample.topics, self._sample.schemas, strict=True):
                scratch.declare(topic, schema, 1)
            staged = scratch.replay({topic: table.select(_COLUMNS) for topic, table in records.items()})
            of_tasks = [] if staged is None else staged.tasks
            dropped = sum(sum(node.dropped.values()) for task in of_tasks for node in task.metrics.values())
            return Written(self._read(scratch), dropped)
        except HindstreamError as error:
            raise _in_its_topic(error, records) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _read(self, scratch: ScratchJob) -> dict[str, pa.Table]:
        found = {}
        for topic in self._job.topology.sink_topics:
            archive = open_archive_if_present(scratch.warehouse, topic)
            if archive is not None:
                found[topic] = archive.reader(0).read_all()
        return found


def _in_one_partition(topology: Topology) -> Topology:
    """As Kafka's test driver runs it: topics have one partition, however many somebody has declared."""

    def alone(node: Node) -> Node:
        return replace(node, partitions=node.partitions and 1, partitioner=None) if isinstance(node, Sink) else node

    made = Topology([alone(node) for node in topology.nodes])
    made.declared = tuple(map(alone, topology.declared))
    return made


def _in_its_topic(error: HindstreamError, records: dict[str, pa.Table]) -> HindstreamError:
    """The same error, with the record's own partition and offset."""
    table, offset = records.get(str(error.place.get("topic"))), error.place.get("offset")
    if table is None or not isinstance(offset, int) or not 0 <= offset < table.num_rows:
        return error
    own = {name: table[name][offset].as_py() for name in ("partition", "offset")}
    return type(error)(error.what, next_step=error.next_step, **{**error.place, **own})
