"""Values of text files as their types, and the rows of those that do not fit."""

from __future__ import annotations

import csv
import io
import re
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.ingest.formats.rows import BadRow

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

NULLS = pa.array([
    b"", b"NA", b"N/A", b"n/a", b"#N/A", b"NULL", b"null", b"NaN", b"nan", b"None", b"-", b"\\N",
])  # fmt: skip
"""What stands for nothing where a value is no text."""

_ZEROS = r"^\s*[+-]?0(\d+|[xX][\da-fA-F]+)\s*$"
_LONG = r"^\s*[+-]?\d{16,}\s*$"

COMMA_NUMBER = r"^\s*[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?\s*$"
"""A number with a comma before its decimals, and perhaps points between its thousands."""

_AS_COMMA = " (--decimal-separator , reads it as a number)"

_TRUE, _FALSE = (b"true", b"True", b"TRUE", b"1"), (b"false", b"False", b"FALSE", b"0")


def read_text(
    rows: pa.RecordBatch,
    numbers: NDArray[np.int64],
    types: Mapping[str, pa.DataType],
    delimiter: str,
    declared: Collection[str] = (),
    decimal_separator: str = ".",
) -> tuple[pa.RecordBatch, list[BadRow]]:
    """Rows of text as their types.

    Args:
        rows: Columns of bytes; null is null.
        numbers: int64: of the rows in their file.
        types: By column; others are text, or null where they have no value.
        delimiter: Stood between the values; for what is said of bad rows.
        declared: Columns that are of their type whatever digits that costs.
        decimal_separator: Of numbers: a point or a comma.

    Returns:
        The columns, null where a value does not fit; and a row each for those that have one that does not, ascending.
    """
    columns: list[pa.Array] = []
    bad: dict[int, BadRow] = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        wanted = types.get(name, pa.null())
        if pa.types.is_null(wanted):
            wanted = pa.null() if column.null_count == len(column) else pa.string()
        text = with_points(column) if decimal_separator == "," and _is_number(wanted) else column
        made = _cast(text, wanted)
        if made is None:
            made, wrong = _one_by_one(text, wanted)
            for row in np.flatnonzero(wrong).tolist():
                number = int(numbers[row])
                shown = column[row].as_py().decode(errors="replace")
                if number not in bad:
                    comma = decimal_separator == "." and _is_number(wanted) and re.fullmatch(COMMA_NUMBER, shown)
                    hint = _AS_COMMA if comma else _as_text(name, wanted)
                    reason = f"{shown!r} is no {_what(wanted)}{hint}"
                    bad[number] = BadRow(number, name, reason, line_of(rows, row, delimiter))
        if name not in declared and (lost := _losing(text, made)) is not None:
            for row in lost.tolist():
                number, shown = int(numbers[row]), column[row].as_py().decode(errors="replace")
                reason = f"{shown!r} would lose digits as {wanted}{_as_text(name, wanted)}"
                bad.setdefault(number, BadRow(number, name, reason, line_of(rows, row, delimiter)))
        columns.append(made)
    return pa.RecordBatch.from_arrays(columns, rows.schema.names), [bad[number] for number in sorted(bad)]


def loses_digits(text: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Which values have digits that a number does not keep: ``007``, ``0x10``, more than doubles hold."""
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return pc.match_substring_regex(text, _ZEROS)
    if pa.types.is_floating(type_):
        return pc.match_substring_regex(text, f"{_ZEROS}|{_LONG}")
    return pc.and_(pc.is_null(text), False)


def with_points(text: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Numbers with a decimal comma as they are read; what else has a comma or a point becomes what no number is."""
    pointed = pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")
    other = pc.if_else(pc.match_substring_regex(text, "[.,]"), pa.scalar(b"?"), text)
    return pc.if_else(pc.match_substring_regex(text, COMMA_NUMBER), pointed, other)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _losing(text: pa.Array, made: pa.Array) -> NDArray[np.int64] | None:
    """The rows whose digits are lost, None where none are; looks closely only where the numbers tell no better."""
    if pa.types.is_integer(made.type) and made.cast(pa.string()).cast(pa.binary()).equals(text):
        return None
    lost = loses_digits(text, made.type).fill_null(False)
    return np.flatnonzero(lost.to_numpy(zero_copy_only=False)) if pc.any(lost).as_py() else None


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """All values at once; None: some do not fit, or have to be looked at first."""
    if pa.types.is_binary(wanted):
        return column
    if pa.types.is_null(wanted):
        return pa.nulls(len(column))
    try:
        text = column.cast(pa.string())
        if pa.types.is_string(wanted):
            return text
        if pa.types.is_boolean(wanted):
            return None
        return text.cast(wanted)
    except (pa.ArrowException, UnicodeDecodeError):
        return None


def _one_by_one(column: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """The values that fit, null elsewhere; and which do not."""
    if pa.types.is_string(wanted):
        given: list[Any] = column.to_pylist()
        found = [_decoded(value) for value in given]
        array = pa.array([value if isinstance(value, str) else None for value in found], pa.string())
        return array, np.array([isinstance(value, bytes) for value in found])
    trimmed = pc.ascii_trim_whitespace(column.cast(pa.large_binary()).cast(pa.large_string(), safe=False)).cast(
        pa.binary()
    )
    nothing = pc.or_kleene(pc.is_in(trimmed, value_set=NULLS), pc.is_null(trimmed)).fill_null(True)
    values = pc.if_else(nothing, pa.scalar(None, pa.binary()), trimmed)
    if (made := _cast(values, wanted)) is not None:
        return made, np.zeros(len(column), np.bool_)
    distinct = values.dictionary_encode()
    if len(distinct.dictionary) == 0:
        return pa.nulls(len(column), wanted), np.zeros(len(column), np.bool_)
    singles = [_single(distinct.dictionary.slice(n, 1), wanted) for n in range(len(distinct.dictionary))]
    fits = pa.concat_arrays([pa.nulls(1, wanted) if single is None else single for single in singles])
    misfit = np.array([single is None for single in singles])
    where = distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)
    wrong = misfit[where] & distinct.indices.is_valid().to_numpy(zero_copy_only=False)
    return fits.take(distinct.indices), wrong


def _single(value: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    text = value[0].as_py()
    if pa.types.is_boolean(wanted):
        return pa.array([text in _TRUE]) if text in _TRUE or text in _FALSE else None
    if _is_number(wanted):
        value = pa.array([text.removeprefix(b"+")], pa.binary())
    return _cast(value, wanted)


def _decoded(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _what(wanted: pa.DataType) -> str:
    return "text in UTF-8 (--encoding names another)" if pa.types.is_string(wanted) else str(wanted)


def _as_text(name: str, wanted: pa.DataType) -> str:
    return "" if pa.types.is_string(wanted) else f" (--type {shlex.quote(f'{name}=string')} takes it as text)"


def line_of(rows: pa.RecordBatch, row: int, delimiter: str) -> bytes:
    """A row as it could stand in the file."""
    out = io.StringIO()
    values = [column[row].as_py() for column in rows.columns]
    shown = ["" if value is None else value.decode(errors="backslashreplace") for value in values]
    csv.writer(out, delimiter=delimiter, lineterminator="").writerow(shown)
    return out.getvalue().encode()
