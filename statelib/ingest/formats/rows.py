"""What a format's reader gives: rows of a file as columns, and the rows that cannot be read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot become a record.

    Attributes:
        row: Its number in the file, from 1; the header of a CSV file does not count.
        field: The field that is wrong; empty: the row as a whole.
        reason: What is wrong with it.
        raw: The row as it stands in the file, or as JSON where a format has no text.
    """

    row: int
    field: str
    reason: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Rows:
    """Neighbouring rows of a file.

    Attributes:
        columns: A column for each field.
        numbers: int64: the number of each row in its file, from 1, ascending.
        bad: Rows of the same part of the file that cannot be read, in any order.
        text_of: Gives the row of a number as it stands in the file; None: the columns have all that stood there.
    """

    columns: pa.RecordBatch
    numbers: NDArray[np.int64]
    bad: tuple[BadRow, ...] = ()
    text_of: Callable[[int], bytes] | None = None

    def bad_row(self, row: int, field: str, reason: str) -> BadRow:
        """One of the columns' rows as one that cannot become a record."""
        number = int(self.numbers[row])
        return BadRow(
            number, field, reason, as_json(self.columns, row) if self.text_of is None else self.text_of(number)
        )


def as_json(columns: pa.RecordBatch, row: int) -> bytes:
    """A row for a quarantine: its fields as JSON, and as text what JSON has not."""
    fields = zip(columns.schema.names, columns.columns, strict=True)
    return json.dumps({name: plain(column[row]) for name, column in fields}, default=str, ensure_ascii=False).encode()


def plain(value: pa.Scalar) -> Any:
    """A value as Python's; of a time that Python does not reach the number."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_struct(value.type):
            return {field.name: plain(value[n]) for n, field in enumerate(value.type)}
        if pa.types.is_nested(value.type) and value.values is not None:
            return [plain(item) for item in value.values]
        return value.value
