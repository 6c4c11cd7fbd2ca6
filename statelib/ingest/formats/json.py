"""JSON files: objects of a line each, items of an array, or one behind the other (`json_documents`).

Arrow's parser reads a block of rows at once. Where it refuses a block, the block is halved until the row is found that
is wrong. Two of its habits are kept away from it: it takes a row that is ``null`` for a reason to crash, and guesses
nulls in lists as zeros unless it is told the type beforehand. So its guesses serve as types only, never as values.

Text that looks like a time stays text: JSON has no times.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.formats.compression import open_text
from statelib.ingest.formats.json_as_text import as_text
from statelib.ingest.formats.json_documents import json_lines
from statelib.ingest.formats.json_exact import exact_only, loads, shortened
from statelib.ingest.formats.json_rows_kernel import depths_of
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.formats.unreadable import unreadable
from statelib.ingest.values.types import grown, stored, united_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from statelib.ingest.sources.files import SourceFile

_NEWLINE, _OBJECT = ord("\n"), ord("{")
_IN_COLUMN = re.compile(r"Column\((/?[^)]*)\)")
_MOST_DEEP = 32
"""No topic holds types that are nested deeper, and Arrow's parser crashes some thousand levels on."""


def json_sample(
    file: SourceFile, options: Mapping[str, str], types: Mapping[str, pa.DataType], encoding: str = "utf-8"
) -> pa.Schema:
    """The fields of the rows at the beginning of a file (4 MiB), with their types.

    Args:
        file: The file.
        options: Of the object store.
        types: Of fields that are known; they stay what they are.
        encoding: Of the text.

    Raises:
        InputError: It cannot be read.
    """
    reader = JsonRows(types, types, types)
    with unreadable(file, "JSON"), open_text(file, options, encoding) as opened:
        for lines in json_lines(opened):
            rows = reader.read(lines.text, lines.first)
            return reader.schema if len(rows.numbers) or any(row.field for row in rows.bad) else pa.schema([])
    return pa.schema([])


def json_rows(
    file: SourceFile,
    options: Mapping[str, str],
    types: Mapping[str, pa.DataType],
    encoding: str = "utf-8",
    fixed: Collection[str] = (),
    declared: Collection[str] = (),
) -> Iterator[Rows]:
    """The rows of a file.

    Args:
        file: The file.
        options: Of the object store.
        types: By field; others become what they look like.
        encoding: Of the text.
        fixed: Fields whose types stay what they are, but for new fields of structs.
        declared: Fields whose types were asked for: anything becomes text where that is text.

    Raises:
        InputError: It cannot be read.
    """
    reader = JsonRows(types, fixed, declared)
    with unreadable(file, "JSON"), open_text(file, options, encoding) as opened:
        for lines in json_lines(opened):
            yield reader.read(lines.text, lines.first)


class JsonRows:
    """Reads rows of one file, and learns the types of their fields.

    Args:
        types: What is known of them.
        fixed: Fields whose types stay what they are, but for new fields of structs.
        declared: Fields whose types were asked for: anything becomes text where that is text.
    """

    def __init__(
        self, types: Mapping[str, pa.DataType], fixed: Collection[str] = (), declared: Collection[str] = ()
    ) -> None:
        self._known = dict(types)
        self._fixed = frozenset(fixed)
        self._declared = frozenset(declared)
        self._texts = [name for name in declared if pa.types.is_string(types.get(name, pa.null()))]
        self._seen: dict[str, None] = {}

    @property
    def schema(self) -> pa.Schema:
        """Of all fields that rows have had so far; of one without values null."""
        return pa.schema(list(self._known.items()))

    def read(self, text: bytes, first: int) -> Rows:
        """Reads rows, a line each.

        Args:
            text: The lines, each with a newline behind it.
            first: The number of the first line.
        """
        starts, ends = _lines_of(text)
        data = np.frombuffer(text, np.uint8)
        bad: list[BadRow] = []
        kept = _objects(data, text, starts, ends, first, bad)
        tables: list[tuple[pa.Table, NDArray[np.int64]]] = []
        self._parse(text, starts, ends, kept, first, tables, bad)
        known = pa.schema([(name, self._known[name]) for name in self._seen])
        numbers = np.concatenate([rows for _, rows in tables]) if tables else np.empty(0, np.int64)
        columns = _together([_as(table, known) for table, _ in tables], known, len(numbers))
        columns, numbers, inexact = exact_only(columns, numbers, text, starts, ends, first)
        return Rows(columns, numbers, tuple(sorted((*bad, *inexact), key=lambda row: row.row)))

    def _parse(
        self,
        text: bytes,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        rows: NDArray[np.int64],
        first: int,
        tables: list[tuple[pa.Table, NDArray[np.int64]]],
        bad: list[BadRow],
    ) -> None:
        """Reads some of the lines, and halves them where that does not work."""
        if not len(rows):
            return
        low, high = int(rows[0]), int(rows[-1])
        whole = len(rows) == high - low + 1
        block = (
            text[starts[low] : ends[high]]
            if whole
            else b"".join(text[starts[row] : ends[row]] for row in rows.tolist())
        )
        try:
            table = self._parsed(block, len(rows))
        except _WrongError as error:
            if len(rows) == 1:
                found = self._why(block) or error
                bad.append(BadRow(first + low, found.field, found.reason, block.strip()))
                return
            middle = len(rows) // 2
            self._parse(text, starts, ends, rows[:middle], first, tables, bad)
            self._parse(text, starts, ends, rows[middle:], first, tables, bad)
            return
        tables.append((table, rows + first))

    def _parsed(self, block: bytes, count: int) -> pa.Table:
        """Reads lines with the types that are known, or with those and what the lines have more."""
        table = _read(block, pa.schema(list(self._known.items())), count) if self._known else None
        if table is None:
            if self._texts:
                block = as_text(block, self._texts)
            self._learn(block)
            table = _read(block, pa.schema(list(self._known.items())), count)
        if table is None:
            raise _WrongError("", "it cannot be read")
        for name, column in zip(table.schema.names, table.columns, strict=True):
            if name not in self._seen and column.null_count < len(column):
                self._seen[name] = None
        return table

    def _learn(self, block: bytes) -> None:
        """Takes over the types that a block's own fields have."""
        try:
            found = pa_json.read_json(
                pa.BufferReader(block), read_options=_reading(block), parse_options=pa_json.ParseOptions()
            ).schema
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _WrongError(_field_in(error), str(error).partition(" in row ")[0]) from None
        for field in found:
            type_ = _guessed(field.type)
            known = self._known.get(field.name)
            try:
                if known is None:
                    self._known[field.name] = type_
                elif field.name in self._fixed or not _is_guessed(known):
                    self._known[field.name] = grown(known, type_)
                else:
                    self._known[field.name] = united_text(known, type_, field.name)
            except ConfigurationError as error:
                where = str(error.place.get("field", field.name))
                raise _WrongError(where, f"it is {_named(type_)} where others are {_named(known)}") from None

    def _why(self, block: bytes) -> _WrongError | None:
        """What is wrong with a row, by its fields one by one; None: nothing that is wrong with one alone."""
        try:
            row = loads(block)
        except ValueError as error:
            return _WrongError("", f"it is no JSON: {error}")
        for name, value in row.items():
            if name not in self._known:
                continue
            text = json.dumps(value, ensure_ascii=False, default=str)
            alone = json.dumps({name: value}, default=str).encode() + b"\n"
            if _read(alone, pa.schema([(name, self._known[name])]), 1) is None:
                is_topics = name in self._fixed and name not in self._declared
                step = "" if is_topics else f" (--type {shlex.quote(f'{name}=string')} takes it as text)"
                return _WrongError(name, f"{shortened(text)} is no {_named(self._known[name])}{step}")
        return None


