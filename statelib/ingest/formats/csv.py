"""CSV files: read as text first, so that a row that does not fit its types is one bad row, with its field and its text.

The first line has the names of the columns, unless they are given. What stands between the values is found out (comma,
tab, semicolon, bar) unless it is given. An empty value is null; outside of text so are ``NA``, ``N/A``, ``NULL``,
``NaN`` and the like.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from statelib.errors.kinds import InputError
from statelib.ingest.formats.compression import open_content
from statelib.ingest.formats.csv_text import CsvText, delimiter_of, names_of, unmarked
from statelib.ingest.formats.rows import BadRow, Rows
from statelib.ingest.formats.text_values import COMMA_NUMBER, NULLS, line_of, loses_digits, read_text, with_points
from statelib.ingest.formats.unreadable import unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from statelib.ingest.sources.files import SourceFile

_BLOCK_BYTES = 4 << 20
_MOST_BLOCK_BYTES = 256 << 20
_WIDER = 8
_STRADDLING = "straddling object"
"""What Arrow says of a row that is longer than a block."""


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How values are written.

    Attributes:
        delimiter: What stands between them; None: found out from the first line.
        encoding: Of the text.
        columns: The names of the columns, where the first line does not have them.
        decimal_separator: Of numbers: a point or a comma.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    columns: tuple[str, ...] = ()
    decimal_separator: str = "."


def csv_sample(file: SourceFile, options: Mapping[str, str], dialect: CsvDialect) -> pa.Schema:
    """The columns of a file, with the types of the values at its beginning; null of one without values.

    Raises:
        InputError: It cannot be read.
    """
    with unreadable(file, "CSV"), open_content(file, options) as opened:
        text = CsvText(opened, dialect.encoding, has_header=not dialect.columns)
        head, is_all = text.beginning()
        if is_all and not text.header.strip() and not head.strip():
            return pa.schema([])
        delimiter = delimiter_of(text.first_line, dialect.delimiter)
        names = list(dialect.columns) or names_of(text.header, delimiter, dialect.encoding, file)
        if not head.strip():
            return pa.schema([(name, pa.null()) for name in names])
        looks_like = _sampled(head, names, delimiter, {})
        as_text = _sampled(head, names, delimiter, dict.fromkeys(names, pa.binary()))
        if dialect.decimal_separator == ",":
            return pa.schema([(name, _with_comma(looks_like[name], as_text[name])) for name in names])
    return pa.schema([(name, _as_read(looks_like[name].type, as_text[name])) for name in names])


def _sampled(head: bytes, names: list[str], delimiter: str, types: Mapping[str, pa.DataType]) -> pa.Table:
    return pa_csv.read_csv(
        io.BytesIO(head),
        read_options=pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(head) + 1),
        parse_options=_parsing(delimiter, []),
        convert_options=pa_csv.ConvertOptions(strings_can_be_null=True, column_types=types),
    )


def _with_comma(column: pa.ChunkedArray, text: pa.ChunkedArray) -> pa.DataType:
    """The same as `_as_read`, where a comma stands before decimals."""
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return _as_read(column.type, text)
    values = text.filter(pc.invert(pc.is_in(text, value_set=NULLS)).fill_null(False))
    if not len(values) or not pc.all(pc.match_substring_regex(values, COMMA_NUMBER)).as_py():
        return pa.string()
    has_decimals = pc.any(pc.match_substring(values, ",")).as_py()
    return _as_read(pa.float64() if has_decimals else pa.int64(), with_points(values))


def _as_read(type_: pa.DataType, text: pa.ChunkedArray) -> pa.DataType:
    """The type as which a column is read: text where a number would lose what stands there (``007``, 30 digits)."""
    if pa.types.is_time(type_) or pa.types.is_binary(type_):
        return pa.string()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    return pa.string() if pc.any(loses_digits(text, type_)).as_py() else type_


def csv_rows(
    file: SourceFile,
    options: Mapping[str, str],
    dialect: CsvDialect,
    types: Mapping[str, pa.DataType],
    declared: Collection[str] = (),
) -> Iterator[Rows]:
    """The rows of a file.

    Args:
        file: The file.
        options: Of the object store.
        dialect: See `CsvDialect`.
        types: By column; others are text.
        declared: Columns that are of their type whatever digits that costs.

    Raises:
        InputError: It cannot be read.
    """
    block_bytes, done = _BLOCK_BYTES, 0
    while True:
        given = done
        try:
            for rows in _rows(file, options, dialect, types, declared, block_bytes):
                if (left := _after(rows, given)) is not None:
                    yield left
                    done = max([done, *left.numbers[-1:].tolist(), *(row.row for row in left.bad)])
        except _LongRowError:
            block_bytes *= _WIDER
            if block_bytes > _MOST_BLOCK_BYTES:
                what = f"a row behind row {done} is longer than {_MOST_BLOCK_BYTES >> 20} MiB, or a quote is not closed"
                step = "correct the file: a value in quotes ends with one"
                raise InputError(what, file=file.path, next_step=step) from None
        else:
            return


class _LongRowError(Exception):
    """A row is longer than a block."""


def _after(rows: Rows, done: int) -> Rows | None:
    """The rows behind those that have been given already; None: there are none."""
    if not done:
        return rows
    keep = rows.numbers > done
    bad = tuple(row for row in rows.bad if row.row > done)
    if not keep.any() and not bad:
        return None
    return replace(rows, columns=rows.columns.filter(pa.array(keep)), numbers=rows.numbers[keep], bad=bad)


def _rows(
    file: SourceFile,
    options: Mapping[str, str],
    dialect: CsvDialect,
    types: Mapping[str, pa.DataType],
    declared: Collection[str],
    block_bytes: int,
) -> Iterator[Rows]:
    invalid: list[tuple[int, BadRow]] = []
    with unreadable(file, "CSV"), open_content(file, options) as opened:
        text = CsvText(opened, dialect.encoding, has_header=not dialect.columns)
        head, is_all = text.beginning()
        if is_all and not head.strip():
            return
        delimiter = delimiter_of(text.first_line, dialect.delimiter)
        names = list(dialect.columns) or names_of(text.header, delimiter, dialect.encoding, file)
        good = told = 0
        last = None
        for last in _batches(text, names, delimiter, invalid, block_bytes):
            numbers = _numbers(good, last.num_rows, np.array([number for number, _ in invalid], np.int64))
            good += last.num_rows
            read = _unmarked(last) if text.has_marks else last
            columns, bad = read_text(read, numbers, types, delimiter, declared, dialect.decimal_separator)
            # Arrow reads ahead: which rows of later blocks are known to be invalid is chance.
            until = bisect_right(invalid, int(numbers[-1]) if len(numbers) else 0, key=itemgetter(0))
            new, told = tuple(row for _, row in invalid[told:until]), max(told, until)
            all_numbers, keep = numbers, np.ones(len(numbers), np.bool_)
            keep[np.searchsorted(numbers, [row.row for row in bad])] = False
            if bad:
                columns, numbers = columns.filter(pa.array(keep)), numbers[keep]
            yield Rows(columns, numbers, (*new, *bad), partial(_line_of, read, all_numbers, delimiter))
        if _is_open(text, last, delimiter, invalid, good + len(invalid)):
            step = "correct the file: a value in quotes ends with one"
            what, row = "a quote is not closed before the file ends", good + len(invalid)
            raise InputError(what, file=file.path, row=row, next_step=step)
        if told < len(invalid):
            none = pa.RecordBatch.from_arrays([], [])
            yield Rows(none, np.empty(0, np.int64), tuple(row for _, row in invalid[told:]))


def _line_of(read: pa.RecordBatch, numbers: NDArray[np.int64], delimiter: str, number: int) -> bytes:
    return line_of(read, int(np.searchsorted(numbers, number)), delimiter)


def _batches(
    text: CsvText, names: list[str], delimiter: str, invalid: list[tuple[int, BadRow]], block_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Columns of bytes; null is null. Raises `_LongRowError`."""
    try:
        yield from pa_csv.open_csv(
            text,
            read_options=pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=block_bytes),
            parse_options=_parsing(delimiter, invalid),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if _STRADDLING in str(error):
            raise _LongRowError from None
        raise


