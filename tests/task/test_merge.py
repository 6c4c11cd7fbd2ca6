"""The merged order of a task's sources, against a record-at-a-time model of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.records.key_column import KeyColumn
from statelib.task.merge import Merged, TaskClock, merge, merged_records
from statelib.task.source_records import HEADERS_TYPE, Records


def records(timestamps: list[int]) -> Records:
    """Records with their offsets as keys."""
    timestamp = np.array(timestamps, np.int64)
    offset = np.arange(len(timestamps))
    key = pa.array(offset)
    order_time = np.maximum.accumulate(timestamp) if len(timestamp) else timestamp
    return Records(KeyColumn(key), key, timestamp, offset, pa.nulls(len(timestamp), HEADERS_TYPE), order_time)


def chunked(whole: Records, sizes: list[int]) -> list[Records]:
    """Cuts ``whole`` into chunks of the given sizes, over and over."""
    chunks, start, turn = [], 0, 0
    while start < len(whole):
        end = min(len(whole), start + sizes[turn % len(sizes)])
        chunks.append(whole.slice(start, end))
        start, turn = end, turn + 1
    return chunks


@dataclass
class Head:
    """One source of the model: what Kafka Streams sees of a partition."""

    timestamps: list[int]
    time: int = -1
    next: int = 0


def model(sources: list[list[int]]) -> list[tuple[int, int]]:
    """(source, offset) in the order of taking up: the lowest partition time first, earlier sources first."""
    heads = [Head(timestamps) for timestamps in sources]
    order = []
    while True:
        open_heads = [
            (max(head.time, head.timestamps[head.next]), index)
            for index, head in enumerate(heads)
            if head.next < len(head.timestamps)
        ]
        if not open_heads:
            return order
        time, index = min(open_heads)
        order.append((index, heads[index].next))
        heads[index].time, heads[index].next = time, heads[index].next + 1


def order_time(merged: Merged) -> list[int]:
    """Of all places."""
    return merged.order_time_of(np.arange(len(merged))).tolist()


SOURCES = st.lists(st.lists(st.integers(0, 30), max_size=20), min_size=1, max_size=4)
SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=3)


@given(SOURCES, SIZES)
def test_order_is_that_of_the_model_whatever_the_chunks(sources: list[list[int]], sizes: list[int]) -> None:
    order: list[tuple[int, int]] = []
    for merged in merge([chunked(records(timestamps), sizes) for timestamps in sources]):
        places: dict[int, tuple[int, int]] = {}
        for index, (part, rank) in enumerate(zip(merged.parts, merged.rank, strict=True)):
            if part is not None:
                places.update({int(r): (index, int(o)) for r, o in zip(rank, part.offset, strict=True)})
        assert sorted(places) == list(range(len(merged)))
        order += [places[rank] for rank in sorted(places)]
    assert order == model(sources)


@given(SOURCES, SIZES, st.integers(1, 9))
def test_a_run_is_cut_in_order(sources: list[list[int]], sizes: list[int], count: int) -> None:
    for merged in merge([chunked(records(timestamps), sizes) for timestamps in sources]):
        first, others = merged.cut(min(count, len(merged)))
        assert len(first) == min(count, len(merged))
        assert [*order_time(first), *order_time(others)] == order_time(merged)
        assert merged.last_order_time == order_time(merged)[-1]
        for piece in (first, others):
            assert sorted(np.concatenate(piece.rank)) == list(range(len(piece)))
        for whole, *pieces in zip(merged.parts, first.parts, others.parts, strict=True):
            offsets = [int(offset) for part in pieces if part is not None for offset in part.offset]
            assert offsets == ([] if whole is None else whole.offset.tolist())


@given(SOURCES, SIZES)
def test_merged_records_are_the_rows_in_that_order(sources: list[list[int]], sizes: list[int]) -> None:
    parts = list(merged_records([chunked(records(timestamps), sizes) for timestamps in sources]))
    timestamps = [int(t) for part in parts for t in part.timestamp]
    assert timestamps == [sources[source][offset] for source, offset in model(sources)]


@given(SOURCES, SIZES, st.integers(-1, 40), st.booleans())
def test_stream_time_is_the_largest_timestamp_taken_up(
    sources: list[list[int]], sizes: list[int], before: int, is_order_time: bool
) -> None:
    clock = TaskClock(before, is_order_time=is_order_time)
    times: list[int] = []
    sequences: list[int] = []
    for merged in merge([chunked(records(timestamps), sizes) for timestamps in sources]):
        uptake = clock.uptake(merged, partition=3)
        times += uptake.stream_time.tolist()
        sequences.append(uptake.first_sequence)
        assert set(uptake.partition.tolist()) == {3}
    expected, running = [], before
    for source, offset in model(sources):
        running = max(running, sources[source][offset])
        expected.append(running)
    assert times == expected
    assert sequences == sorted(sequences)
    assert clock.stream_time == running
    assert clock.next_sequence == len(times)
