"""Files of Kafka Connect's sinks: values, with their keys and headers in files beside them.

Their names tell which files belong together, and where their records stand (`statelib.ingest.sources.layouts`). Row n
of a file of values is row n of those beside it.

Source: the writers of records (``RecordWriterProvider``) of kafka-connect-storage-cloud.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.kinds import InputError
from statelib.ingest.envelopes import placed
from statelib.ingest.formats.compression import open_content
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.formats.unreadable import unreadable
from statelib.ingest.values.deserializers import framing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.ingest.envelopes.contents import Contents
    from statelib.ingest.formats.read import FileReader
    from statelib.ingest.sources.files import SourceFile
    from statelib.ingest.values.deserializers import Deserializer

_NULL = b"null"
_BLOCK_BYTES = 1 << 20
_ONE_COLUMN = ([placed.ONLY_FIELD], ["key"], ["headers"])
"""Columns of files whose rows are no records: Avro's have no name, and Parquet's are wrapped in a struct."""


def connect_rows(file: SourceFile, files: FileReader, contents: Contents) -> Iterator[Rows]:
    """The rows of a file of values with their keys and headers, in the columns of `statelib.ingest.envelopes.placed`.

    Args:
        file: The file, with its place; or one of keys alone, whose records have no values.
        files: Reads it, and those beside it.
        contents: How keys and values are read that are bytes.

    Raises:
        InputError: A file cannot be read, or has more or fewer rows than the one beside it.
    """
    assert file.place is not None  # noqa: S101 - a file of Connect has one
    keys = _column(file if file.place.is_tombstones else file.place.keys, _with_framing(files, contents.key))
    headers = _column(file.place.headers, files)
    if file.place.is_tombstones:
        assert keys is not None  # noqa: S101 - it is the file itself
        parts: Iterator[Rows] = iter([_nothing(len(keys))])
    else:
        parts = map(_with_tombstones, _with_framing(files, contents.value).rows(file))
    last = 0
    for rows in parts:
        made, bad = _fields(rows, contents)
        for name, column in ((placed.KEY, keys), (placed.HEADERS, headers)):
            if column is not None:
                made[name] = _beside(column, rows, file)
        if placed.KEY in made and contents.key is not None:
            made[placed.KEY], bad_keys = contents.keys(made[placed.KEY], rows.numbers)
            bad = [*bad, *bad_keys]
        if placed.HEADERS in made:
            made[placed.HEADERS] = _as_headers(made[placed.HEADERS])
        last = max(last, *rows.numbers.tolist(), *(row.row for row in rows.bad), 0)
        whole = Rows(pa.RecordBatch.from_pydict(made), rows.numbers, rows.bad)
        yield placed.at_place(file, placed.without(bad, whole))
    if keys is not None and last != len(keys):
        what = f"a file ends at row {last}, and the file of its keys at row {len(keys)}"
        raise InputError(what, file=file.path, next_step="copy both files again from the bucket of the connector")


def _with_framing(files: FileReader, deserializer: Deserializer | None) -> FileReader:
    """Reads files of bytes that a deserializer takes."""
    return replace(files, framing=framing(deserializer))


def _fields(rows: Rows, contents: Contents) -> tuple[dict[str, pa.Array], list[BadRow]]:
    """The fields of values, and what is beside them."""
    made = {name: rows.columns[name] for name in rows.columns.schema.names}
    if contents.value is None or placed.ONLY_FIELD not in made:
        return made, []
    fields, nothing, bad = contents.fields(made.pop(placed.ONLY_FIELD), rows.numbers)
    gone = pc.or_(nothing, made[placed.TOMBSTONE]) if placed.TOMBSTONE in made else nothing
    return {**fields, **made, placed.TOMBSTONE: gone}, bad


def _column(file: SourceFile | None, files: FileReader) -> pa.Array | None:
    """What a file of keys or headers has, as one column."""
    if file is None:
        return None
    files = replace(files, format=files.format_named(file) or files.format)
    if files.format_of(file) == "json":
        return _json_values(file, files.options)
    batches = [rows.columns for rows in files.rows(file)]
    if not batches:
        return pa.nulls(0)
    if batches[0].schema.names in _ONE_COLUMN:
        return pa.chunked_array([batch.column(0) for batch in batches]).combine_chunks()
    return pa.Table.from_batches(batches).to_struct_array().combine_chunks()


def _with_tombstones(rows: Rows) -> Rows:
    """Rows of JSON that are ``null`` are no bad ones, but records without a value."""
    nulls = [row for row in rows.bad if row.raw == _NULL]
    count = len(rows.numbers) + len(nulls)
    if not nulls:
        gone = pa.array(np.zeros(count, np.bool_))
        return Rows(rows.columns.append_column(placed.TOMBSTONE, gone), rows.numbers, rows.bad)
    numbers = np.concatenate([rows.numbers, np.array([row.row for row in nulls], np.int64)])
    order = np.argsort(numbers, kind="stable")
    where = pa.array(order, mask=order >= len(rows.numbers))
    made = {name: rows.columns[name].take(where) for name in rows.columns.schema.names}
    made[placed.TOMBSTONE] = pa.array(order >= len(rows.numbers))
    bad = tuple(row for row in rows.bad if row.raw != _NULL)
    return Rows(pa.RecordBatch.from_pydict(made), numbers[order], bad)


def _nothing(count: int) -> Rows:
    gone = pa.array(np.ones(count, np.bool_))
    return Rows(pa.RecordBatch.from_pydict({placed.TOMBSTONE: gone}), np.arange(1, count + 1))


def _beside(column: pa.Array, rows: Rows, file: SourceFile) -> pa.Array:
    if len(rows.numbers) and rows.numbers[-1] > len(column):
        what = f"a file of keys or headers ends at row {len(column)}, and that of the values goes on"
        raise InputError(what, file=file.path, next_step="copy both files again from the bucket of the connector")
    return column.take(pa.array(rows.numbers - 1))


def _json_values(file: SourceFile, options: Mapping[str, str]) -> pa.Array:
    with unreadable(file, "JSON"), open_content(file, options) as opened:
        content = b"".join(iter(lambda: bytes(opened.read(_BLOCK_BYTES)), b""))
    return pa.array([json.loads(line) for line in content.splitlines() if line.strip()])


def _as_headers(column: pa.Array) -> pa.Array:
    """Headers as Connect writes them: a list of key and value for each record."""
    given: list[Any] = column.to_pylist()
    found = [one["headers"] if isinstance(one, dict) and "headers" in one else one for one in given]
    return placed.header_array(
        [None if one is None else [(pair["key"], placed.as_bytes(pair.get("value"))) for pair in one] for one in found]
    )
