"""What the application and the job have written, compared record for record.

Records of a key are compared in their order, so of each key one sequence with the other. The order of records of
several keys is told apart from that: readers of a topic see it, but in Kafka it depends on the number of partitions.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from hindstream.porting.formats import AS_BYTES
from statelib.columns.time_columns import python_values
from statelib.serdes.json import JsonSerde
from statelib.testing.records import TestRecord, hashable, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from hindstream.porting.formats import Formats, SinkFormat
    from hindstream.porting.protocol import Written
    from statelib.comparison.fields import Rules


_MOST_ALIGNED = 1_000
"""Of more records of a key than this that differ, the n-th is compared with the n-th."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two records at one place among those of their key, which differ.

    Attributes:
        theirs: The application's; None: it has none there.
        ours: The job's.
        fields: Where both are there, what differs: ``value.flights``, ``timestamp``, ``headers``.
        cause: The place of the record at which the application wrote its one; None: it has none.
    """

    theirs: TestRecord | None
    ours: TestRecord | None
    fields: tuple[str, ...]
    cause: int | None = None

    @property
    def key(self) -> Any:
        """The key of both."""
        of = self.theirs or self.ours
        return None if of is None else of.key


@dataclass(frozen=True, slots=True)
class SinkComparison:
    """What became of one topic.

    Attributes:
        topic: In the job; of one that only the application writes, its own name.
        theirs: What the application wrote, in order.
        ours: What the job wrote.
        causes: By record of ``theirs``, at which record it was written.
        pairs: What differs, in the order of ``theirs``, and then what is only in ``ours``.
    """

    topic: str
    theirs: tuple[TestRecord, ...]
    ours: tuple[TestRecord, ...]
    causes: tuple[int, ...]
    pairs: tuple[Pair, ...]

    @property
    def compared(self) -> int:
        """How many records there are on the side that has more."""
        return max(len(self.theirs), len(self.ours))

    @property
    def only_order(self) -> bool:
        """Whether every key has its records, but those of several keys are in another order."""
        theirs, ours = ([hashable(record.key) for record in side] for side in (self.theirs, self.ours))
        return not self.pairs and theirs != ours


class Comparing:
    """Compares what was written; see the module's docstring.

    Args:
        formats: The application's bytes.
        rules: What counts as equal.
    """

    def __init__(self, formats: Formats, rules: Rules) -> None:
        self._formats = formats
        self._rules = rules
        self._known: dict[str, SinkFormat] = {}

    def compare(self, written: Sequence[Written], sinks: Mapping[str, pa.Table]) -> tuple[SinkComparison, ...]:
        """By topic, those of the job first, in its order.

        Args:
            written: By the application.
            sinks: By the job.

        Raises:
            InputError: The application's bytes cannot be read.
            ConfigurationError: Nobody knows how to read them.
        """
        of_topic: dict[str, list[Written]] = {}
        for record in written:
            of_topic.setdefault(record.topic, []).append(record)
        for topic, table in sinks.items():
            types = (table.schema.field("key").type, table.schema.field("value").type)
            self._known[topic] = self._formats.sink_format(topic, *types)
        found = []
        for topic, format_ in self._known.items():  # also where the job has written to it in another run
            ours = records_of(sinks[topic], 0) if topic in sinks else []
            found.append(self._sink(topic, format_, of_topic.pop(self._formats.name(topic), []), ours))
        return (*found, *(self._sink(topic, AS_BYTES, theirs, []) for topic, theirs in of_topic.items()))

    def _sink(
        self, topic: str, format_: SinkFormat, written: Sequence[Written], ours: Sequence[TestRecord]
    ) -> SinkComparison:
        theirs = _read(format_, written)
        causes = tuple(record.cause for record in written)
        return SinkComparison(topic, tuple(theirs), tuple(ours), causes, tuple(self._pairs(theirs, causes, ours)))

    def _pairs(self, theirs: Sequence[TestRecord], causes: Sequence[int], ours: Sequence[TestRecord]) -> Iterator[Pair]:
        own: dict[Any, list[TestRecord]] = {}
        for record in ours:
            own.setdefault(hashable(record.key), []).append(record)
        of_key: dict[Any, list[int]] = {}
        for number, record in enumerate(theirs):
            of_key.setdefault(hashable(record.key), []).append(number)
        found: list[tuple[int, Pair]] = []
        for key, numbers in of_key.items():
            for at, other in self._aligned([(n, theirs[n]) for n in numbers], own.pop(key, [])):
                one = None if at is None else theirs[at]
                pair = Pair(one, other, self._differing(one, other), None if at is None else causes[at])
                if pair.fields or one is None or other is None:
                    found.append((len(theirs) if at is None else at, pair))
        yield from (pair for _, pair in sorted(found, key=lambda each: each[0]))
        yield from (Pair(None, record, ()) for records in own.values() for record in records)

    def _aligned(
        self, theirs: Sequence[tuple[int, TestRecord]], ours: Sequence[TestRecord]
    ) -> Iterator[tuple[int | None, TestRecord | None]]:
        """Records that stand for each other, as far as they differ, or may: numbers of theirs, and ours."""
        start, end, other_end = self._middle([record for _, record in theirs], ours)
        numbers, others = [n for n, _ in theirs[start:end]], ours[start:other_end]
        blocks: list[tuple[str, int, int, int, int]] = [("replace", 0, len(numbers), 0, len(others))]
        if max(len(numbers), len(others)) <= _MOST_ALIGNED:
            one, other = [repr(record) for _, record in theirs[start:end]], [repr(record) for record in others]
            blocks = [*SequenceMatcher(None, one, other, autojunk=False).get_opcodes()]
        for what, first, last, other_first, other_last in blocks:
            if what != "equal":
                yield from zip_longest(numbers[first:last], others[other_first:other_last])

    def _middle(self, theirs: Sequence[TestRecord], ours: Sequence[TestRecord]) -> tuple[int, int, int]:
        """Where two sequences begin to differ, and where both have stopped to do so."""
        start, least = 0, min(len(theirs), len(ours))
        while start < least and not self._differing(theirs[start], ours[start]):
            start += 1
        end, other_end = len(theirs), len(ours)
        while end > start and other_end > start and not self._differing(theirs[end - 1], ours[other_end - 1]):
            end, other_end = end - 1, other_end - 1
        return start, end, other_end

    def _differing(self, theirs: TestRecord | None, ours: TestRecord | None) -> tuple[str, ...]:
        """The fields in which two records differ."""
        if theirs is None or ours is None or theirs == ours:
            return ()
        parts = [
            ("value", theirs.value, ours.value),
            ("timestamp", theirs.timestamp_ms, ours.timestamp_ms),
            ("headers", theirs.headers, ours.headers),
        ]
        return tuple(path for name, one, other in parts for path in self._fields(name, one, other))

    def _fields(self, path: str, one: Any, other: Any) -> Iterator[str]:
        if self._rules.ignores(path) or one is other:
            return
        if isinstance(one, dict) and isinstance(other, dict):
            for name in dict.fromkeys([*one, *other]):  # what is not there is null
                yield from self._fields(f"{path}.{name}", one.get(name), other.get(name))
        elif not self._is_equal(path, one, other):
            yield path

    def _is_equal(self, path: str, one: Any, other: Any) -> bool:
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and not any(
                True for a, b in zip(one, other, strict=True) for _ in self._fields(path, a, b)
            )
        if isinstance(one, bool) != isinstance(other, bool):
            return False
        numbers = (int, float)
        if isinstance(one, numbers) and isinstance(other, numbers):
            tolerance = self._rules.tolerances.get(path, self._rules.tolerance)
            both_nan = math.isnan(one) and math.isnan(other)
            return one == other or both_nan or (tolerance is not None and abs(one - other) <= tolerance)
        return bool(one == other)


def _read(format_: SinkFormat, written: Sequence[Written]) -> list[TestRecord]:
    keys, values = format_.read([record.key for record in written], [record.value for record in written])
    records = zip(python_values(keys), python_values(values), written, strict=True)
    return [
        TestRecord(
            _whole(format_.key, key, record.key),
            _whole(format_.value, value, record.value),
            record.timestamp,
            0,
            record.headers,
        )
        for key, value, record in records
    ]


def _whole(serde: object, value: Any, raw: bytes | None) -> Any:
    """A value with the fields that its JSON has beside those that are read of it."""
    if isinstance(serde, JsonSerde) and serde.registry is None and raw is not None:
        return _with_others(value, json.loads(raw))
    return value


def _with_others(value: Any, document: Any) -> Any:
    if isinstance(value, dict) and isinstance(document, dict):
        return {name: _with_others(value[name], document.get(name)) for name in value} | {
            name: other for name, other in document.items() if name not in value
        }
    if isinstance(value, list) and isinstance(document, list) and len(value) == len(document):
        return [_with_others(item, other) for item, other in zip(value, document, strict=True)]
    return value
