"""What a custom processor has scheduled, and when it is due (Kafka's ``PunctuationQueue``, ``PunctuationSchedule``).

A call is due for the first time at time 0, that is, as soon as there is a stream time at all, or at the start that it
is given (KIP-1146), and then at the next multiple of its interval, counted from there, that is beyond the stream time
at which it was made: what was missed is made up for once. Of several that are due the earliest comes first; equal ones
come as Java's ``PriorityQueue`` has them.

The wall clock of a replay is the task's stream time too: it is what the clock would show if each record were processed
at its timestamp. By it a call is due for the first time an interval behind the time at which it was made; one that
``init`` makes, an interval behind the first record of the task. Calls by stream time come before those by the wall
clock, as Kafka Streams looks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.operators.processors.codec import KEY, StoredCall, decode_calls, encode_calls
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from statelib.state.log import StoreLog
    from statelib.stores.backend import Backend, WriteBatch

    Callback = Callable[[int], object]


@dataclass(slots=True)
class Schedule:
    """One scheduled callback; also what cancels it.

    Attributes:
        name: How the next slice finds the callback: see `statelib.operators.processors.codec`.
        interval_ms: At least 1.
        callback: Called with the stream time.
        due_ms: When it is called next.
        cancelled: Whether it never is.
        node: Whose it is, where several processors have one queue.
        by_wall_clock: Whether it goes by that.
        waits: By the wall clock: whether that had not begun when it was made; ``due_ms`` is its start, -1 without one.
    """

    name: str
    interval_ms: int
    callback: Callback
    due_ms: int = 0
    cancelled: bool = False
    node: str = ""
    by_wall_clock: bool = False
    waits: bool = False

    def cancel(self) -> None:
        """See `Cancellable`."""
        self.cancelled = True

    def advance(self, now_ms: int) -> None:
        """Sets the next time, after a call at ``now_ms``."""
        missed = max(now_ms - self.due_ms, 0) // self.interval_ms
        self.due_ms += (missed + 1) * self.interval_ms

    def begin(self, now_ms: int) -> None:
        """By the wall clock, which shows ``now_ms``: sets the first time, if it waits for that."""
        if self.waits:
            self.waits = False
            if self.due_ms < 0:
                self.due_ms = now_ms + self.interval_ms
            elif self.due_ms < now_ms:
                self.advance(now_ms)

    def stored(self, keeper: str) -> StoredCall:
        """What the next slice has to know; ``keeper``: the node in whose state it is kept."""
        name = self.name if self.node in {"", keeper} else f"{self.node}:{self.name}"
        return StoredCall(self.due_ms, self.interval_ms, self.cancelled, name, self.by_wall_clock, self.waits)


class _Queue:
    """Those that go by one clock."""

    def __init__(self) -> None:
        self._heap: list[Schedule] = []

    def __iter__(self) -> Iterator[Schedule]:
        return iter(self._heap)

    @property
    def next_due_ms(self) -> int | None:
        """When something is due next; None: never."""
        return self._heap[0].due_ms if self._heap else None

    def add(self, schedule: Schedule) -> None:
        """Puts a schedule into its place (``PriorityQueue.offer``)."""
        heap, at = self._heap, len(self._heap)
        heap.append(schedule)
        while at and schedule.due_ms < heap[(at - 1) // 2].due_ms:
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = schedule

    def restore(self, schedule: Schedule) -> None:
        """Puts one behind all, which is where it was in the queue that was stored."""
        self._heap.append(schedule)

    def punctuate(self, now_ms: int, call: Callable[[Schedule], object]) -> None:
        """Makes all calls that are due (``maybePunctuate``)."""
        while self._heap and self._heap[0].due_ms <= now_ms:
            schedule = self._poll()
            if schedule.cancelled:
                continue
            call(schedule)
            if not schedule.cancelled:
                schedule.advance(now_ms)
                self.add(schedule)

    def _poll(self) -> Schedule:
        """Takes the first one away (``PriorityQueue.poll``)."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if not heap:
            return first
        at, child = 0, 1
        while child < len(heap):
            if child + 1 < len(heap) and heap[child].due_ms > heap[child + 1].due_ms:
                child += 1
            if last.due_ms <= heap[child].due_ms:
                break
            heap[at] = heap[child]
            at, child = child, 2 * child + 1
        heap[at] = last
        return first