def _is_open(
    text: CsvText, last: pa.RecordBatch | None, delimiter: str, invalid: list[tuple[int, BadRow]], rows: int
) -> bool:
    """Whether a quote is not closed: Arrow takes what follows it for a value, to the end of the file."""
    if invalid and invalid[-1][0] == rows:
        raw = invalid[-1][1].raw.strip()
        return b"\n" in raw and raw.count(b'"') % 2 == 1
    if last is None or not last.num_rows or not last.num_columns:
        return False
    value = last.column(last.num_columns - 1)[-1].as_py()
    return value is not None and text.ends_within(value, delimiter)


def _unmarked(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        pa.array([None if value is None else unmarked(value) for value in column.to_pylist()], pa.binary())
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _numbers(good: int, count: int, invalid: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of ``count`` rows that follow ``good`` ones, where rows of some numbers were passed over."""
    numbers = np.arange(good + 1, good + count + 1)
    while True:
        moved = np.arange(good + 1, good + count + 1) + np.searchsorted(invalid, numbers, side="right")
        if np.array_equal(moved, numbers):
            return numbers
        numbers = moved


def _parsing(delimiter: str, invalid: list[tuple[int, BadRow]]) -> pa_csv.ParseOptions:
    def take(row: Any) -> str:
        number = row.number if row.number is not None else 0
        reason = f"it has {row.actual_columns} values instead of {row.expected_columns}"
        invalid.append((number, BadRow(number, "", reason, unmarked(row.text.encode()))))
        return "skip"

    return pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=take)
