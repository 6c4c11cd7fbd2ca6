"""The topics of a topology in a test (Kafka's ``TestInputTopic`` and ``TestOutputTopic``)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, overload

from statelib.calls import KafkasNames, arguments_checked
from statelib.errors.kinds import ConfigurationError
from statelib.settings.durations import milliseconds
from statelib.state.epoch_time import epoch_ms
from statelib.testing.records import TestRecord, hashable

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterable, Sequence


class _Driver(Protocol):
    def pipe(
        self,
        topic: str,
        key: object,
        value: object,
        timestamp_ms: int,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None: ...

    def waiting(self, topic: str) -> deque[TestRecord]: ...


_ABSENT: Any = object()


@arguments_checked
class TestInputTopic(KafkasNames):
    """Made by `TopologyTestDriver.create_input_topic` (Kafka's ``TestInputTopic``).

    It has a clock of its own, which gives records a time that are piped in without one. Times are ms since 1970, or a
    `datetime` with a time zone.
    """

    __test__ = False

    def __init__(self, driver: _Driver, topic: str, start_ms: int, auto_advance_ms: int) -> None:
        self._driver = driver
        self._topic = topic
        self._time_ms = start_ms
        self._auto_advance_ms = auto_advance_ms

    def __repr__(self) -> str:
        return f"TestInputTopic({self._topic!r})"

    @overload
    def pipe_input(
        self,
        key: object,
        *,
        timestamp: int | datetime | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None: ...
    @overload
    def pipe_input(
        self,
        key: object,
        value: object,
        timestamp: int | datetime | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None: ...
    def pipe_input(
        self,
        key: object,
        value: object = _ABSENT,
        timestamp: int | datetime | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Adds a record: key, value and, where the topic's clock is not to say it, timestamp.

        A single argument is a `TestRecord`, or, as in Kafka, the value of a record without a key.

        Raises:
            ConfigurationError: The timestamp is a `datetime` without a time zone, which differs between machines; or
                the topic's types cannot hold the record.
        """
        if value is _ABSENT and isinstance(key, TestRecord):
            record = key
            timestamp = record.timestamp_ms if timestamp is None else timestamp
            key, value, headers = record.key, record.value, headers or record.headers
        elif value is _ABSENT:
            key, value = None, key
        time_ms = self._next_ms() if timestamp is None else epoch_ms(timestamp)
        self._driver.pipe(self._topic, key, value, time_ms, tuple(headers))

    def pipe_record_list(self, records: Iterable[TestRecord | tuple[object, object, int | datetime]]) -> None:
        """Adds records, each a `TestRecord` or (key, value, timestamp)."""
        for record in records:
            if isinstance(record, TestRecord):
                self.pipe_input(record)
            else:
                self.pipe_input(*record)

    def pipe_key_value_list(
        self,
        key_values: Iterable[tuple[object, object]],
        start: int | datetime | None = None,
        advance: timedelta | None = None,
    ) -> None:
        """Adds records, each (key, value): at ``start``, each later by ``advance``; None: at the topic's own times."""
        if start is None and advance is not None:
            raise ConfigurationError(
                "there is an advance, but no start",
                next_step="give both, or set auto_advance of create_input_topic()",
            )
        time_ms = None if start is None else epoch_ms(start)
        step_ms = 0 if advance is None else _forward_ms(advance)
        for key, value in key_values:
            self.pipe_input(key, value, time_ms)
            time_ms = None if time_ms is None else time_ms + step_ms

    def pipe_value_list(
        self, values: Iterable[object], start: int | datetime | None = None, advance: timedelta | None = None
    ) -> None:
        """As `pipe_key_value_list`, of records without a key."""
        self.pipe_key_value_list(((None, value) for value in values), start, advance)

    def advance_time(self, advance: timedelta) -> None:
        """Moves the topic's clock on."""
        self._time_ms += _forward_ms(advance)

    def _next_ms(self) -> int:
        time_ms = self._time_ms
        self._time_ms += self._auto_advance_ms
        return time_ms


@arguments_checked
class TestOutputTopic(KafkasNames):
    """Made by `TopologyTestDriver.create_output_topic` (Kafka's ``TestOutputTopic``).

    Each record is read once, ordered by partition and offset. Reading replays what has been piped in first.
    """

    __test__ = False

    def __init__(self, driver: _Driver, topic: str) -> None:
        self._driver = driver
        self._topic = topic

    def __repr__(self) -> str:
        return f"TestOutputTopic({self._topic!r})"

    def read_record(self) -> TestRecord:
        """The next record.

        Raises:
            ConfigurationError: There is none.
        """
        waiting = self._driver.waiting(self._topic)
        if not waiting:
            step = "ask is_empty() first; a window's result may need a later record, which moves stream time on"
            raise ConfigurationError("there is no record to read", topic=self._topic, next_step=step)
        return waiting.popleft()

    def read_key_value(self) -> tuple[Any, Any]:
        """Key and value of the next record; raises as `read_record` does."""
        record = self.read_record()
        return record.key, record.value

    def read_value(self) -> Any:
        """The value of the next record; raises as `read_record` does."""
        return self.read_record().value

    def read_records_to_list(self) -> list[TestRecord]:
        """All records that have not been read."""
        waiting = self._driver.waiting(self._topic)
        records = list(waiting)
        waiting.clear()
        return records

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        """As `read_records_to_list`, keys and values only."""
        return [(record.key, record.value) for record in self.read_records_to_list()]

    def read_values_to_list(self) -> list[Any]:
        """As `read_records_to_list`, values only."""
        return [record.value for record in self.read_records_to_list()]

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """As `read_records_to_list`, the last value of each key; None: its last record is a tombstone.

        A key with a window is a `Windowed` here, a struct a tuple of (name, value): a dict is no key of a dict.

        Raises:
            ConfigurationError: A record has no key.
        """
        records = self.read_records_to_list()
        if any(record.key is None for record in records):
            step = "use read_values_to_list()"
            raise ConfigurationError("a record has no key", topic=self._topic, next_step=step)
        return {hashable(record.key): record.value for record in records}

    def get_queue_size(self) -> int:
        """How many records have not been read."""
        return len(self._driver.waiting(self._topic))

    def is_empty(self) -> bool:
        """Whether all records have been read."""
        return not self._driver.waiting(self._topic)


def _forward_ms(advance: timedelta) -> int:
    if advance < timedelta(0):
        raise ConfigurationError(f"time cannot go back by {-advance}", next_step="give each record its timestamp")
    return milliseconds(advance, "advance")
