"""What custom processors get: records as Python objects, and what their task knows at each visit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from statelib.operators.mappers.python_values import items_of, python_keys
from statelib.operators.processors.definition import FixedKeyRecord, Record, RecordMetadata
from statelib.operators.processors.forwarded import headers_of
from statelib.records.batch import NO_OFFSET, NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.records.batch import Batch, Uptake


class Visit(NamedTuple):
    """What a task knows while a processor is called.

    Attributes:
        sequence: Of the source record that caused the call.
        stream_time: The task's, ms.
        metadata: The source record's; None: it has none, or a scheduled call is made.
    """

    sequence: int
    stream_time: int
    metadata: RecordMetadata | None


Deliver: TypeAlias = Callable[[FixedKeyRecord, int, Visit], None]
"""Takes a record that is forwarded, its addressee (`statelib.operators.processors.forwarded`), and the visit."""


class Visits:
    """The visits of one uptake, in order.

    Args:
        uptake: The uptake.
        topics: The task's source topics, by ``Uptake.source``.
    """

    def __init__(self, uptake: Uptake, topics: Sequence[str]) -> None:
        self._uptake = uptake
        self._topics = topics
        self._first = uptake.first_sequence
        self._stream_time: list[int] = uptake.stream_time.tolist()
        self._columns = (uptake.source.tolist(), uptake.partition.tolist(), uptake.offset.tolist())
        self._row = 0

    @property
    def first_time_ms(self) -> int | None:
        """The stream time of the first record that has one."""
        return next((time for time in self._stream_time if time != NO_TIMESTAMP), None)

    def at(self, row: int) -> Visit:
        """The visit with the record of a row."""
        source, partition, offset = self._columns
        metadata = None
        if offset[row] != NO_OFFSET:
            topic = self._topics[source[row]] if self._topics else ""
            metadata = RecordMetadata(topic, partition[row], offset[row])
        self._row = row
        return Visit(self._first + row, self._stream_time[row], metadata)

    def call_at(self, row: int) -> Visit:
        """The scheduled calls of a row."""
        self._row = row
        return Visit(self._first + row, self._stream_time[row], None)

    def due_at(self, due_ms: int | None) -> int | None:
        """The row, from that of the last visit on, behind whose record calls are made that are due at a time.

        None: they come later.
        """
        if due_ms is None:
            return None
        row = max(int(np.searchsorted(self._uptake.stream_time, due_ms)), self._row)
        return self._uptake.end_of(row) if row < len(self._stream_time) else None


def records_of(batch: Batch, *, fixed_key: bool) -> Iterator[FixedKeyRecord]:
    """The records of a batch; ``fixed_key``: as a `FixedKeyProcessor` gets them."""
    kind = FixedKeyRecord if fixed_key else Record
    headers = headers_of(batch.headers, len(batch))
    columns = (python_keys(batch.keys), items_of(batch.value), batch.timestamp.tolist(), headers)
    return (kind(*row) for row in zip(*columns, strict=True))
