"""Rows of Aiven's sink connectors for object stores: JSON or Parquet with the parts of a record that were asked for.

::

    {
        "key": "k",
        "value": {"a": 1},
        "offset": 7,
        "timestamp": "2013-01-01T00:00:00Z",
        "headers": [{"key": "h", "value": "..."}],
    }

In CSV they are the columns (`statelib.ingest.formats.aiven_csv`). The partition is in the file's name
(`statelib.ingest.sources.layouts`). A row without a value is a tombstone. Without ``format.output.envelope`` rows are
the values themselves.

Source: the README of Aiven's connectors, "Data Format" (``format.output.fields``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.ingest.envelopes import placed
from statelib.ingest.formats.rows import Rows
from statelib.ingest.values.times import TimeRule, read_times

if TYPE_CHECKING:
    from collections.abc import Collection

    from statelib.ingest.envelopes.contents import Contents

PARTS = frozenset({"key", "value", "offset", "timestamp", "headers"})
"""Fields of a row that may have been asked for (``format.output.fields``)."""


def is_aiven(names: Collection[str]) -> bool:
    """Whether rows with these fields look like those of Aiven's connectors."""
    return {"value", "offset"} <= {*names} <= PARTS


def from_aiven(rows: Rows, contents: Contents) -> Rows:
    """The fields of the values, with the columns of `statelib.ingest.envelopes.placed`."""
    given, count = rows.columns, len(rows.numbers)
    names = given.schema.names
    if "value" not in names:
        if not {*names} <= PARTS:
            return _bare(rows)
        given = given.append_column("value", pa.nulls(count, pa.string()))
    fields, nothing, bad = contents.fields(given["value"], rows.numbers)
    made = {**fields, placed.TOMBSTONE: nothing}
    if "offset" in names:
        made[placed.OFFSET] = given["offset"].cast(pa.int64())
    if "key" in names:
        made[placed.KEY], bad_keys = contents.keys(given["key"], rows.numbers)
        bad = [*bad, *bad_keys]
    if "timestamp" in names:
        times = read_times(given["timestamp"], TimeRule(unit="ms"))
        made[placed.TIMESTAMP] = pa.array(times.microseconds // 1000, mask=~times.known)
    if "headers" in names and (pa.types.is_list(given["headers"].type) or pa.types.is_map(given["headers"].type)):
        made[placed.HEADERS] = placed.header_array([_pairs(one) for one in given["headers"].to_pylist()])
    return placed.without(bad, Rows(pa.RecordBatch.from_pydict(made), rows.numbers, rows.bad))


def _bare(rows: Rows) -> Rows:
    """Rows that are the values themselves (``format.output.envelope=false``)."""
    gone = pa.array(np.zeros(len(rows.numbers), np.bool_))
    return Rows(rows.columns.append_column(placed.TOMBSTONE, gone), rows.numbers, rows.bad)


def _pairs(headers: list[dict[str, Any] | tuple[str, Any]] | None) -> list[tuple[str, bytes | None]] | None:
    """In JSON a list of objects; in Parquet a map, in which a name comes once."""
    if headers is None:
        return None
    pairs = [one if isinstance(one, tuple) else (one["key"], one["value"]) for one in headers]
    return [(name, placed.as_bytes(value)) for name, value in pairs]
