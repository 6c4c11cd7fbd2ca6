"""Rows of ``kcat -J``: a JSON object for each message.

::

    {
        "topic": "t",
        "partition": 0,
        "offset": 7,
        "tstype": "create",
        "ts": 1356998400000,
        "broker": 1,
        "headers": ["name", "value", ...],
        "key": "k",
        "payload": "...",
    }

The payload is text, which may be JSON, or an object where kcat decoded Avro. A message without payload is a tombstone.

Source: ``json.c`` of kcat (``fmt_msg_output_json``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.ingest.envelopes import placed
from statelib.ingest.formats.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_kcat(schema: pa.Schema) -> bool:
    """Whether rows look like kcat's."""
    return {"topic", "partition", "offset", "tstype", "ts", "payload"} <= {*schema.names}


def from_kcat(rows: Rows, types: Mapping[str, pa.DataType]) -> Rows:
    """The fields of the payloads, with the columns of `statelib.ingest.envelopes.placed`."""
    given, count = rows.columns, len(rows.numbers)

    def column(name: str, type_: pa.DataType) -> pa.Array:
        return given[name].cast(type_) if name in given.schema.names else pa.nulls(count, type_)

    payload = given["payload"] if "payload" in given.schema.names else pa.nulls(count, pa.string())
    fields, nothing, bad = placed.expanded(payload, rows.numbers, types)
    made = {
        **fields,
        placed.PARTITION: column("partition", pa.int32()),
        placed.OFFSET: column("offset", pa.int64()),
        placed.KEY: given["key"] if "key" in given.schema.names else pa.nulls(count, pa.string()),
        placed.TIMESTAMP: column("ts", pa.int64()),
        placed.TOMBSTONE: nothing,
    }
    if "headers" in given.schema.names and pa.types.is_list(given["headers"].type):
        made[placed.HEADERS] = placed.header_array([_pairs(one) for one in given["headers"].to_pylist()])
    return placed.without(bad, Rows(pa.RecordBatch.from_pydict(made), rows.numbers, rows.bad))


def _pairs(names_and_values: list[str | None] | None) -> list[tuple[str, bytes | None]] | None:
    if names_and_values is None:
        return None
    pairs = zip(names_and_values[::2], names_and_values[1::2], strict=False)
    return [(name or "", placed.as_bytes(value)) for name, value in pairs]
