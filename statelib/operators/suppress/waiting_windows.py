"""What a suppression buffer holds of windows, made of the results that their aggregation has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import spans_of
from statelib.columns.times import LAST_TIME_MS
from statelib.operators.serialized_sizes import serialized_bytes
from statelib.operators.suppress.codec import BufferedRows, encode_keys, encode_time_key, encode_time_keys
from statelib.operators.windows.stored_windows import WindowsInStore
from statelib.serdes import serialized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from statelib.operators.suppress.codec import Reference
    from statelib.operators.windows.stored_windows import WindowResults
    from statelib.stores.backend import Backend

START_BYTES = 8
"""Of a window's start, behind the bytes of its key."""


def counted(key_bytes: NDArray[np.int64], rows: pa.RecordBatch) -> NDArray[np.int64]:
    """int64, what windows count in the buffer, given the sizes of their record keys."""
    size: NDArray[np.int64] = key_bytes + START_BYTES + serialized_bytes(rows.column("value"))
    return size


def with_headers(results: WindowResults, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with the columns of ``schema``: a stored window had no headers when it went there."""
    headers = [pa.nulls(len(results), field.type) for field in schema if field.name == "headers"]
    return pa.RecordBatch.from_arrays([*results.rows.columns, *headers], schema=schema)


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
    windows = WindowsInStore.of(backend, reference.aggregation)
    after_ms = max(after_ms, reference.ended_after_ms)
    found = windows.ending(after_ms, until_ms, started_after_ms=reference.started_after_ms)
    return _in_order(_held(windows, some, schema) for some in found)


def _held(windows: WindowsInStore, some: WindowResults, schema: pa.Schema) -> BufferedRows:
    rows = with_headers(some, schema)
    return buffered(some.key, some.start, windows.grid.end_of(some.start), counted(spans_of(some.key)[2], rows), rows)


def _in_order(parts: Iterable[BufferedRows]) -> Iterator[BufferedRows]:
    """Windows in the order of the index by time, given in order of their start and key.

    There a window's start is behind the bytes of its key, so that a key may come after a longer one that begins so.
    What is behind the last key of a part waits for the next one: windows of that key, or of what it begins with; and
    all that end with time, where windows end together that have not started so.
    """
    waiting: list[BufferedRows] = []
    for part in parts:
        rows = BufferedRows.concat([*waiting, part])
        index_keys = encode_time_keys(rows.time, encode_keys(rows, suffix_words=1))
        order = np.asarray(pc.sort_indices(index_keys))
        last = encode_time_key(int(rows.time[-1]), rows.key[-1].as_py())
        waits = np.asarray(pc.greater(index_keys.take(pa.array(order)), pa.scalar(last, index_keys.type)))
        waits |= rows.time[order] >= LAST_TIME_MS
        yield rows.take(order[~waits])
        waiting = [rows.take(order[waits])]
    yield from waiting
