"""Whole numbers in JSON that no double holds: Arrow rounds them without a word, so their rows are set apart."""

from __future__ import annotations

import json
import re
import shlex
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import is_any_list
from statelib.ingest.formats.rows import BadRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WHOLE_IN_DOUBLES = 2.0**53
_LARGE = re.compile(rb"[:\[,\s]-?\d{16,}\s*[,}\]\n]")
_MOST_DIGITS_OF_INT = 4000  # Python refuses more than 4,300
_MOST_SHOWN = 60


def loads(text: bytes) -> Any:
    """As `json.loads`, with whole numbers of any length.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) < _MOST_DIGITS_OF_INT else Decimal(text)


def shortened(text: str) -> str:
    """A value for a message."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def exact_only(
    columns: pa.RecordBatch,
    numbers: NDArray[np.int64],
    text: bytes,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: int,
) -> tuple[pa.RecordBatch, NDArray[np.int64], list[BadRow]]:
    """Sets rows apart that have a whole number which its field's type does not hold.

    Args:
        columns: Of the rows.
        numbers: int64: of them, by which their lines are found.
        text: Lines.
        starts: int64: where they begin.
        ends: int64: where they end.
        first: The number of the first line.
    """
    if not any(_has_large(column) for column in columns.columns) or not _LARGE.search(text):
        return columns, numbers, []
    keep, bad = np.ones(len(numbers), np.bool_), []
    for n, number in enumerate(numbers.tolist()):
        line = text[starts[number - first] : ends[number - first]]
        if not _LARGE.search(line):
            continue
        row = loads(line)
        for field in columns.schema:
            if (found := _inexact(row.get(field.name), field.type, field.name)) is not None:
                where, value = found
                step = f"--type {shlex.quote(f'{field.name}=decimal(38,0)')} keeps it"
                reason = f"{shortened(str(value))} is larger than a number can be exactly: {step}"
                bad.append(BadRow(number, where, reason, line.strip()))
                keep[n] = False
                break
    return (columns, numbers, []) if not bad else (columns.filter(pa.array(keep)), numbers[keep], bad)


def _has_large(array: pa.Array) -> bool:
    if pa.types.is_struct(array.type):
        return any(_has_large(field) for field in array.flatten())
    if is_any_list(array.type):
        return _has_large(array.flatten())
    if not pa.types.is_floating(array.type) or array.null_count == len(array):
        return False
    bounds = pc.min_max(array).as_py()
    return bool(max(abs(bounds["min"]), abs(bounds["max"])) >= _WHOLE_IN_DOUBLES)


def _inexact(value: Any, type_: pa.DataType, path: str) -> tuple[str, int | Decimal] | None:
    """The first whole number that the type does not hold, and where it is."""
    if isinstance(value, (int, Decimal)) and pa.types.is_floating(type_) and not _is_exact(value):
        return path, value
    inner: list[tuple[Any, pa.DataType, str]] = []
    if isinstance(value, dict) and pa.types.is_struct(type_):
        inner = [(value.get(field.name), field.type, f"{path}.{field.name}") for field in type_]
    elif isinstance(value, list) and pa.types.is_list(type_):
        inner = [(item, type_.value_type, f"{path}[]") for item in value]
    found = (_inexact(*one) for one in inner)
    return next((one for one in found if one is not None), None)


def _is_exact(value: int | Decimal) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
