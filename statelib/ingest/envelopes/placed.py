"""Columns that a row has beside the fields of its value, where the files tell more of a record than that.

==============  ==============  =======================================================
column          type            is
==============  ==============  =======================================================
``@partition``  int32           the record's partition
``@offset``     int64           its offset there
``@first``      int64           the offset at which its file begins, where only that is known: ``@offset`` is then the
                                least that the record can have
``@key``        any             its key
``@timestamp``  int64           its timestamp, in milliseconds since 1970
``@headers``    as archives'    its headers
``@tombstone``  bool            whether its value is null, whatever the other columns say
``@key-bytes``  binary          its key as it was in Kafka, where that has been read: its bytes decide the partition
``@file:...``   any             what its file, or a folder of that, tells of all its rows
==============  ==============  =======================================================
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.ingest.formats.json import JsonRows
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.values.fields import OF_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from statelib.ingest.sources.files import SourceFile

PARTITION, OFFSET, FIRST, KEY = "@partition", "@offset", "@first", "@key"
TIMESTAMP, HEADERS, TOMBSTONE = "@timestamp", "@headers", "@tombstone"
KEY_BYTES = "@key-bytes"

OF_RECORDS = frozenset({PARTITION, OFFSET, FIRST, KEY, TIMESTAMP, HEADERS, TOMBSTONE})
"""Columns that only layouts and envelopes give: where one of them is, all other fields are those of the value."""

ONLY_FIELD = "value"
"""The field of values that are no objects."""


def is_beside(name: str) -> bool:
    """Whether a column is beside the fields of values."""
    return name in OF_RECORDS or name == KEY_BYTES or name.startswith(OF_FILE)


def expanded(
    value: pa.Array, numbers: NDArray[np.int64], types: Mapping[str, pa.DataType]
) -> tuple[dict[str, pa.Array], pa.Array, list[BadRow]]:
    """The fields of values: those of a struct, or of JSON text; else one field, `ONLY_FIELD`.

    Args:
        value: Structs, text, or anything else.
        numbers: int64: of their rows.
        types: Of fields of JSON.

    Returns:
        The fields, bool: whether there is no value, and rows whose text is no JSON although others' is.
    """
    nothing = value.is_null()
    if pa.types.is_struct(value.type):
        return dict(zip((field.name for field in value.type), value.flatten(), strict=True)), nothing, []
    if pa.types.is_string(value.type) and _is_json(value):
        fields, bad = _from_json(value, numbers, types)
        return fields, nothing, bad
    return {ONLY_FIELD: value}, nothing, []


def without(bad: list[BadRow], rows: Rows) -> Rows:
    """The same with some rows as bad ones."""
    if not bad:
        return rows
    good = ~np.isin(rows.numbers, [row.row for row in bad])
    return replace(rows, columns=rows.columns.filter(pa.array(good)), numbers=rows.numbers[good], bad=(*rows.bad, *bad))


def at_place(file: SourceFile, rows: Rows) -> Rows:
    """With partition and offsets by the file's name, where the rows do not have them."""
    if file.place is None:
        return rows
    count = len(rows.numbers)
    columns = rows.columns.append_column(PARTITION, pa.array(np.full(count, file.place.partition, np.int32)))
    if OFFSET not in columns.schema.names:
        first = np.full(count, file.place.first_offset, np.int64)
        columns = columns.append_column(OFFSET, pa.array(first + rows.numbers - 1))
        columns = columns.append_column(FIRST, pa.array(first))
    return Rows(columns, rows.numbers, rows.bad)


def _is_json(text: pa.StringArray) -> bool:
    """Whether nearly all values are objects in JSON by their first character."""
    filled = text.drop_null()
    return len(filled) > 0 and pc.mean(pc.starts_with(pc.utf8_ltrim_whitespace(filled), "{")).as_py() > 0.5  # noqa: PLR2004


def _from_json(
    text: pa.StringArray, numbers: NDArray[np.int64], types: Mapping[str, pa.DataType]
) -> tuple[dict[str, pa.Array], list[BadRow]]:
    lines = b"".join(_line(value) for value in text.to_pylist())
    rows = JsonRows(types).read(lines, 1)
    where = np.full(len(text), -1, np.int64)
    where[rows.numbers - 1] = np.arange(len(rows.numbers))
    taken = pa.array(where, mask=where < 0)
    fields = {name: rows.columns[name].take(taken) for name in rows.columns.schema.names}
    bad = [BadRow(int(numbers[row.row - 1]), row.field, row.reason, row.raw) for row in rows.bad]
    return fields, bad


def _line(value: str | None) -> bytes:
    """A value on a line of its own; strings in JSON hold no line breaks as they are."""
    return b"\n" if value is None else value.replace("\n", " ").replace("\r", " ").encode() + b"\n"


def header_array(headers: list[list[tuple[str, bytes | None]] | None]) -> pa.Array:
    """Headers of records as an archive has them."""
    type_ = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.array([None if one is None else [{"key": k, "value": v} for k, v in one] for one in headers], type_)


def as_bytes(value: object) -> bytes | None:
    """A header's value that stands in JSON: text, or what is written as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()
