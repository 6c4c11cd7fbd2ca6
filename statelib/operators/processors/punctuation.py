"""What a custom processor has scheduled, and when it is due (Kafka's ``PunctuationQueue``, ``PunctuationSchedule``).

A call is due for the first time at time 0, that is, as soon as there is a stream time at all, or at the start that it
is given (KIP-1146), and then at the next multiple of its interval, counted from there, that is beyond the stream time
at which it was made: what was missed is made up for once. Of several that are due the earliest comes first; equal ones
come as Java's ``PriorityQueue`` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.operators.processors.codec import KEY, StoredCall, decode_calls, encode_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    """

    name: str
    interval_ms: int
    callback: Callback
    due_ms: int = 0
    cancelled: bool = False
    node: str = ""

    def cancel(self) -> None:
        """See `Cancellable`."""
        self.cancelled = True

    def advance(self, stream_time: int) -> None:
        """Sets the next time, after a call at ``stream_time``."""
        missed = max(stream_time - self.due_ms, 0) // self.interval_ms
        self.due_ms += (missed + 1) * self.interval_ms


class PunctuationQueue:
    """The schedules of one processor in one task, or of several that share a store."""

    def __init__(self) -> None:
        self._heap: list[Schedule] = []

    @property
    def next_due_ms(self) -> int | None:
        """When something is due next; None: never."""
        return self._heap[0].due_ms if self._heap else None

    @property
    def next(self) -> Schedule | None:
        """What is called next."""
        return self._heap[0] if self._heap else None

    def add(self, schedule: Schedule) -> None:
        """Puts a schedule into its place (``PriorityQueue.offer``)."""
        heap, at = self._heap, len(self._heap)
        heap.append(schedule)
        while at and schedule.due_ms < heap[(at - 1) // 2].due_ms:
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = schedule

    def punctuate(self, stream_time: int, call: Callable[[Schedule], object] | None = None) -> int:
        """Makes all calls that are due (``maybePunctuate``); gives how many there were.

        Args:
            stream_time: In ms.
            call: Makes a call; None: the callback is called with the stream time.
        """
        made = 0
        while self._heap and self._heap[0].due_ms <= stream_time:
            schedule = self._poll()
            if schedule.cancelled:
                continue
            if call is None:
                schedule.callback(stream_time)
            else:
                call(schedule)
            made += 1
            if not schedule.cancelled:
                schedule.advance(stream_time)
                self.add(schedule)
        return made

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

    def stored(self, keeper: str = "") -> list[StoredCall]:
        """What the next slice has to know; ``keeper``: the node in whose state it is kept."""
        return [
            StoredCall(s.due_ms, s.interval_ms, s.cancelled, s.name if s.node in {"", keeper} else f"{s.node}:{s.name}")
            for s in self._heap
        ]

    def restore(self, calls: list[StoredCall], find: Callable[[StoredCall], Schedule]) -> None:
        """Makes it what it was when `stored` was called; ``find`` gives the schedule that a call belongs to.

        To one that is not empty the calls are added.
        """
        add = self.add if self._heap else self._heap.append
        for call in calls:
            schedule = find(call)
            schedule.due_ms, schedule.cancelled = call.due_ms, call.cancelled
            add(schedule)


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

    def schedule(self, interval_ms: int, callback: Callback, start_ms: int = 0, passed_ms: int = -1) -> Schedule:
        """A new schedule; while ``init`` runs in a later slice, the one that it made before.

        Args:
            interval_ms: At least 1.
            callback: Called with the stream time.
            start_ms: When it is called first.
            passed_ms: The stream time behind which the first call must be if it has a start; -1: anywhere.

        Raises:
            ConfigurationError: The next slice could not find the callback.
        """
        if self._of_init is not None:
            schedule = Schedule(f"#{len(self._of_init)}", interval_ms, callback, start_ms, node=self.node)
            self._of_init[schedule.name] = schedule
            return schedule
        schedule = Schedule(self._method_name(callback), interval_ms, callback, start_ms, node=self.node)
        if start_ms < passed_ms:
            schedule.advance(passed_ms)
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
            schedule = Schedule(name, call.interval_ms, method, node=self.node)
        if schedule is None or schedule.interval_ms != call.interval_ms:
            raise ConfigurationError(
                f"init no longer schedules {name} every {call.interval_ms} ms, as in earlier slices",
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
