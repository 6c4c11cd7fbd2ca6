"""Records for the tests of topic archives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from statelib.topics.parquet.schema import HEADERS, TIMESTAMP, topic_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

VALUE = pa.struct([("id", pa.string()), ("amount", pa.float64()), ("tags", pa.list_(pa.int32()))])
SCHEMA = topic_schema(pa.string(), VALUE)


def topic_records(offsets: Sequence[int], timestamps: Sequence[int | None] | None = None) -> pa.Table:
    """Records with these offsets and timestamps (ms), some of them tombstones, some without key, some with headers."""
    times = list(offsets) if timestamps is None else list(timestamps)
    return pa.table(
        {
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(times, pa.int64()).cast(TIMESTAMP),
            "key": pa.array([None if o % 7 == 3 else f"key-{o % 5}" for o in offsets], pa.string()),
            "value": pa.array([_value(o) for o in offsets], VALUE),
            "headers": pa.array([[("n", str(o).encode())] if o % 4 == 0 else None for o in offsets], HEADERS),
        },
        schema=SCHEMA,
    )


def with_keys_encoded(records: pa.RecordBatch, *, backwards: bool = False) -> pa.RecordBatch:
    """The same records, whose keys are a dictionary that has more than they need, in one order or the other."""
    known = [f"key-{n}" for n in range(7)]
    dictionary = pa.array(known[::-1] if backwards else known)
    keys = records.column("key")
    indices = pc.index_in(keys, dictionary)
    encoded = pa.DictionaryArray.from_arrays(indices, dictionary)
    return records.set_column(records.schema.get_field_index("key"), "key", encoded)


def _value(offset: int) -> dict[str, Any] | None:
    if offset % 6 == 5:
        return None
    return {"id": f"id-{offset}", "amount": offset / 4, "tags": [offset, None] if offset % 2 else None}


def batch_sizes(rows: int) -> st.SearchStrategy[list[int]]:
    """Ways to hand over ``rows`` rows in batches."""
    return st.lists(st.integers(0, max(rows, 1)), max_size=8)


def in_batches(table: pa.Table, sizes: Sequence[int]) -> list[pa.RecordBatch]:
    """``table`` in batches of these sizes; what is left over makes the last one."""
    batches, start = [], 0
    for size in [*sizes, table.num_rows]:
        batches += table.slice(start, size).combine_chunks().to_batches() or []
        start += size
    return batches
