"""Explains a result: what made it, what was dropped on the way, and how it went."""

from __future__ import annotations

import tempfile  # noqa: TID251 - nothing that is found depends on the folder's name
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.commits.standing import standing_commit
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.explanation.alone import Alone, row_bytes
from statelib.explanation.earlier import RestsOnEarlierError, starts, state_before
from statelib.explanation.explanation import Contribution, Explanation, Place, Result
from statelib.explanation.history import slices_until, stages_of
from statelib.explanation.may_matter import EVERYTHING, MOST_RECORDS, RECENCY, Search
from statelib.explanation.minimal import minimal
from statelib.explanation.passages import dropped_in, root_of, steps_in
from statelib.explanation.result import made_by
from statelib.explanation.rows import row_keys
from statelib.explanation.tasks import Tasks
from statelib.storage import Storage
from statelib.topology.leading import path_to

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from statelib.explanation.alone import Passage, RecordId, RowBytes
    from statelib.explanation.history import Slice
    from statelib.explanation.may_matter import MayMatter
    from statelib.explanation.needed import Wanted
    from statelib.explanation.replayed import ReplayedTask, TakenUp
    from statelib.explanation.result import Found
    from statelib.job.job import Job
    from statelib.records.batch import Batch
    from statelib.task import TaskSettings

_MOST_REPLAYED = 20_000
"""Records to replay at most to find out which ones matter."""


def explain(
    job: Job, warehouse: Storage, settings: TaskSettings, found: Found, *, commit: int | None = None
) -> Explanation:
    """Explains a record of a sink.

    The slices up to the commit are replayed in a temporary folder, in this process, from the newest commit on whose
    state holds nothing of what the result rests on: those sub-topologies that lead to the sink, of the last one the
    task that wrote the record.

    Args:
        job: The job, with the topology that wrote it.
        warehouse: Root of all durable data. Nothing is written there.
        settings: See `TaskSettings`; its warehouse and folder for state are not used.
        found: The record.
        commit: Records that were taken up behind this commit are not looked at; None: the newest.

    Raises:
        ConfigurationError: The record rests on what cannot be replayed: on commits by another topology, or on a state
            that came from elsewhere; or another of `slices_until` and `made_by`.
    """
    if found.topic not in job.topology.sink_topics:
        step = did_you_mean(found.topic, job.topology.sink_topics, "one of:")
        raise ConfigurationError("the job does not write this topic", topic=found.topic, next_step=step)
    if any(sub.returning for sub in path_to(job.topology, topics=[found.topic])):
        raise ConfigurationError(
            "the topic is behind repartition topics that form a circle: what caused a result there cannot be told",
            topic=found.topic,
            next_step="look at what a key has become: hindstream inspect, hindstream show",
        )
    past = slices_until(warehouse, job.name, job.topology, found.topic, commit)
    slices = past.slices
    if past.refused is not None and not _is_of(slices, found):
        raise past.refused
    ends = standing_commit(warehouse, job.name, commit).sink_offsets().get(found.topic, {})
    with tempfile.TemporaryDirectory(prefix="hindstream-explain-") as folder:
        scratch = replace(
            settings,
            warehouse=warehouse.uri(""),
            state_dir=str(Path(folder) / "state"),
            semantics=slices[-1].plan.semantics or settings.semantics,
            on_late_record="topic",  # so that all columns are read
        )
        records = 0
        for first in starts(past, made_by(slices, ends, found)[0], warehouse):
            part = slices[first:]
            stages = stages_of(part, state_before(part[0]), job.topology, warehouse, scratch)
            staging = Storage(f"{folder}/staging-{first}")
            tasks = Tasks(job.topology, found.topic, stages, storage=warehouse, staging=staging)
            explainer = _Explainer(tasks, part, found, ends)
            try:
                told = explainer.explanation()
            except RestsOnEarlierError:
                records += explainer.records
                continue
            before = part[0].before
            return replace(
                told,
                replayed_records=told.replayed_records + records,
                replayed_behind=None if before is None else before.commit,
                spared_slices=past.behind + first,
            )
    raise past.refused or InternalError("a result rests on more than the whole history", topic=found.topic)


def _is_of(slices: Sequence[Slice], found: Found) -> bool:
    """Whether one of the slices, or a later one, wrote a record."""
    return bool(slices) and found.offset >= slices[0].sink_offsets.get(found.topic, {}).get(found.partition, 0)


