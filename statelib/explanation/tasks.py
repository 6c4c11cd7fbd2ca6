"""The tasks that lead to a sink, and what they send to one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.documents.places import place_of
from statelib.explanation.alone import Cause
from statelib.explanation.replayed import ReplayedTask, with_repartitions
from statelib.explanation.rows import key_bytes, look_away
from statelib.records.key_column import KeyColumn
from statelib.task.sinks import CAUSE
from statelib.task.sources import ORDER_TIME
from statelib.topology import Sink
from statelib.topology.leading import path_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import RepartitionFile
    from statelib.explanation.needed import Wanted
    from statelib.explanation.replayed import TaskPlace
    from statelib.storage import Storage
    from statelib.task import Stages
    from statelib.task.observers import Tap
    from statelib.task.work import TaskWork
    from statelib.topology import Topology

_NOTHING = np.empty(0, np.int64)


class Tasks:
    """The tasks that lead to a sink, over the whole history of a job.

    Args:
        topology: The job's.
        topic: The sink's.
        stages: The work of each slice.
        storage: The warehouse.
        staging: A scratch place for repartition files.
    """

    def __init__(
        self, topology: Topology, topic: str, stages: Sequence[Stages], *, storage: Storage, staging: Storage
    ) -> None:
        self._writers = {n.topic: n.name for n in topology.nodes if isinstance(n, Sink) and n.internal}
        self.path = path_to(topology, topics=[topic])
        """Their sub-topologies, upstream ones first, without nodes that do not lead there."""
        self._storage = storage
        self._staging = staging
        self._works: dict[TaskPlace, list[TaskWork]] = {}
        for stage in stages:
            for sub_topology in self.path:
                for work in stage.works(sub_topology, ()):
                    self._works.setdefault((sub_topology.index, work.planned.partition), []).append(work)
        self._files: list[list[tuple[TaskPlace, RepartitionFile]]] = [[] for _ in stages]
        self._columns: dict[tuple[str, int], list[pa.Table]] = {}

    def send(self) -> None:
        """Runs all tasks but those of the last sub-topology, so that these get what they wait for."""
        for sub_topology in self.path[:-1]:
            for task in sorted(place for place in self._works if place[0] == sub_topology.index):
                replayed = self.replayed(task, look_away, writes=True)
                replayed.run(_NOTHING, bool, one_by_one=False)
                for at, files in enumerate(replayed.files):
                    self._files[at] += [(task, file) for file in files]

    def replayed(self, task: TaskPlace, tap: Tap, *, writes: bool = False) -> ReplayedTask:
        """A task, ready to be replayed."""
        works = [
            with_repartitions(work, [file for _, file in files])
            for work, files in zip(self._works[task], self._files, strict=True)
        ]
        return ReplayedTask(works, storage=self._storage, staging=self._staging, tap=tap, writes=writes)

    def work(self, task: TaskPlace) -> TaskWork:
        """What a task does in the first slice."""
        return self._works[task][0]

    def cause(self, topic: str, reader: TaskPlace, offset: int) -> tuple[Cause, Wanted]:
        """What wrote a record to a repartition topic, and the row that the topic's sink got.

        Args:
            topic: The topic.
            reader: The task that has taken it up.
            offset: The offset that it had there.
        """
        partition, restore = reader[1], self.work(reader).restore
        if restore is not None:  # the files hold what came behind that
            offset -= restore.position.source_offsets.get(place_of(topic, partition), 0)
        tables = self._tables(topic, partition)
        begins = np.cumsum([0, *(table.num_rows for table in tables)])
        at = int(np.searchsorted(begins, offset, side="right")) - 1
        place = offset - int(begins[at])
        (row,) = tables[at].slice(place, 1).to_pylist()
        # What a record has caused in a partition is together there: a file has it so, and one order time.
        number = 0
        for before in range(place - 1, -1, -1):
            (other,) = tables[at].slice(before, 1).to_pylist()
            if any(other[name] != row[name] for name in (CAUSE, "sub_topology", "task")):
                break
            number += (other["key"], other["start"]) == (row["key"], row["start"])
        key = (row["key"], row["start"])
        cause = Cause(topic, (row["sub_topology"], row["task"]), row[CAUSE], key, number)
        return cause, (self._writers[topic], cause.sequence, key)

    def _tables(self, topic: str, partition: int) -> list[pa.Table]:
        """By slice, in the order in which the partition is read, what wrote each record, and its key."""
        place = (topic, partition)
        if place not in self._columns:
            self._columns[place] = [
                _in_order([self._table(task, file) for task, file in files if (file.topic, file.partition) == place])
                for files in self._files
            ]
        return self._columns[place]

    def _table(self, task: TaskPlace, file: RepartitionFile) -> pa.Table:
        with self._staging.open_input(file.path) as opened, pa.ipc.open_stream(opened) as stream:
            batches = [_told(batch) for batch in stream]
        table = pa.Table.from_batches(batches)
        for name, number in zip(("sub_topology", "task"), task, strict=True):
            table = table.append_column(name, pa.repeat(number, table.num_rows))
        return table


_TOLD = pa.schema([(ORDER_TIME, pa.int64()), (CAUSE, pa.int64()), ("key", pa.binary()), ("start", pa.int64())])


def _told(batch: pa.RecordBatch) -> pa.RecordBatch:
    keys = KeyColumn.of(batch.column("key"))
    start = pa.nulls(len(batch), pa.int64()) if keys.windows is None else pa.array(keys.windows.start)
    columns = [batch.column(ORDER_TIME), batch.column(CAUSE), key_bytes(keys), start]
    return pa.RecordBatch.from_arrays(columns, schema=_TOLD)


def _in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """As `RepartitionSource` merges the files: by order time, of equal ones by file."""
    if not tables:
        return pa.table({ORDER_TIME: pa.array([], pa.int64())})
    together = pa.concat_tables(tables)
    return together.take(pa.array(np.argsort(together[ORDER_TIME].to_numpy(), kind="stable")))
