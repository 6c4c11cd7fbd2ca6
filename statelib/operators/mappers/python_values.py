"""What Python functions of a user take and give, record by record, as Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.columns.time_columns import far_time_text
from statelib.columns.windowed import Windowed
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.errors.user_lines import defined_at
from statelib.records.key_column import WindowedKeys

_SHOWN = 200
"""Characters of a value."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.records.key_column import KeyColumn


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


def column_of(
    items: Sequence[Any],
    arrow_type: pa.DataType,
    *,
    who: str,
    next_step: str,
    functions: Sequence[object] = (),
    sequence_of: Callable[[int], int | None] | None = None,
) -> pa.Array:
    """Python values as a column.

    Args:
        items: The values; None is null.
        arrow_type: Of the column.
        who: Whose values they are and what was done: ``"a processor forwarded the key"``.
        next_step: For the error.
        functions: What has given them; the error says where the first of the user's own is defined.
        sequence_of: Gives the sequence of the record that one comes from, by its place; None: not known.

    Raises:
        ConfigurationError: One is not of that type; it is shown, and its own type.
    """
    try:
        return pa.array(items, arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        wrong = next((place for place, item in enumerate(items) if not _fits(item, arrow_type)), None)
        what = f"{who} what is not of type {arrow_type}: {error}"
        if wrong is not None:
            given = items[wrong]
            what = f"{who} {_shortened(repr(given))}, which is not of type {arrow_type} but {type(given).__name__}"
        told = ConfigurationError(what, next_step=next_step, **defined_at(functions))
        told.sequence = None if wrong is None or sequence_of is None else sequence_of(wrong)
        raise told from error


def python_keys(keys: KeyColumn, chosen: pa.Array | None = None) -> list[Any]:
    """Keys as Python values, windowed ones as `Windowed`; ``chosen``: the indices (int64) of some, null for none."""
    if not isinstance(keys, WindowedKeys):
        return items_of(keys.plain if chosen is None else keys.plain.take(chosen))
    rows = range(len(keys)) if chosen is None else chosen.to_pylist()
    inner, start, end = python_keys(keys.without_windows), keys.windows.start.tolist(), keys.windows.end.tolist()
    return [None if row is None or inner[row] is None else Windowed(inner[row], start[row], end[row]) for row in rows]


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _fits(item: Any, arrow_type: pa.DataType) -> bool:
    try:
        pa.array([item], arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