class _Explainer:
    """Explains one record; see `explain`."""

    def __init__(self, tasks: Tasks, slices: Sequence[Slice], found: Found, ends: dict[int, int]) -> None:
        self._tasks = tasks
        self._found = found
        self._slice, self._row = made_by(slices, ends, found)
        self._commit = slices[self._slice].commit
        self._search = Search(tasks, slices[-1].plan.end_of_input)
        (self._sink,) = (sink for sink in tasks.path[-1].all_sinks if sink.topic == found.topic)
        self._task = (tasks.path[-1].index, found.partition)

    @property
    def records(self) -> int:
        """How many have been replayed so far, not counting what was replayed alone."""
        return self._search.records

    def explanation(self) -> Explanation:
        """All of it.

        Raises:
            RestsOnEarlierError: It takes records from before the first slice.
        """
        self._tasks.send()
        wanted, row = self._located()
        may_matter, alone, is_enough = self._reproduced(wanted, row)
        kept, is_minimal = may_matter.made, False
        if is_enough and kept:
            gives = partial(self._gives, alone, wanted, row)
            kept, is_minimal = minimal(kept, gives, most_tests=max(_MOST_REPLAYED // len(kept), 1))
        return self._told(may_matter, alone, wanted, kept, (is_enough, is_minimal))

    def _reproduced(self, wanted: Wanted, row: RowBytes) -> tuple[MayMatter, Alone, bool]:
        """Records that may matter, and whether they alone give the result: more of them until they do."""
        for recency in RECENCY:
            if recency == EVERYTHING and wanted[1] >= MOST_RECORDS:
                break
            may_matter = self._search.found(self._task, wanted, recency)
            alone = Alone(may_matter.history)
            if len(may_matter.made) > MOST_RECORDS:
                break
            if self._gives(alone, wanted, row, may_matter.made):
                return may_matter, alone, True
        return may_matter, alone, False

    def _gives(self, alone: Alone, wanted: Wanted, row: RowBytes, some: Collection[RecordId]) -> bool:
        """Whether some records alone give the result, at the record at which it was written."""
        sink, sequence, key = wanted
        at = None if sequence > alone.last_sequence_of(self._task) else sequence
        return any((one.sink, one.row_key, one.sequence, one.row) == (sink, key, at, row) for one in alone.run(some))

    def _located(self) -> tuple[Wanted, RowBytes]:
        """The row that reached the sink, and what it says.

        Raises:
            ConfigurationError: It is another one than the sink has.
        """
        look = _SinkRow(self._sink.name, self._slice, self._row)
        replayed = self._tasks.replayed(self._task, look)
        look.task = replayed
        self._search.replay(replayed, np.empty(0, np.int64), [])
        one = look.found
        if one is None or _says(one) != self._archived():
            raise ConfigurationError(
                "the job as it is now gives another result than the sink has",
                topic=self._found.topic,
                partition=self._found.partition,
                offset=self._found.offset,
                next_step="explain it with the job's file of that time",
            )
        (key,) = row_keys(one)
        (row,) = row_bytes(one.keys.archived, one.value, one.timestamp)
        return (self._sink.name, int(one.sequence[0]), key), row

    def _archived(self) -> tuple[bytes | None, int]:
        """Value and timestamp of the record in the sink."""
        row = self._found.row
        timestamp = row.column("timestamp").cast(pa.int64()).to_numpy()
        ((_, value, time),) = row_bytes(row.column("timestamp"), row.column("value"), timestamp)
        return value, time

    def _told(
        self,
        may_matter: MayMatter,
        alone: Alone,
        wanted: Wanted,
        kept: Sequence[RecordId],
        proved: tuple[bool, bool],
    ) -> Explanation:
        history, made = may_matter.history, set(kept)
        passages: list[Passage] = []
        of_kept: list[Passage] = []
        everything = sorted({*may_matter.made, *may_matter.dropped})
        is_known = len(everything) <= MOST_RECORDS
        if is_known:
            alone.run(everything, passages)
        if len(kept) <= MOST_RECORDS:
            alone.run(kept, of_kept)
        records = {(one.task, one.sequence): one for some in history.taken_up.values() for one in some}
        places = {one: self._place(records[one]) for one in everything}
        dropped = dropped_in(self._tasks.path, passages, may_matter.dropped - made, history.causes, places)
        gone = {one.record.where for one in dropped}
        looked_at = [places[one] for one in may_matter.made if one not in made]
        last = root_of((self._task, wanted[1]), history.causes)
        return Explanation(
            Result(self._place_of_result(), self._commit),
            tuple(Contribution(places[one], one == last) for one in kept),
            tuple(dropped),
            tuple(place for place in looked_at if place.where not in gone),
            steps_in(self._tasks.path, of_kept, self._sink),
            *proved,
            is_known,
            self._search.records + alone.records,
            None,
            0,
        )

    def _place(self, record: TakenUp) -> Place:
        (sources,) = (one.all_sources for one in self._tasks.path if one.index == record.task[0])
        source, records = sources[record.source], record.records
        return Place(
            source.topic,
            None if source.is_global else record.task[1],
            record.offset,
            int(records.timestamp[0]),
            records.keys.archived[0].as_py(),
            records.value[0].as_py(),
        )

    def _place_of_result(self) -> Place:
        row = self._found.row
        key, value = (row.column(name)[0].as_py() for name in ("key", "value"))
        timestamp = row.column("timestamp").cast(pa.int64())[0].as_py()
        return Place(self._found.topic, self._found.partition, self._found.offset, timestamp, key, value)


class _SinkRow:
    """Waits for a row to reach a sink; a `Tap`.

    Args:
        sink: The sink's name.
        slice_: The slice.
        row: Which of those that reach it in the slice.
    """

    def __init__(self, sink: str, slice_: int, row: int) -> None:
        self._sink, self._slice, self._row = sink, slice_, row
        self._seen = 0
        self.task: ReplayedTask | None = None
        self.found: Batch | None = None

    def __call__(self, node: str, batch: Batch) -> None:
        """See `Tap`."""
        if node != self._sink or self.task is None or self.task.slice != self._slice:
            return
        at = self._row - self._seen
        self._seen += len(batch)
        if 0 <= at < len(batch):
            self.found = batch.slice(at, at + 1)


def _says(one: Batch) -> tuple[bytes | None, int]:
    ((_, value, time),) = row_bytes(one.keys.archived, one.value, one.timestamp)
    return value, time
