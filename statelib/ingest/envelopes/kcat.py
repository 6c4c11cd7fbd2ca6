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
Keys and payloads that are no text stand there with their bytes as they are, but for control characters, which are
escaped. So they come out whole if the file is read with a character for each byte. Where kcat itself reads Avro
(``-s avro``) and cannot, there is null and an error beside it, ``payload_error`` or ``key_error``.

Sources: ``json.c`` of kcat (``fmt_msg_output_json``), ``yajl_encode.c`` of yajl (``yajl_string_encode``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.ingest.envelopes import placed
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.values.deserializers import JsonText
from statelib.serdes import StringSerde

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from statelib.ingest.envelopes.contents import Contents

BYTEWISE = "latin-1"
"""The encoding in which each byte is a character."""


def is_kcat(names: Collection[str]) -> bool:
    """Whether rows with these fields look like kcat's."""
    return {"topic", "partition", "offset", "tstype", "ts", "payload"} <= {*names}


def from_kcat(rows: Rows, contents: Contents) -> Rows:
    """The fields of the payloads, with the columns of `statelib.ingest.envelopes.placed`.

    Args:
        rows: Where keys or payloads are bytes, a character stands for each byte of text.
        contents: How they are read.
    """
    given, count = rows.columns, len(rows.numbers)

    def column(name: str, type_: pa.DataType) -> pa.Array:
        return given[name].cast(type_) if name in given.schema.names else pa.nulls(count, type_)

    def text(name: str) -> pa.Array:
        return given[name] if name in given.schema.names else pa.nulls(count, pa.string())

    if contents.reads_bytes:
        as_text = StringSerde()
        contents = replace(contents, key=contents.key or as_text, value=contents.value or JsonText())
        payload, key = _as_written(text("payload")), _as_written(text("key"))
    else:
        payload, key = text("payload"), text("key")
    fields, nothing, bad = contents.fields(payload, rows.numbers)
    key, bad_keys = contents.keys(key, rows.numbers)
    made = {
        **fields,
        placed.PARTITION: column("partition", pa.int32()),
        placed.OFFSET: column("offset", pa.int64()),
        placed.KEY: key,
        placed.TIMESTAMP: column("ts", pa.int64()),
        placed.TOMBSTONE: nothing,
    }
    if "headers" in given.schema.names and pa.types.is_nested(given["headers"].type):
        encoding = BYTEWISE if contents.reads_bytes else "utf-8"
        made[placed.HEADERS] = placed.header_array([_pairs(one, encoding) for one in given["headers"].to_pylist()])
    found = {row.row: row for row in (*_not_read(rows), *bad, *bad_keys)}
    return placed.without([*found.values()], Rows(pa.RecordBatch.from_pydict(made), rows.numbers, rows.bad))


def _not_read(rows: Rows) -> Iterator[BadRow]:
    """Messages that kcat could not read by a schema: it writes null in the place of what they have."""
    for name, field in (("payload_error", "payload"), ("key_error", "key")):
        if name in rows.columns.schema.names:
            errors = rows.columns[name]
            for row in np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False)).tolist():
                reason = f"kcat could not read it: {errors[row].as_py()}"
                yield rows.bad_row(row, field, reason)


def _as_written(text: pa.Array) -> pa.Array:
    """The bytes that kcat wrote as they are between quotes."""
    if not pa.types.is_string(text.type):
        return text
    return pa.array([None if one is None else one.encode(BYTEWISE) for one in text.to_pylist()], pa.binary())


def _pairs(
    headers: list[str | None] | dict[str, list[str | None] | None] | None, encoding: str
) -> list[tuple[str, bytes | None]] | None:
    """Names and values in turn, or by their names."""
    if headers is None:
        return None
    if isinstance(headers, dict):
        names_and_values = [one for name, of in headers.items() for value in of or () for one in (name, value)]
    else:
        names_and_values = headers
    written = [None if one is None else one.encode(encoding) for one in names_and_values]
    pairs = zip(written[::2], written[1::2], strict=False)
    return [((name or b"").decode(errors="replace"), value) for name, value in pairs]
