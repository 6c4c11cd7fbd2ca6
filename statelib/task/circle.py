"""Runs the tasks of a circle together: those whose records come back to them through repartition topics.

Tasks of other stages run one after the other, each over the whole slice. Here what a record causes has to be taken up
before the next one: it may come back to the task that takes that up. So the tasks advance together. Of all of them the
record with the smallest order time is taken up, of equal ones that of the first task; then everything that it causes
within the circle, until nothing is left. Of several records that wait, the one with the smallest timestamp is next, of
equal ones that which was written first, as Kafka Streams chooses among the heads of a task's partitions.

Then come the callbacks of custom processors by the wall clock, which has come to the record's timestamp
(`statelib.task.wall_clock`), and what these cause.

So the order depends on the records alone: not on slices, batches or where the tasks run. It is that of Kafka's test
driver, which too finishes a record before the next.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from statelib.commits.maintenance.leftovers import attempt_name
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from statelib.task.run import Phases, RunningTask, told_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from statelib.documents.manifests import TaskOutcome
    from statelib.task.merge import Merged
    from statelib.task.source_records import Records
    from statelib.task.work import TaskWork

MOST_PASSED_ON = 1_000_000
"""So many records may be passed on because of one; then it is said that there is no end to them."""
_READ_AHEAD = 1_024
"""Records are taken one by one from what has been read."""


def run_circle(
    works: Sequence[TaskWork],
    *,
    attempt: str,
    clock: Callable[[], float],
    host: str = "localhost",
    told: Callable[[int], object] = bool,
) -> list[TaskOutcome]:
    """Runs all tasks of a circle's stage. Args as of `statelib.task.run.run_task`.

    Returns:
        What each has made, in the order of ``works``.

    Raises:
        ConfigurationError: A record causes others without end.
        HindstreamError: See `statelib.errors.kinds`; every one names the task.
    """
    with ExitStack() as opened:
        passed = _PassedOn()
        members = [_member(work, attempt, clock, passed, opened) for work in works]
        passed.members = members
        step("task.restored")
        for external, merged, parts in _in_order(members):
            external.take_up(merged, parts)
            told(len(merged))
            passed.settle(external)
            passed.call(external)
        return [member.finish(host) for member in members]


@dataclass(slots=True, eq=False)
class _Member:
    """A task of the circle."""

    work: TaskWork
    task: RunningTask
    phases: Phases

    def external(self) -> Iterator[tuple[Merged, list[Records]]]:
        """What comes from outside the circle, a record at a time."""
        self.task.inputs.most_at_once = 1
        return self.task.inputs.taken_up()

    def take_up(self, merged: Merged, parts: Sequence[Records]) -> None:
        """Processes a record."""
        self.phases.begin()
        with told_of(self.work, self.task):
            self.task.take_up(merged, parts, self.phases)
        self.task.inputs.most_at_once = 1  # it may have got more memory than it should have

    def take_up_passed(self, source: int, rows: pa.RecordBatch) -> None:
        """Processes a record that came through a topic of the circle."""
        self.take_up(*self.task.inputs.passed_on(source, rows))

    def call(self) -> bool:
        """Makes the callbacks that have waited for this; whether there were any."""
        self.phases.begin()
        with told_of(self.work, self.task):
            return self.task.call(self.phases)

    def finish(self, host: str) -> TaskOutcome:
        """What it has made."""
        self.phases.begin()
        with told_of(self.work, self.task):
            return self.task.finish(self.phases, host)


def _member(work: TaskWork, attempt: str, clock: Callable[[], float], passed: _PassedOn, opened: ExitStack) -> _Member:
    name = attempt_name(work.job, work.run_id, work.planned.task_id, attempt)
    settings = replace(work.settings, batch_records=min(work.settings.batch_records, _READ_AHEAD))
    phases = Phases(clock)
    phases.begin()
    with told_of(work):
        storage = Storage(settings.warehouse, settings.storage_options)
        task = opened.enter_context(RunningTask(replace(work, settings=settings), storage, name, passed_on=passed.add))
    phases.end("restore")
    return _Member(work, task, phases)


def _in_order(members: Sequence[_Member]) -> Iterator[tuple[_Member, Merged, list[Records]]]:
    """What comes from outside, by order time; of equal ones that of the first task."""
    inputs = [member.external() for member in members]
    heads = [(first[0].last_order_time, at, first) for at, of in enumerate(inputs) if (first := next(of, None))]
    heapq.heapify(heads)
    while heads:
        _, at, (merged, parts) = heads[0]
        yield members[at], merged, parts
        following = next(inputs[at], None)
        if following is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (following[0].last_order_time, at, following))


@dataclass(slots=True)
class _Waiting:
    """A record that waits; they are compared by their timestamps, then by when they were written."""

    timestamp: int
    number: int
    rows: pa.RecordBatch


@dataclass(slots=True)
class _PassedOn:
    """What waits in the topics of the circle, by task and topic.

    Attributes:
        members: The tasks.
    """

    members: Sequence[_Member] = ()
    _waiting: dict[tuple[int, int], deque[_Waiting]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def add(self, topic: str, partition: int, rows: pa.RecordBatch) -> None:
        """Takes what was written to a partition of a topic."""
        for at, member in enumerate(self.members):
            if member.work.planned.partition != partition:
                continue
            for source, node in enumerate(member.work.sub_topology.all_sources):
                if node.topic == topic:
                    queue = self._waiting.setdefault((at, source), deque())
                    for row, timestamp in enumerate(rows.column("timestamp").to_pylist()):
                        queue.append(_Waiting(timestamp, next(self._numbers), rows.slice(row, 1)))

    def call(self, cause: _Member) -> None:
        """Lets the tasks make the callbacks that have waited, and take up all that comes of them."""
        called = [member.call() for member in self.members]
        if any(called):
            self.settle(cause)
            for member in self.members:
                member.task.settled()

    def settle(self, cause: _Member) -> None:
        """Lets the tasks take up all that waits, and all that comes of it."""
        taken = 0
        while heads := [(queue[0].timestamp, queue[0].number, at) for at, queue in self._waiting.items() if queue]:
            _, _, (member, source) = min(heads)
            self.members[member].take_up_passed(source, self._waiting[member, source].popleft().rows)
            taken += 1
            if taken > MOST_PASSED_ON:
                raise ConfigurationError(
                    f"a record has caused {MOST_PASSED_ON:,} others in a circle of repartition topics, and there is no"
                    " end to them",
                    task=cause.work.planned.task_id,
                    topics=", ".join(sorted(cause.work.sub_topology.returning)),
                    next_step="leave out what no longer changes anything with filter() before the circle closes",
                )
