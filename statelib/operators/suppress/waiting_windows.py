"""What a suppression buffer holds of windows, made of the results that their aggregation has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import spans_of
from statelib.columns.times import LAST_TIME_MS
from statelib.operators.serialized_sizes import serialized_bytes
from statelib.operators.sessions.stored_sessions import SessionsInStore
from statelib.operators.suppress.codec import BufferedRows, encode_keys, encode_time_key, encode_time_keys
from statelib.operators.windows.definition import SessionWindows, windows_of
from statelib.operators.windows.stored_windows import WindowsInStore, are_forwarded
from statelib.serdes import serialized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from statelib.operators.suppress.codec import Reference
    from statelib.operators.windows.stored_windows import StoredWindows, WindowResults
    from statelib.stores.backend import Backend

START_BYTES = 8
"""Of a window's start, behind the bytes of its key."""

_AT_ONCE = 1 << 14


def stored_windows(backend: Backend, aggregation: Mapping[str, Any]) -> StoredWindows:
    """The windows of an aggregation that does not run."""
    if isinstance(windows_of(aggregation), SessionWindows):
        return SessionsInStore.of(backend, aggregation)
    return WindowsInStore.of(backend, aggregation)


def suffix_words_of(reference: Reference) -> int:
    """How many integers follow the key's bytes in the keys of what it stands for."""
    return windows_of(reference.aggregation).key_suffix_words


def counted(key_bytes: NDArray[np.int64], rows: pa.RecordBatch, suffix_words: int = 1) -> NDArray[np.int64]:
    """int64, what windows count in the buffer, given the sizes of their record keys."""
    size: NDArray[np.int64] = key_bytes + START_BYTES * suffix_words + serialized_bytes(rows.column("value"))
    return size


def as_buffered(results: WindowResults, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with the columns of ``schema``: a stored window had no headers when it went there, and replaced nothing."""
    there = results.rows.schema.names
    columns = [results.rows[name] if name in there else pa.nulls(len(results), kind) for name, kind in _fields(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _fields(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    return ((field.name, field.type) for field in schema)


def buffered(
    key: pa.Array,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    counted_bytes: NDArray[np.int64],
    rows: pa.RecordBatch,
) -> BufferedRows:
    """Windows as the store has them; ``key``: serialised record keys, ``start`` and ``end``: int64, ms."""
    row = serialized(rows.to_struct_array())
    return BufferedRows(key, start, end, time=end, updated=end, counted_bytes=counted_bytes, row=row)


def held_windows(some: WindowResults, schema: pa.Schema, suffix_words: int) -> BufferedRows:
    """What the buffer would hold of windows; ``schema``: of a row."""
    rows = as_buffered(some, schema)
    counted_bytes = counted(spans_of(some.key)[2], rows, suffix_words)
    return buffered(some.key, some.start, some.end, counted_bytes, rows)


def referred_windows(
    backend: Backend, reference: Reference, schema: pa.Schema, after_ms: int = -1, until_ms: int | None = None
) -> Iterator[BufferedRows]:
    """What a reference stands for, the oldest first, some thousand at a time.

    Args:
        backend: Where the store of the aggregation is.
        reference: To it.
        schema: Of a row of the buffer.
        after_ms: Only windows that end later, ms.
        until_ms: And until then, ms; None: any time.
    """
    windows = stored_windows(backend, reference.aggregation)
    after_ms = max(after_ms, reference.ended_after_ms)
    if are_forwarded(reference.aggregation) or not isinstance(windows, WindowsInStore):
        found = windows.ending(after_ms, until_ms)
    else:
        found = windows.closing(after_ms, until_ms, started_after_ms=reference.started_after_ms)
    parts = (held_windows(some, schema, windows.suffix_words) for some in found if len(some))
    return _in_order(parts, windows.suffix_words)


def index_keys(rows: BufferedRows, suffix_words: int) -> pa.Array:
    """Their keys in the index by time."""
    return encode_time_keys(rows.time, encode_keys(rows, suffix_words))


def _in_order(parts: Iterable[BufferedRows], suffix_words: int) -> Iterator[BufferedRows]:
    """Windows in the order of the index by time, given by start and key, sessions by end and start.

    There a window's bounds are behind the bytes of its key, so that a key may come after a longer one that begins so.
    What is behind the last key of a part waits for the next one: windows of that key, or of what it begins with; and
    where windows end together that have not started so, which all sessions may and others at the end of time, all that
    end last.
    """
    waiting: list[BufferedRows] = []
    for part in parts:
        waiting.append(part)
        newest = int(part.time[-1])
        if suffix_words > 1 and int(waiting[0].time[0]) == newest:  # all end together: put in order once
            continue
        rows = BufferedRows.concat(waiting)
        keys = index_keys(rows, suffix_words)
        order = np.asarray(pc.sort_indices(keys))
        if suffix_words > 1:
            waits = rows.time[order] >= newest
        else:
            last = encode_time_key(newest, rows.key[-1].as_py())
            waits = np.asarray(pc.greater(keys.take(pa.array(order)), pa.scalar(last, keys.type)))
            waits |= rows.time[order] >= LAST_TIME_MS
        yield from _some_at_a_time(rows, order[~waits])
        waiting = [rows.take(order[waits])] if waits.any() else []
    if waiting:
        rows = BufferedRows.concat(waiting)
        yield from _some_at_a_time(rows, np.asarray(pc.sort_indices(index_keys(rows, suffix_words))))


def _some_at_a_time(rows: BufferedRows, order: NDArray[np.int64]) -> Iterator[BufferedRows]:
    return (rows.take(order[first : first + _AT_ONCE]) for first in range(0, len(order), _AT_ONCE))


def merged(own: Iterable[BufferedRows], referred: Iterable[BufferedRows], suffix_words: int) -> Iterator[BufferedRows]:
    """Rows of both, each given in the order of the index by time, in this order; of the same window those of ``own``.

    A part waits until the other side has come as far.
    """
    sides = [(rows for rows in side if len(rows)) for side in (own, referred)]
    heads = [next(side, None) for side in sides]
    while (first := heads[0]) is not None and (second := heads[1]) is not None:
        rows = first, second
        keys = [index_keys(of, suffix_words).cast(pa.large_binary()) for of in rows]
        end = min(of[-1].as_py() for of in keys)
        counts = [int(pc.sum(pc.less_equal(of, pa.scalar(end, of.type))).as_py()) for of in keys]
        here = pa.concat_arrays([of.slice(0, count) for of, count in zip(keys, counts, strict=True)])
        some = BufferedRows.concat([of.take(np.arange(count)) for of, count in zip(rows, counts, strict=True)])
        order = np.asarray(pc.array_sort_indices(here))
        order = order[_firsts(here, order, counts[0])]
        yield some.take(order)
        heads = [
            of.take(np.arange(count, len(of))) if count < len(of) else next(side, None)
            for of, count, side in zip(rows, counts, sides, strict=True)
        ]
    for head, side in zip(heads, sides, strict=True):
        if head is not None:
            yield head
            yield from side


def _firsts(keys: pa.Array, order: NDArray[np.int64], own: int) -> NDArray[np.bool_]:
    """bool, of keys in ``order``: all but those of the second side that the first one has, whose keys are ``own``."""
    in_order = keys.take(pa.array(order))
    is_again = np.zeros(len(order), np.bool_)
    is_again[1:] = np.asarray(pc.equal(in_order.slice(1), in_order.slice(0, len(order) - 1)))
    is_before = np.append(is_again[1:], False)
    firsts: NDArray[np.bool_] = ~(is_again | is_before) | (order < own)
    return firsts