class PunctuationQueue:
    """The schedules of one processor in one task, or of several that share a store.

    Attributes:
        holds_wall_clock: Whether callbacks by the wall clock have to wait.
    """

    def __init__(self) -> None:
        self.holds_wall_clock = False
        self._by_stream_time, self._by_wall_clock = _Queue(), _Queue()
        self._waiting: list[Schedule] = []

    def __iter__(self) -> Iterator[Schedule]:
        return chain(self._by_stream_time, self._by_wall_clock, self._waiting)

    @property
    def next_due_ms(self) -> int | None:
        """When something is due next; None: never, or the wall clock has not begun."""
        due = [queue.next_due_ms for queue in self._running()]
        return min((time for time in due if time is not None), default=None)

    def is_held(self, now_ms: int) -> bool:
        """Whether a callback by the wall clock is due at a time, and has to wait."""
        due_ms = self._by_wall_clock.next_due_ms
        return self.holds_wall_clock and due_ms is not None and due_ms <= now_ms

    @property
    def waits(self) -> bool:
        """Whether anything waits for the wall clock to begin."""
        return bool(self._waiting)

    def add(self, schedule: Schedule) -> None:
        """Puts a schedule into its place."""
        self._waiting.append(schedule) if schedule.waits else self._queue_of(schedule).add(schedule)

    def begin_clock(self, now_ms: int) -> None:
        """The wall clock begins, and shows a time, for what waits for it."""
        waiting, self._waiting = self._waiting, []
        for schedule in waiting:
            schedule.begin(now_ms)
            self.add(schedule)

    def punctuate(self, now_ms: int, call: Callable[[Schedule], object] | None = None) -> None:
        """Makes all calls that are due.

        Args:
            now_ms: The stream time, which is the wall clock's too.
            call: Makes a call; None: the callback is called with the time.
        """
        made = call or (lambda schedule: schedule.callback(now_ms))
        for queue in self._running():
            queue.punctuate(now_ms, made)

    def stored(self, keeper: str = "") -> list[StoredCall]:
        """What the next slice has to know; ``keeper``: the node in whose state it is kept."""
        return [schedule.stored(keeper) for schedule in self]

    def restore(self, calls: Sequence[StoredCall], find: Callable[[StoredCall], Schedule]) -> None:
        """Makes it what it was when `stored` was called; ``find`` gives the schedule that a call belongs to.

        To one that is not empty the calls are added.
        """
        is_empty = not any(True for _ in self)
        for call in calls:
            schedule = find(call)
            schedule.due_ms, schedule.cancelled, schedule.waits = call.due_ms, call.cancelled, call.waits
            if is_empty and not schedule.waits:
                self._queue_of(schedule).restore(schedule)
            else:
                self.add(schedule)

    def _running(self) -> Sequence[_Queue]:
        return [self._by_stream_time] if self.holds_wall_clock else [self._by_stream_time, self._by_wall_clock]

    def _queue_of(self, schedule: Schedule) -> _Queue:
        return self._by_wall_clock if schedule.by_wall_clock else self._by_stream_time


