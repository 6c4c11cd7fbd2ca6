"""Rows of a lake's files as fields of values, with what the files tell of records beside them.

A layout is how Kafka's tools leave a topic in files; an envelope is what a value is wrapped in. Both give the columns
of `statelib.ingest.envelopes.placed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.ingest.envelopes import placed
from statelib.ingest.envelopes.aiven import from_aiven
from statelib.ingest.envelopes.connect import connect_rows
from statelib.ingest.envelopes.contents import Contents, is_bytes
from statelib.ingest.envelopes.debezium import from_debezium
from statelib.ingest.envelopes.kcat import from_kcat
from statelib.ingest.formats.aiven_csv import aiven_csv_rows
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.values.fields import OF_FILE, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.ingest.formats.read import FileReader
    from statelib.ingest.sources.files import SourceFile
    from statelib.job.lake_topic import Envelope, Layout, ValueEncoding


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

    @property
    def has_plain_rows(self) -> bool:
        """Whether the fields of rows are those of values: no layout and no envelope is around them."""
        return self.layout == "files" and self.envelope == "rows"

    def is_exact(self, file: SourceFile) -> bool:
        """Whether a file says itself which types the fields of values have."""
        return not self.contents.reads_bytes and self.layout in {"files", "connect"} and self.files.is_exact(file)

    def schema(self, file: SourceFile) -> pa.Schema:
        """The fields of values and what is beside them: as the file says, or as its beginning looks like.

        Raises:
            InputError: It cannot be read.
        """
        if self.has_plain_rows and not self.contents.reads_bytes:
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
        beside = [(name, value) for name, value in file.constants if name.startswith(OF_FILE)]
        for rows in self._placed(file, columns if self.has_plain_rows else None):
            yield _with_columns(from_debezium(rows) if self.envelope == "debezium" else rows, beside)

    def _placed(self, file: SourceFile, columns: Sequence[str] | None) -> Iterator[Rows]:
        if self.layout == "connect":
            yield from connect_rows(file, self.files, self.contents)
            return
        for rows in self._rows_of(file, columns):
            if self.layout == "kcat":
                yield from_kcat(rows, self.contents)
            elif self.layout == "aiven":
                yield placed.at_place(file, from_aiven(rows, self.contents))
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
        if self.key in columns.schema.names and is_bytes(columns.schema.field(self.key).type):
            key = columns[self.key]
            read, bad_keys = self.contents.keys(key, rows.numbers)
            columns = columns.set_column(columns.schema.get_field_index(self.key), self.key, read)
            columns = columns.append_column(placed.KEY_BYTES, key.cast(pa.binary()))
            bad = [*bad, *bad_keys]
        return placed.without(bad, replace(rows, columns=columns))


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
    return replace(rows, columns=columns)
