"""Takes timestamps from records, as a source's extractor says (`statelib.topology.timestamp_extractors`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.stream_time import running_stream_time
from statelib.columns.time_columns import time_problem
from statelib.columns.times import A_SECOND, LAST_TIME_MS
from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.errors.user_lines import defined_at, place_beside
from statelib.operators.mappers.mapping import evaluate, functions_of
from statelib.records.batch import NO_TIMESTAMP
from statelib.task.partition_times import Extracted, extracted_in_turn, sees_partition_time
from statelib.topology.timestamp_extractors import PARTITION_TIME, FailOnInvalidTimestamp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.mappers.mapping import Mapper
    from statelib.task.future_records import FutureLimit
    from statelib.topology import Source, TimestampExtractor

_NEGATIVE = "negative timestamp"
_MOST = np.iinfo(np.int64).max
_NONE = pa.nulls(1, pa.string())[0]  # pa.scalar would import pandas


def extracted(
    source: Source,
    columns: pa.RecordBatch,
    *,
    partition: int,
    partition_time: int,
    future: FutureLimit | None = None,
) -> Extracted:
    """The timestamps that a source's extractor gives.

    A global table that is complete at the start has those of its topic: Kafka Streams never asks its extractor
    (``GlobalStateUpdateTask``).

    Args:
        source: The source.
        columns: The records of one partition in order: ``key``, ``value``, ``headers``, ``timestamp``, ``offset``.
        partition: The partition.
        partition_time: Its largest timestamp before them, `NO_TIMESTAMP` if there is none.
        future: Tells the records that are no part of the partition's time; None: there are none.

    Raises:
        ConfigurationError: The extractor's mapper fails, or gives something that is no time. It names the record.
    """
    extractor = FailOnInvalidTimestamp() if source.reading == "bootstrap" else source.consumed.timestamp_extractor
    offset = columns.column("offset").to_numpy()
    if (of := extractor.mapper) is None or not sees_partition_time(of):
        given = columns.column("timestamp").cast(pa.int64()) if of is None else _given(of, source, columns, partition)
        return _judged(given, extractor, source, offset, partition_time, future)

    def extract(start: int, partition_times: NDArray[np.int64]) -> Extracted:
        part = columns.slice(start, len(partition_times)).append_column(PARTITION_TIME, pa.array(partition_times))
        before = int(partition_times[0]) if len(partition_times) else partition_time
        return _judged(
            _given(of, source, part, partition), extractor, source, offset[start : start + len(part)], before, future
        )

    return extracted_in_turn(extract, offset, partition_time, future)


def _judged(
    given: pa.Array,
    extractor: TimestampExtractor,
    source: Source,
    offset: NDArray[np.int64],
    partition_time: int,
    future: FutureLimit | None,
) -> Extracted:
    """What becomes of records of which a timestamp is ``given``."""
    if _is_plain(given):
        return Extracted(given.to_numpy())
    times, reasons = _milliseconds(given, source.name, extractor.mapper)
    invalid = valid_of(reasons)
    times = np.where(invalid, NO_TIMESTAMP, times)
    match extractor.on_invalid:
        case "skip":
            return Extracted(times, invalid)
        case "skip-negative":
            skipped = np.asarray(pc.fill_null(pc.equal(reasons, _NEGATIVE), False))
            return Extracted(times, skipped, pc.if_else(pa.array(skipped), None, reasons))
        case "partition-time":
            later = None if future is None else future.later(times, offset)
            sane = times if later is None else np.where(later, NO_TIMESTAMP, times)
            times = np.where(invalid, running_stream_time(sane, partition_time), times)
            unknown = pa.array(times == NO_TIMESTAMP)
            why = pc.binary_join_element_wise(reasons, "before the partition's first valid timestamp", ", ")
            return Extracted(times, None, pc.if_else(unknown, why, None))
        case _:
            return Extracted(times, None, reasons)


def _is_plain(given: pa.Array) -> bool:
    """Whether all are timestamps that can be used, as mostly."""
    if given.type != pa.int64() or given.null_count:
        return False
    times = given.to_numpy()
    return len(times) == 0 or bool(times.min() >= 0 and times.max() <= LAST_TIME_MS)


def _milliseconds(given: pa.Array, node: str, mapper: Mapper | None) -> tuple[NDArray[np.int64], pa.Array]:
    """int64 ms, any number where there is none; and string, what is wrong with each, null if nothing is."""
    of = given.type
    if pa.types.is_date(of):
        given = given.cast(pa.timestamp("s" if pa.types.is_date32(of) else "ms"))
        of = given.type
    reasons = pc.if_else(given.is_null(), "no timestamp", _NONE)
    if pa.types.is_timestamp(of):
        number, a_second = given.cast(pa.int64()).fill_null(0).to_numpy(), A_SECOND[of.unit]
        # Rounded down: what is before 1970 stays so.
        times = _times_1000(number) if of.unit == "s" else number // (a_second // 1_000)
    elif pa.types.is_integer(of):
        numbers = given.fill_null(0).to_numpy()
        times = (
            np.minimum(numbers, np.uint64(_MOST)).astype(np.int64) if of == pa.uint64() else numbers.astype(np.int64)
        )
    elif pa.types.is_floating(of):
        floats = given.fill_null(0).to_numpy().astype(np.float64)
        whole = floats == np.floor(floats)  # not NaN, and no fraction
        text = pc.binary_join_element_wise(
            "the timestamp is no whole number of milliseconds", given.cast(pa.string()), ": "
        )
        reasons = pc.coalesce(reasons, pc.if_else(pa.array(whole), _NONE, text))
        times = np.clip(np.where(whole, floats, 0), -1, LAST_TIME_MS + 1).astype(np.int64)
    elif pa.types.is_null(of):
        times = np.full(len(given), NO_TIMESTAMP)
    else:
        raise ConfigurationError(
            f"a timestamp extractor gave {of}, which is no time",
            node=node,
            **defined_at(functions_of(mapper)),
            next_step="give whole milliseconds since 1970, timestamps or dates",
        )
    reasons = pc.coalesce(reasons, pc.if_else(pa.array(times < 0), _NEGATIVE, _NONE))
    return times, pc.coalesce(reasons, _too_late(times))


def _too_late(times: NDArray[np.int64]) -> pa.Array:
    """string: what is wrong with the times that no topic can hold, null for the others."""
    reasons = np.full(len(times), None, np.object_)
    rows = np.flatnonzero(times > LAST_TIME_MS)
    reasons[rows] = [
        f"the timestamp is later than a topic can hold: {time_problem(time)}" for time in times[rows].tolist()
    ]
    return pa.array(reasons, pa.string())


def _times_1000(seconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """As far as numbers go."""
    most = _MOST // 1_000
    return np.clip(seconds, -most, most) * 1_000


def _given(mapper: Mapper, source: Source, columns: pa.RecordBatch, partition: int) -> pa.Array:
    """What a mapper gives."""
    names = [name for name in ("key", "value", "headers", PARTITION_TIME) if name in columns.schema.names]
    stored = columns.column("timestamp").cast(pa.int64())
    seen = pa.RecordBatch.from_pydict({**{name: columns.column(name) for name in names}, "timestamp": stored})
    try:
        return evaluate(mapper, seen, source.name, np.arange(len(seen)))
    except HindstreamError as error:
        where = dict(error.place)
        if error.sequence is not None:
            offset = columns.column("offset")[error.sequence].as_py()
            where |= {"topic": source.topic, "partition": partition, "offset": offset}
        if source.line is not None and "file" not in error.place:
            where |= place_beside(source.line, error)
        raise error.placed(**where) from error
