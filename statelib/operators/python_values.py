"""What Python functions of a user give, record by record: as Arrow columns, and what is said if they fail."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.errors import ConfigurationError, HindstreamError, InputError
from statelib.key_column import WindowedKeys
from statelib.state import Windowed
from statelib.time_columns import far_time_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.key_column import KeyColumn


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Around calls of a user's functions; ``what`` they are, for the error.

    Raises:
        ConfigurationError: One has raised anything that is not Hindstream's own.
    """
    try:
        yield
    except HindstreamError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{what} failed: {type(error).__name__}: {error}", next_step="mend the function; the traceback is above"
        ) from error


def items_of(column: pa.Array) -> list[Any]:
    """The values of a column as Python's, for a user's functions.

    Raises:
        InputError: One is or holds a time that Python's datetimes do not have: they end with the year 9999.
    """
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # pyarrow says either
        what = (
            f"Python's functions cannot be given the time {far_time_text(column)}: its datetimes end with the year 9999"
        )
        step = "leave such records out before (filter with a column expression), or set them apart: max_future"
        raise InputError(what, next_step=step) from None


def column_of(items: Sequence[Any], arrow_type: pa.DataType, *, who: str, next_step: str) -> pa.Array:
    """Python values as a column.

    Args:
        items: The values; None is null.
        arrow_type: Of the column.
        who: Whose values they are and what was done: ``"a processor forwarded the key"``.
        next_step: For the error.

    Raises:
        ConfigurationError: One is not of that type; it is shown.
    """
    try:
        return pa.array(items, arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        wrong = next(item for item in items if not _fits(item, arrow_type))
        raise ConfigurationError(f"{who} {wrong!r}, which is not of type {arrow_type}", next_step=next_step) from error


def python_keys(keys: KeyColumn, chosen: pa.Array | None = None) -> list[Any]:
    """Keys as Python values, windowed ones as `Windowed`; ``chosen``: the indices (int64) of some, null for none."""
    if not isinstance(keys, WindowedKeys):
        return items_of(keys.plain if chosen is None else keys.plain.take(chosen))
    rows = range(len(keys)) if chosen is None else chosen.to_pylist()
    inner, start, end = python_keys(keys.without_windows), keys.windows.start.tolist(), keys.windows.end.tolist()
    return [None if row is None or inner[row] is None else Windowed(inner[row], start[row], end[row]) for row in rows]


def _fits(item: Any, arrow_type: pa.DataType) -> bool:
    try:
        pa.array([item], arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
