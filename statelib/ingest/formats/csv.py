"""CSV files: read as text first, so that a row that does not fit its types is one bad row, with its field and its text.

The first line has the names of the columns, unless they are given. What stands between the values is found out (comma,
tab, semicolon, bar) unless it is given. An empty value is null; outside of text so are ``NA``, ``N/A``, ``NULL``,
``NaN`` and the like.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from statelib.errors.kinds import InputError
from statelib.ingest.formats.compression import open_content
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.formats.text_values import read_text
from statelib.ingest.formats.unreadable import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from statelib.ingest.sources.files import SourceFile

_DELIMITERS = (",", "\t", ";", "|")
_BLOCK_BYTES = 4 << 20
_SAMPLE_BYTES = 1 << 20
_MARK = "\ufeff"
_NO_NUMBER = r"^\s*[+-]?(0\d+|\d{16,})\s*$"
"""Digits that are no number, or one that doubles do not hold."""


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How values are written.

    Attributes:
        delimiter: What stands between them; None: found out from the first line.
        encoding: Of the text.
        columns: The names of the columns, where the first line does not have them.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    columns: tuple[str, ...] = ()

    @property
    def header_rows(self) -> int:
        """How many lines have the names."""
        return 0 if self.columns else 1


def csv_sample(file: SourceFile, options: Mapping[str, str], dialect: CsvDialect) -> pa.Schema:
    """The columns of a file, with the types of the values at its beginning; null of one without values.

    Raises:
        InputError: It cannot be read.
    """
    with unreadable(file, "CSV"), open_content(file, options) as opened:
        data = opened.read(_SAMPLE_BYTES)
        if not data.strip():
            return pa.schema([])
        names = _names(data, dialect, file)
        head = data[: data.rfind(b"\n") + 1] if len(data) == _SAMPLE_BYTES else data
        looks_like = _sampled(head, names, dialect, {})
        as_text = _sampled(head, names, dialect, dict.fromkeys(names, pa.binary()))
    return pa.schema([(name, _as_read(looks_like[name], as_text[name])) for name in names])


def _sampled(head: bytes, names: list[str], dialect: CsvDialect, types: Mapping[str, pa.DataType]) -> pa.Table:
    return pa_csv.read_csv(
        io.BytesIO(head),
        read_options=pa_csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=dialect.header_rows,
            use_threads=False,
            encoding=dialect.encoding,
            block_size=len(head) + 1,
        ),
        parse_options=_parsing(_delimiter(head, dialect), [], dialect.header_rows),
        convert_options=pa_csv.ConvertOptions(strings_can_be_null=True, column_types=types),
    )


def _as_read(column: pa.ChunkedArray, text: pa.ChunkedArray) -> pa.DataType:
    """The type as which a column is read: text where a number would lose what stands there (``007``, 30 digits)."""
    type_ = column.type
    if pa.types.is_time(type_) or pa.types.is_binary(type_):
        return pa.string()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if is_number and pc.any(pc.match_substring_regex(text, _NO_NUMBER)).as_py():
        return pa.string()
    return type_


def csv_rows(
    file: SourceFile, options: Mapping[str, str], dialect: CsvDialect, types: Mapping[str, pa.DataType]
) -> Iterator[Rows]:
    """The rows of a file.

    Args:
        file: The file.
        options: Of the object store.
        dialect: See `CsvDialect`.
        types: By column; others are text.

    Raises:
        InputError: It cannot be read.
    """
    invalid: list[tuple[int, BadRow]] = []
    with unreadable(file, "CSV"), open_content(file, options) as opened:
        head = opened.read(_SAMPLE_BYTES)
        if not head.strip():
            return
        names, delimiter = _names(head, dialect, file), _delimiter(head, dialect)
        reader = pa_csv.open_csv(
            _Joined(head, opened),
            read_options=pa_csv.ReadOptions(
                column_names=names,
                skip_rows_after_names=dialect.header_rows,
                use_threads=False,
                block_size=_BLOCK_BYTES,
                encoding=dialect.encoding,
            ),
            parse_options=_parsing(delimiter, invalid, dialect.header_rows),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=False,
            ),
        )
        good = told = 0
        for batch in reader:
            numbers = _numbers(good, batch.num_rows, np.array([number for number, _ in invalid], np.int64))
            good += batch.num_rows
            columns, bad = read_text(batch, numbers, types, delimiter)
            new = tuple(row for _, row in invalid[told:])
            told = len(invalid)
            keep = np.ones(len(numbers), np.bool_)
            keep[np.searchsorted(numbers, [row.row for row in bad])] = False
            if bad:
                columns, numbers = columns.filter(pa.array(keep)), numbers[keep]
            yield Rows(columns, numbers, (*new, *bad))
        if told < len(invalid):
            none = pa.RecordBatch.from_arrays([], [])
            yield Rows(none, np.empty(0, np.int64), tuple(row for _, row in invalid[told:]))


def _numbers(good: int, count: int, invalid: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of ``count`` rows that follow ``good`` ones, where rows of some numbers were passed over."""
    numbers = np.arange(good + 1, good + count + 1)
    while True:
        moved = np.arange(good + 1, good + count + 1) + np.searchsorted(invalid, numbers, side="right")
        if np.array_equal(moved, numbers):
            return numbers
        numbers = moved


def _parsing(delimiter: str, invalid: list[tuple[int, BadRow]], header_rows: int) -> pa_csv.ParseOptions:
    def take(row: Any) -> str:
        number = row.number - header_rows if row.number is not None else 0
        reason = f"it has {row.actual_columns} values instead of {row.expected_columns}"
        invalid.append((number, BadRow(number, "", reason, row.text.encode())))
        return "skip"

    return pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=take)


def _names(head: bytes, dialect: CsvDialect, file: SourceFile) -> list[str]:
    """The names of the columns; one without a name is called by its number, one that comes twice gets it behind."""
    if dialect.columns:
        return list(dialect.columns)
    line = _first_line(head, dialect)
    if not line.strip():
        step = "name the columns in the first line"
        raise InputError("a CSV file has no names of columns", file=file.path, next_step=step)
    given = [name.strip() for name in next(csv.reader(io.StringIO(line), delimiter=_delimiter(head, dialect)))]
    names: list[str] = []
    for n, found in enumerate(given):
        name = found or f"column_{n + 1}"
        names.append(name if name not in names else f"{name}_{n + 1}")
    return names


def _first_line(head: bytes, dialect: CsvDialect) -> str:
    """Up to the first end of a line that is not within quotes."""
    text = head.decode(dialect.encoding, errors="replace").removeprefix(_MARK)
    quoted = False
    for at, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character in "\r\n" and not quoted:
            return text[:at]
    return text


def _delimiter(head: bytes, dialect: CsvDialect) -> str:
    if dialect.delimiter is not None:
        return dialect.delimiter
    line = _first_line(head, dialect)
    return max(_DELIMITERS, key=line.count)


class _Joined(io.RawIOBase):
    """What has been read of a stream already, and the rest of it."""

    def __init__(self, head: bytes, rest: pa.NativeFile) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if self._head:
            size = len(self._head) if size is None or size < 0 else size
            found, self._head = self._head[:size], self._head[size:]
            return found
        return bytes(self._rest.read(None if size is None or size < 0 else size))
