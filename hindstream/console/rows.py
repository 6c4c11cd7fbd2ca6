"""Rows of data for a person or a program: a table, JSON, an object a line, or CSV."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from rich import box
from rich.table import Table

from hindstream.console.output import standard_output
from statelib.columns.time_columns import python_values, time_texts
from statelib.serdes.json import readable_json

if TYPE_CHECKING:
    from collections.abc import Iterable

RowFormat = Literal["table", "json", "csv"]


_DIGITS = 15
"""Of a double in a table: more than these tell how sums are rounded (0.1 + 0.2), and not what they are."""


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch as Python values, columns of times as text in ISO 8601."""
    columns = [
        time_texts(column, "%Y-%m-%dT%H:%M:%SZ") if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    readable = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    return python_values(readable.to_struct_array())


def write_rows(
    rows: Iterable[dict[str, Any]],
    names: list[str],
    title: str,
    output: RowFormat,
    *,
    nothing: str = "There is nothing.",
) -> None:
    """Prints rows, one at a time where the format allows it.

    Args:
        rows: By name of the column.
        names: The columns.
        title: Of the table.
        output: The format; `readable_json` says how bytes and NaN are shown. In a table, bytes that are text are text.
        nothing: What stands in the place of a table without rows.
    """
    if output == "json":
        for row in rows:
            sys.stdout.write(f"{_text(row)}\n")
    elif output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(row[name]) for name in names] for row in rows)
    else:
        table = Table(*names, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in rows:
            table.add_row(*[_cell(_readable(row[name])) for name in names])
        standard_output().print(*([title, table] if table.row_count else [nothing]), sep="\n")


def _readable(value: Any) -> Any:
    """The same with text in the place of bytes that are printable UTF-8, and doubles without what rounding leaves."""
    if isinstance(value, dict):
        return {name: _readable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_readable(inner) for inner in value]
    if isinstance(value, float) and isfinite(value):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            text = value.decode()
            return text if text.isprintable() else value
    return value


def _cell(value: object) -> str:
    """A cell: nothing, a text as it is (bytes, decimals and NaN are texts in JSON), or JSON."""
    text = "" if value is None else value if isinstance(value, str) else _text(value)
    return json.loads(text) if text.startswith('"') and not isinstance(value, str) else text


def _text(value: object) -> str:
    return readable_json(value, separators=(", ", ": "))
