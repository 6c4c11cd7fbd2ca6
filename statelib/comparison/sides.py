"""What is compared: rows with keys and values, in stretches, each row with its place.

A *place* is the number of a row on its side: ``partition << 40 | index``, ``index`` counting the side's rows of the
partition in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.versions.sink_history import Segment
from statelib.errors.kinds import InputError
from statelib.topics.parquet.schema_changes import DoesNotFitError, read_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.storage import Storage

PARTITION_BITS = 40
_BATCH_ROWS = 65_536
_NOTHING = pa.schema([("key", pa.null()), ("value", pa.null())])


class Stretch(Protocol):
    """Some rows of a partition, one after the other."""

    @property
    def partition(self) -> int:
        """The partition."""

    @property
    def start(self) -> int:
        """The index of the first row."""

    @property
    def end(self) -> int | None:
        """The index behind the last one; None: not known before they have been read."""

    def read(self, start: int, end: int | None) -> Iterator[pa.RecordBatch]:
        """The rows with indices from ``start`` to before ``end``, in order.

        Columns: ``key``, ``value``; of records ``timestamp`` and ``headers`` as well. Keys may be a dictionary's.
        """


@dataclass(frozen=True)
class Side:
    """One of the two things compared.

    Attributes:
        key: The type of the keys.
        value: The type of the values.
        own: The rows to compare.
        shared: The rows before them that both sides have, in the same order.
        has_times: Whether rows have the columns ``timestamp`` and ``headers``.
        place_of: What a place is called: of a record its topic, partition and offset.
    """

    key: pa.DataType
    value: pa.DataType
    own: tuple[Stretch, ...]
    shared: tuple[Stretch, ...] = ()
    has_times: bool = True
    place_of: Callable[[int], dict[str, object]] = lambda place: {
        "partition": place >> PARTITION_BITS,
        "index": place & ((1 << PARTITION_BITS) - 1),
    }

    def batches(self, *, shared: bool = False) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of rows, each with the place of its first row."""
        for stretch in self.shared if shared else self.own:
            yield from placed_batches(stretch, stretch.start, stretch.end)


def partition_of(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64: the partitions of rows, given their places."""
    return places >> PARTITION_BITS


def first_place(partition: int, index: int = 0) -> int:
    """The place of a row."""
    return partition << PARTITION_BITS | index


def placed_batches(stretch: Stretch, start: int, end: int | None) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of some rows of a stretch, each with the place of its first row."""
    at = start
    for batch in stretch.read(start, end):
        yield first_place(stretch.partition, at), batch
        at += len(batch)


@dataclass(frozen=True, slots=True)
class _Records:
    """Records of a segment; see `Stretch`."""

    warehouse: Storage
    segment: Segment
    start: int
    value: pa.DataType
    batch_rows: int

    @property
    def partition(self) -> int:
        return self.segment.partition

    @property
    def end(self) -> int:
        return self.start + len(self.segment)

    def read(self, start: int, end: int | None) -> Iterator[pa.RecordBatch]:
        first = self.segment.first_offset - self.start
        last = self.end if end is None else end
        archive = open_archive(self.warehouse, self.segment.topic)
        columns = ["key", "value", "timestamp", "headers"]
        at = 0
        for batch in archive.reader(
            self.segment.partition, first + start, first + last, columns=columns, batch_rows=self.batch_rows
        ):
            try:
                value = read_as(batch.column("value"), self.value)  # before a fork, values may have had other fields
            except DoesNotFitError as error:
                raise InputError(
                    f"a record does not fit the newest type of the topic: {error}",
                    topic=self.segment.topic,
                    partition=self.segment.partition,
                    offset=first + start + at + error.row,
                    next_step="compare a commit before the type changed",
                ) from None
            at += len(batch)
            yield batch.set_column(batch.schema.get_field_index("value"), "value", value)


def sides_of(
    warehouse: Storage,
    a: tuple[str, Sequence[Segment]],
    b: tuple[str, Sequence[Segment]],
    batch_rows: int = _BATCH_ROWS,
) -> tuple[Side, Side]:
    """Two histories of a sink as sides: what both begin with is shared.

    Args:
        warehouse: Where the archives are.
        a: The topic, and its history as `statelib.commits.versions.sink_history` gives it: by partition, in order.
        b: The other one.
        batch_rows: The largest batch.
    """
    common = shared_prefix(a[1], b[1])
    newest = [segments[-1].topic if segments else topic for topic, segments in (a, b)]  # a fork's own, if it has some
    archives = [open_archive_if_present(warehouse, topic) for topic in newest]
    schemas = [archive.table_schema if archive is not None else None for archive in archives]
    known = next((schema for schema in schemas if schema is not None), _NOTHING)  # a sink may have no records yet
    types = [known if schema is None else schema for schema in schemas]
    first, second = (
        _side(warehouse, segments, common, schema, batch_rows)
        for (_, segments), schema in zip((a, b), types, strict=True)
    )
    return first, second


def shared_prefix(a: Sequence[Segment], b: Sequence[Segment]) -> dict[int, int]:
    """By partition, with how many records both histories begin that are the same."""
    found = {}
    for partition in {segment.partition for segment in a}:
        runs_a, runs_b = ([run for run in side if run.partition == partition] for side in (a, b))
        shared = 0
        for one, other in zip(runs_a, runs_b, strict=False):
            if (one.topic, one.first_offset) != (other.topic, other.first_offset):
                break
            shared += min(len(one), len(other))
            if len(one) != len(other):
                break
        found[partition] = shared
    return found


def _side(
    warehouse: Storage, segments: Sequence[Segment], common: dict[int, int], schema: pa.Schema, batch_rows: int
) -> Side:
    own: list[Stretch] = []
    shared: list[Stretch] = []
    value = schema.field("value").type
    starts: dict[int, list[tuple[int, Segment]]] = {}
    for segment in segments:
        at = sum(len(before) for _, before in starts.get(segment.partition, []))
        starts.setdefault(segment.partition, []).append((at, segment))
        border = min(max(common.get(segment.partition, 0) - at, 0), len(segment))
        for first, end, into in ((0, border, shared), (border, len(segment), own)):
            if first < end:
                offset = segment.first_offset
                part = Segment(segment.topic, segment.partition, offset + first, offset + end)
                into.append(_Records(warehouse, part, at + first, value, batch_rows))

    def place_of(place: int) -> dict[str, object]:
        partition, index = place >> PARTITION_BITS, place & ((1 << PARTITION_BITS) - 1)
        at, segment = max((run for run in starts[partition] if run[0] <= index), key=lambda run: run[0])
        return {"topic": segment.topic, "partition": partition, "offset": segment.first_offset + index - at}

    return Side(schema.field("key").type, value, tuple(own), tuple(shared), place_of=place_of)


def runs_of(places: NDArray[np.int64], gap: int) -> list[NDArray[np.int64]]:
    """Places, ascending, in runs between which at least ``gap`` rows lie that nobody wants."""
    if not len(places):
        return []
    return np.split(places, np.flatnonzero(np.diff(places) > gap) + 1)