class Scheduler:
    """Schedules a processor's calls, and keeps them in the task's state.

    Processors that share a store have one queue, as all of a task have in Kafka Streams: see `begin`.

    Args:
        backend: The task's.
        node: The processor's node.
        family: The backend family.
        processor: Whose methods callbacks may be.
    """

    def __init__(self, backend: Backend, node: str, family: str, processor: object) -> None:
        self.queue = PunctuationQueue()
        self.node = node
        self._keeper = node
        self._family = family
        self._processor = processor
        self._stored = backend.get(family, KEY)
        self._logged = self._stored
        self._of_init: dict[str, Schedule] | None = {}

    def schedule(
        self,
        interval_ms: int,
        callback: Callback,
        *,
        start_ms: int | None = None,
        now_ms: int = NO_TIMESTAMP,
        by_wall_clock: bool = False,
    ) -> Schedule:
        """A new schedule; while ``init`` runs in a later slice, the one that it made before.

        Args:
            interval_ms: At least 1.
            callback: Called with the stream time.
            start_ms: When it is called first, if that is not past; None: see above.
            now_ms: The stream time; not known in ``init``.
            by_wall_clock: Whether it goes by that.

        Raises:
            ConfigurationError: The next slice could not find the callback.
        """
        name = self._method_name(callback) if self._of_init is None else f"#{len(self._of_init)}"
        schedule = Schedule(name, interval_ms, callback, node=self.node, by_wall_clock=by_wall_clock)
        if by_wall_clock:
            schedule.due_ms, schedule.waits = NO_TIMESTAMP if start_ms is None else start_ms, True
            if self._of_init is None:
                schedule.begin(now_ms)
        elif start_ms is not None:
            schedule.due_ms = start_ms
            if start_ms < now_ms:
                schedule.advance(now_ms)
        if self._of_init is not None:
            self._of_init[name] = schedule
        else:
            self.queue.add(schedule)
        return schedule

    def log(self, log: StoreLog) -> None:
        """Logs the queue if it has changed since the last call, or since the state was restored."""
        raw = self._encoded()
        if raw != self._logged:
            self._logged = raw
            log.add(KEY, raw, None)

    def flush(self, write: WriteBatch) -> None:
        """Adds the queue to ``write`` if it has changed."""
        raw = self._encoded()
        if raw != self._stored:
            self._stored = raw
            write.put(self._family, KEY, raw)

    def _encoded(self) -> bytes:
        """What it keeps of the queue: all of it, or nothing if another one does."""
        return encode_calls(self.queue.stored(self.node) if self._keeper == self.node else [])

    def stored_calls(self) -> list[StoredCall]:
        """What earlier slices have kept here.

        Raises:
            ConfigurationError: It is written in another format.
            CorruptedDataError: It cannot be read.
        """
        return [] if self._stored is None else decode_calls(self._stored, self.node)

    def join(self, queue: PunctuationQueue, keeper: str) -> None:
        """Ends what ``init`` schedules, and adds it to a queue if no earlier slice has done so."""
        of_init, self._of_init = self._of_init or {}, None
        self.queue, self._keeper = queue, keeper
        if self._stored is None:
            for schedule in of_init.values():
                queue.add(schedule)

    def found(self, call: StoredCall, name: str) -> Schedule:
        """The schedule that a stored call belongs to; ``name``: of the callback.

        Raises:
            ConfigurationError: There is none.
        """
        schedule = (self._of_init or {}).get(name)
        method = getattr(self._processor, name, None)
        if schedule is None and callable(method):
            schedule = Schedule(name, call.interval_ms, method, node=self.node, by_wall_clock=call.by_wall_clock)
        found = None if schedule is None else (schedule.interval_ms, schedule.by_wall_clock)
        if schedule is None or found != (call.interval_ms, call.by_wall_clock):
            clock = " by the wall clock" if call.by_wall_clock else ""
            raise ConfigurationError(
                f"init no longer schedules {name} every {call.interval_ms} ms{clock}, as in earlier slices",
                node=self.node,
                next_step="schedule the same callbacks in init() each time, whatever the stores hold",
            )
        return schedule

    def _method_name(self, callback: Callback) -> str:
        name = getattr(callback, "__name__", "")
        if getattr(callback, "__self__", None) is not self._processor or not hasattr(self._processor, name):
            raise ConfigurationError(
                "a callback scheduled outside init() must be a method of the processor: it is found again by its name",
                node=self.node,
                next_step="schedule a method, or schedule in init()",
            )
        return name


def begin(schedulers: Sequence[Scheduler]) -> PunctuationQueue:
    """Ends what ``init`` schedules: begins with it, or goes on where the last slice ended.

    Args:
        schedulers: Of processors that have one queue, in the order of their nodes. The first one keeps it.

    Raises:
        ConfigurationError: ``init`` has scheduled something else than in the slice before, or the format is another
            one.
        CorruptedDataError: What is stored cannot be read.
    """
    queue, keeper = PunctuationQueue(), schedulers[0].node
    by_node = {scheduler.node: scheduler for scheduler in schedulers}
    for scheduler in schedulers:

        def found(call: StoredCall, scheduler: Scheduler = scheduler) -> Schedule:
            node, _, name = call.callback.rpartition(":")
            return by_node.get(node, scheduler).found(call, name)

        queue.restore(scheduler.stored_calls(), found)
    for scheduler in schedulers:
        scheduler.join(queue, keeper)
    return queue
