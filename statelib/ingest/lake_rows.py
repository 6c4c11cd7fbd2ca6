"""Rows of a lake's files as fields of values, with what the files tell of records beside them.

A layout is how Kafka's tools leave a topic in files; an envelope is what a value is wrapped in. Both give the columns
of `statelib.ingest.envelopes.placed`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.kinds import InputError
from statelib.ingest.envelopes import placed
from statelib.ingest.envelopes.aiven import from_aiven
from statelib.ingest.envelopes.contents import Contents
from statelib.ingest.envelopes.debezium import from_debezium
from statelib.ingest.envelopes.kcat import from_kcat
from statelib.ingest.formats.aiven_csv import aiven_csv_rows
from statelib.ingest.formats.compression import open_content
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.formats.unreadable import unreadable
from statelib.ingest.values.deserializers import framing
from statelib.ingest.values.fields import OF_FILE, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.ingest.formats.read import FileReader
    from statelib.ingest.sources.files import SourceFile
    from statelib.job.lake_topic import Envelope, Layout, ValueEncoding

_NULL = b"null"
_BLOCK_BYTES = 1 << 20
_ONE_COLUMN = ([placed.ONLY_FIELD], ["key"], ["headers"])
"""Columns of files whose rows are no records: Avro's have no name, and Parquet's are wrapped in a struct."""


@dataclass(frozen=True, slots=True)
class LakeReader:
    """Reads a lake's files; travels to workers.

    Attributes:
        files: Reads the files themselves.
        layout: What a file's rows are.
        envelope: What their values are wrapped in.
        contents: How keys and values are read that are bytes or JSON.
        value_encoding: Of values in Aiven's CSV.
        key: Of plain files: the field of keys that `contents` reads; None: it reads none.
        value: The same of values.
    """

    files: FileReader
    layout: Layout = "files"
    envelope: Envelope = "rows"
    contents: Contents = field(default_factory=Contents)
    value_encoding: ValueEncoding = "base64"
    key: str | None = None
    value: str | None = None

    def is_exact(self, file: SourceFile) -> bool:
        """Whether a file says itself which types the fields of values have."""
        return not self.contents.reads_bytes and self.layout in {"files", "connect"} and self.files.is_exact(file)

    def schema(self, file: SourceFile) -> pa.Schema:
        """The fields of values and what is beside them: as the file says, or as its beginning looks like.

        Raises:
            InputError: It cannot be read.
        """
        if self.layout == "files" and self.envelope == "rows" and not self.contents.reads_bytes:
            return _with_constants(self.files.schema(file), file)
        if self.is_exact(file) and file.place is None:
            none = pa.RecordBatch.from_pylist([], schema=_with_constants(self.files.schema(file), file))
            return _with_constants(from_debezium(Rows(none, np.empty(0, np.int64))).columns.schema, file)
        first = next(iter(self.rows(file)), None)
        return pa.schema([]) if first is None else first.columns.schema

    def rows(self, file: SourceFile, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """The rows of a file.

        Args:
            file: The file.
            columns: Those that are needed, where the format can leave others out; None: all.

        Raises:
            InputError: It cannot be read.
        """
        plain = self.layout == "files" and self.envelope == "rows"
        beside = [(name, value) for name, value in file.constants if name.startswith(OF_FILE)]
        for rows in self._placed(file, columns if plain else None):
            yield _with_columns(from_debezium(rows) if self.envelope == "debezium" else rows, beside)

    def _placed(self, file: SourceFile, columns: Sequence[str] | None) -> Iterator[Rows]:
        if self.layout == "connect":
            yield from self._of_connect(file)
            return
        for rows in self._rows_of(file, columns):
            if self.layout == "kcat":
                yield from_kcat(rows, self.contents)
            elif self.layout == "aiven":
                yield _at_place(file, from_aiven(rows, self.contents))
            else:
                yield self._read(_constant(rows, file))

    def _rows_of(self, file: SourceFile, columns: Sequence[str] | None) -> Iterator[Rows]:
        if self.layout == "aiven" and self.files.format_of(file) == "csv":
            return aiven_csv_rows(file, self.files.options, self.files.dialect.columns, self.value_encoding)
        return self.files.rows(file, columns)

    def _read(self, rows: Rows) -> Rows:
        """Plain rows with the fields read that are bytes; of changes in such a field, the change."""
        bad: list[BadRow] = []
        columns = rows.columns
        if self.value is not None and self.envelope == "debezium":
            fields, nothing, bad = self.contents.fields(value_at(columns, self.value), rows.numbers)
            columns = pa.RecordBatch.from_pydict({**fields, placed.TOMBSTONE: nothing})
        elif self.value is not None and self.value in columns.schema.names:
            read, bad = self.contents.value_of(columns[self.value], rows.numbers)
            columns = columns.set_column(columns.schema.get_field_index(self.value), self.value, read)
        if self.key in columns.schema.names and _is_bytes(columns.schema.field(self.key).type):
            key = columns[self.key]
            read, bad_keys = self.contents.keys(key, rows.numbers)
            columns = columns.set_column(columns.schema.get_field_index(self.key), self.key, read)
            columns = columns.append_column(placed.KEY_BYTES, key.cast(pa.binary()))
            bad = [*bad, *bad_keys]
        return placed.without(bad, Rows(columns, rows.numbers, rows.bad))

    def _of_connect(self, file: SourceFile) -> Iterator[Rows]:
        """Values with their keys and headers from the files beside them."""
        assert file.place is not None  # noqa: S101 - a file of Connect has one
        keys = self._column(file if file.place.is_tombstones else file.place.keys, of_keys=True)
        headers = self._column(file.place.headers)
        if file.place.is_tombstones:
            assert keys is not None  # noqa: S101 - it is the file itself
            parts: Iterator[Rows] = iter([_nothing(len(keys))])
        else:
            parts = map(_with_tombstones, self._values(file))
        last = 0
        for rows in parts:
            made, bad = self._fields(rows)
            for name, column in ((placed.KEY, keys), (placed.HEADERS, headers)):
                if column is not None:
                    made[name] = _beside(column, rows, file)
            if placed.KEY in made and self.contents.key is not None:
                made[placed.KEY], bad_keys = self.contents.keys(made[placed.KEY], rows.numbers)
                bad = [*bad, *bad_keys]
            if placed.HEADERS in made:
                made[placed.HEADERS] = _as_headers(made[placed.HEADERS])
            last = max(last, *rows.numbers.tolist(), *(row.row for row in rows.bad), 0)
            whole = Rows(pa.RecordBatch.from_pydict(made), rows.numbers, rows.bad)
            yield _at_place(file, placed.without(bad, whole))
        if keys is not None and last != len(keys):
            what = f"a file ends at row {last}, and the file of its keys at row {len(keys)}"
            raise InputError(what, file=file.path, next_step="copy both files again from the bucket of the connector")

    def _values(self, file: SourceFile) -> Iterator[Rows]:
        return replace(self.files, framing=framing(self.contents.value)).rows(file)

    def _fields(self, rows: Rows) -> tuple[dict[str, pa.Array], list[BadRow]]:
        """The fields of values, and what is beside them."""
        made = {name: rows.columns[name] for name in rows.columns.schema.names}
        if self.contents.value is None or placed.ONLY_FIELD not in made:
            return made, []
        fields, nothing, bad = self.contents.fields(made.pop(placed.ONLY_FIELD), rows.numbers)
        gone = pc.or_(nothing, made[placed.TOMBSTONE]) if placed.TOMBSTONE in made else nothing
        return {**fields, **made, placed.TOMBSTONE: gone}, bad

    def _column(self, file: SourceFile | None, *, of_keys: bool = False) -> pa.Array | None:
        """What a file of keys or headers has, as one column."""
        if file is None:
            return None
        files = replace(self.files, framing=framing(self.contents.key) if of_keys else None)
        files = replace(files, format=files.format_named(file) or files.format)
        if files.format_of(file) == "json":
            return _json_values(file, files.options)
        batches = [rows.columns for rows in files.rows(file)]
        if not batches:
            return pa.nulls(0)
        if batches[0].schema.names in _ONE_COLUMN:
            return pa.chunked_array([batch.column(0) for batch in batches]).combine_chunks()
        return pa.Table.from_batches(batches).to_struct_array().combine_chunks()


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_))


def _with_constants(schema: pa.Schema, file: SourceFile) -> pa.Schema:
    more = [(name, value.type) for name, value in file.constants if name not in schema.names]
    return pa.schema([*schema, *more])


def _constant(rows: Rows, file: SourceFile) -> Rows:
    """With the fields that all rows of the file have the same value in; what the file itself has is true."""
    return _with_columns(rows, [one for one in file.constants if not one[0].startswith(OF_FILE)])


def _with_columns(rows: Rows, constants: Sequence[tuple[str, pa.Scalar]]) -> Rows:
    columns = rows.columns
    for name, value in constants:
        if name not in columns.schema.names:
            columns = columns.append_column(name, pa.repeat(value, len(rows.numbers)))
    return Rows(columns, rows.numbers, rows.bad)


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


def _at_place(file: SourceFile, rows: Rows) -> Rows:
    """With partition and offsets by the file's name, where the rows do not have them."""
    if file.place is None:
        return rows
    count = len(rows.numbers)
    columns = rows.columns.append_column(placed.PARTITION, pa.array(np.full(count, file.place.partition, np.int32)))
    if placed.OFFSET not in columns.schema.names:
        first = np.full(count, file.place.first_offset, np.int64)
        columns = columns.append_column(placed.OFFSET, pa.array(first + rows.numbers - 1))
        columns = columns.append_column(placed.FIRST, pa.array(first))
    return Rows(columns, rows.numbers, rows.bad)


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