class _WrongError(Exception):
    """Rows cannot be read together; of a single one: why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


def _lines_of(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where lines begin, and where they end behind their newlines."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1
    return np.concatenate([np.zeros(1, np.int64), ends[:-1]]), ends


def _objects(
    data: NDArray[np.uint8],
    text: bytes,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: int,
    bad: list[BadRow],
) -> NDArray[np.int64]:
    """The lines with objects that can be read; others that are not empty become bad rows."""
    plain = data[starts] == _OBJECT
    deep = depths_of(data, starts, ends) > _MOST_DEEP
    plain &= ~deep
    for n in np.flatnonzero(~plain).tolist():
        line = text[starts[n] : ends[n]].strip()
        if deep[n]:
            bad.append(BadRow(first + n, "", f"a row is nested deeper than {_MOST_DEEP} objects and arrays", line))
        elif line.startswith(b"{"):
            plain[n] = True
        elif line:
            bad.append(BadRow(first + n, "", "a row is no object in JSON", line))
    return np.flatnonzero(plain)


def _reading(block: bytes) -> pa_json.ReadOptions:
    return pa_json.ReadOptions(use_threads=False, block_size=len(block) + 64)


def _read(block: bytes, schema: pa.Schema, count: int) -> pa.Table | None:
    """Lines with these fields and no others; None: that does not work."""
    asked = pa.schema([(field.name, _readable(field.type)) for field in schema])
    parsing = pa_json.ParseOptions(explicit_schema=asked, unexpected_field_behavior="error")
    try:
        table = pa_json.read_json(pa.BufferReader(block), read_options=_reading(block), parse_options=parsing)
        table.validate(full=True)  # text may be no UTF-8
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != count:
        return None
    try:
        return table if asked.equals(schema) else _as(table, schema)
    except pa.ArrowException:
        return None  # there are values after all


def _readable(type_: pa.DataType) -> pa.DataType:
    """The type to read values as first: text for dates, which Arrow also takes numbers for, and where there have been
    nulls only, as it cannot read lists of nothing but these.
    """  # noqa: D205 - one sentence
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _readable(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_readable(type_.value_type))
    return pa.string() if pa.types.is_null(type_) or pa.types.is_date(type_) else type_


def _field_in(error: Exception) -> str:
    """The field that Arrow's message names, if it does."""
    place = _IN_COLUMN.search(str(error))
    return place[1].strip("/").replace("/", ".") if place else ""


def _guessed(type_: pa.DataType) -> pa.DataType:
    """What Arrow takes a field for, but for times, which are text."""
    if pa.types.is_timestamp(type_):
        return pa.string()
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _guessed(field.type)) for field in type_])
    return pa.list_(_guessed(type_.value_type)) if pa.types.is_list(type_) else type_


def _is_guessed(type_: pa.DataType) -> bool:
    """Whether `_guessed` gives such types; others are those that files of other formats have."""
    if pa.types.is_struct(type_):
        return all(_is_guessed(field.type) for field in type_)
    if pa.types.is_list(type_):
        return _is_guessed(type_.value_type)
    return type_ in {pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string()}


def _named(type_: pa.DataType | None) -> str:
    names = {pa.string(): "text", pa.int64(): "integer", pa.float64(): "number", pa.bool_(): "boolean"}
    return names.get(type_, str(type_))


def _together(parts: list[pa.Table], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """One batch; without fields it still has its rows."""
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    table = pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()
    return table.to_batches()[0] if count else pa.RecordBatch.from_pylist([], schema=schema)


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A block that was read before types became wider, or fields more."""
    if table.schema.equals(schema):
        return table
    columns = [
        stored(table[field.name].combine_chunks(), field.type)
        if field.name in table.schema.names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
