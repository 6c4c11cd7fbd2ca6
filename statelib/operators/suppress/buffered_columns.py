"""The columns of a row that suppress holds back: in memory, and in the store.

Both have ``timestamp``, ``value`` and, if there are any, ``headers``. Tables that say so have ``old``, the value that
the row replaces upstream. In memory the row that was buffered first tells by it what is known downstream; the store has
one row a key, and ``prior`` for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.records.batch import Batch

_PRIOR = "prior"


def rows_of(batch: Batch) -> pa.RecordBatch:
    """What the buffer has in memory of records."""
    columns = {"timestamp": pa.array(batch.timestamp), "value": batch.value}
    if batch.prior is not None:
        columns["old"] = batch.prior
    if batch.headers is not None:
        columns["headers"] = batch.headers
    return pa.RecordBatch.from_pydict(columns)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns in the store, given those in memory."""
    return schema.append(schema.field("old").with_name(_PRIOR)) if "old" in schema.names else schema


def to_store(rows: pa.RecordBatch, first_rows: Callable[[], pa.RecordBatch], *, keeps_old: bool) -> pa.RecordBatch:
    """Rows as they are stored.

    Args:
        rows: The latest one of each key.
        first_rows: Gives the one of each key that was buffered first.
        keeps_old: Whether anybody will ask for more ``old`` values than the first one of each key.
    """
    if "old" not in rows.schema.names:
        return rows
    if not keeps_old:
        index = rows.schema.get_field_index("old")
        rows = rows.set_column(index, rows.schema.field(index), pa.nulls(len(rows), rows.column(index).type))
    return rows.append_column(_PRIOR, first_rows().column("old"))


def from_store(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Stored rows as in memory, and of each key a row that tells what is known downstream; None if they do not say."""
    names = [name for name in rows.schema.names if name != _PRIOR]
    latest = rows.select(names)
    if _PRIOR not in rows.schema.names:
        return latest, None
    nothing = {name: pa.nulls(len(rows), rows.schema.field(name).type) for name in names}
    return latest, pa.RecordBatch.from_pydict({**nothing, "old": rows.column(_PRIOR)}, schema=latest.schema)
