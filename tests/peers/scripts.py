"""The processors of a recorded test: they do what they did in Java, if what reaches them is the same."""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from statelib import (
    FixedKeyProcessor,
    Processor,
    ProcessorSupplier,
    PunctuationType,
    Record,
    ValueAndTimestamp,
    ValueTransformerWithKey,
    ValueTransformerWithKeySupplier,
)
from tests.peers.functions import FailsInJava, NeverCalled, arguments, hashable
from tests.peers.recording import NotExpressed, Row, plain, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from statelib import ProcessorContext, StoreBuilder

_METHODS = {"put": "put", "putIfAbsent": "put_if_absent", "delete": "delete", "remove": "remove"}


class Script:
    """What reached a processor, in order, and what it did with it.

    Attributes:
        expected: The records that reached it in Java.
        seen: Those that have reached it here.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        if told.get("too_many"):
            raise NotExpressed("more calls than are recorded")
        self.expected: list[Row] = [_row(call["in"]) for call in told["calls"] if "in" in call]
        self.seen: list[Row] = []
        self.opening: list[dict[str, Any]] = next((call["do"] for call in told["calls"] if "init" in call), [])
        self._answers: deque[list[dict[str, Any]]] = deque(call["do"] for call in told["calls"] if "in" in call)
        self._calls: defaultdict[str, deque[list[dict[str, Any]]]] = defaultdict(deque)
        self._transformed: defaultdict[tuple[Any, ...], deque[Any]] = defaultdict(deque)
        for call in told["calls"]:
            if "punctuate" in call:
                self._calls[call["punctuate"]].append([{"at": call["timestamp"]}, *call["do"]])
            elif "of" in call:
                self._transformed[arguments(call["of"])].append(call)
        self.called: list[str] = []
        for action in self.actions():
            if action.get("type") == "WALL_CLOCK_TIME" and self._calls:
                raise NotExpressed("callbacks by the wall clock")
            if "unknown" in action or action.get("method") == "putAll":
                raise NotExpressed("something unusual in a processor")

    def actions(self) -> Iterator[dict[str, Any]]:
        """All that it did."""
        yield from self.opening
        for answer in self._answers:
            yield from answer
        for calls in self._calls.values():
            for call in calls:
                yield from call
        for made in self._transformed.values():
            for call in made:
                yield from call["do"]

    def taken(self, record: Any) -> Iterable[dict[str, Any]]:
        """Takes up a record; what is to be done with it."""
        headers = tuple(record.headers)
        self.seen.append((hashable(record.key), hashable(record.value), record.timestamp, headers))
        return self._answers.popleft() if self._answers else ()

    def punctuated(self, schedule: str, timestamp: int) -> Iterable[dict[str, Any]]:
        """A callback is called; what is to be done."""
        calls = self._calls[schedule]
        call = calls.popleft() if calls else [{"at": None}]
        if call[0]["at"] != timestamp:
            self.called.append(f"called back at {timestamp}, in Kafka Streams at {call[0]['at']}")
        return call[1:]

    def left(self) -> list[str]:
        """What was different in callbacks."""
        left = [f"not called back at {call[0]['at']}" for calls in self._calls.values() for call in calls]
        return self.called + left

    def transformed(self, key: Any, value: Any) -> dict[str, Any]:
        """What a transformer answered."""
        given = (hashable(key), hashable(value))
        made = self._transformed.get(given)
        if not made:
            raise NeverCalled(f"transform{given}: it was called with {list(self._transformed)[:6]}")
        answer: dict[str, Any] = made[0] if len(made) == 1 else made.popleft()
        return answer


class _Acting:
    """What a processor does.

    Args:
        script: Says what.
        fixed: Whether it forwards records with the keys of those that it has got.
    """

    def __init__(self, script: Script) -> None:
        self._script = script

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._record: Any = None
        self._do(self._script.opening)

    def _do(self, actions: Iterable[dict[str, Any]]) -> None:
        for action in actions:
            if "forward" in action:
                self._context.forward(self._forwarded(*row(action["forward"])), action.get("to"))
            elif "schedule" in action and action["type"] == "STREAM_TIME":
                interval = timedelta(milliseconds=action["interval"])
                callback = partial(self._punctuated, action["schedule"])
                start = {"start_time": action["start"]} if "start" in action else {}
                self._context.schedule(interval, PunctuationType.STREAM_TIME, callback, **start)
            elif "threw" in action:
                raise FailsInJava(action["threw"])
            elif "store" in action:
                store = self._context.get_state_store(action["store"])
                getattr(store, _METHODS[action["method"]])(*map(_of_store, action["with"]))

    def _punctuated(self, schedule: str, timestamp: int) -> None:
        self._do(self._script.punctuated(schedule, timestamp))

    def _forwarded(self, key: Any, value: Any, timestamp: int, headers: Any) -> Any:
        return Record(key, value, timestamp, headers)


class Acting(_Acting, Processor):
    """A processor."""

    def process(self, record: Record) -> None:
        """Does what it did."""
        self._do(self._script.taken(record))


class ActingFixedKey(_Acting, FixedKeyProcessor):
    """One that cannot change keys."""

    def process(self, record: Any) -> None:
        """Does what it did."""
        self._record = record
        self._do(self._script.taken(record))

    def _forwarded(self, key: Any, value: Any, timestamp: int, headers: Any) -> Any:
        del key
        return self._record.with_value(value).with_timestamp(timestamp).with_headers(headers)


class Transforming(_Acting, ValueTransformerWithKey):
    """A transformer of a table's values."""

    def transform(self, read_only_key: Any, value: Any) -> Any:
        """What it answered."""
        answer = self._script.transformed(read_only_key, value)
        self._do(answer["do"])
        return plain(answer["is"])


class Supplier(ProcessorSupplier):
    """One that brings the processor's stores.

    Args:
        get: Gives a new processor.
        stores: Their builders.
    """

    def __init__(self, get: Callable[[], Any], stores: Sequence[StoreBuilder[Any]]) -> None:
        self._get = get
        self._stores = stores

    def get(self) -> Any:
        """A new one."""
        return self._get()

    def stores(self) -> Sequence[StoreBuilder[Any]]:
        """Its stores."""
        return self._stores


class TransformerSupplier(Supplier, ValueTransformerWithKeySupplier):
    """The same of a transformer."""


def _row(told: list[Any]) -> Row:
    """A record; of the change of a table, which Kafka Streams' own processors get, the new value."""
    value = told[1]
    if isinstance(value, dict) and "change" in value:
        value = value["change"][0]
    return row([told[0], value, *told[2:]])


def _of_store(told: Any) -> Any:
    if isinstance(told, dict) and "stamped" in told:
        return ValueAndTimestamp.make(plain(told["stamped"]), told["timestamp"])
    return plain(told)
