"""What goes into a topology in a test, and what comes out (Kafka's ``TestRecord``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.columns.time_columns import python_values
from statelib.columns.windowed import Windowed
from statelib.errors.kinds import ConfigurationError
from statelib.settings.durations import ms_since_1970

if TYPE_CHECKING:
    from statelib.operators.processors.definition import Headers

_LONGEST_SHOWN = 60
_WINDOWED = {"key", "window_start", "window_end"}


@dataclass(frozen=True, slots=True)
class TestRecord:
    """A record to pipe in, or one that was read (Kafka's ``TestRecord``).

    Attributes:
        key: As Python data; a windowed key is a dict with ``key``, ``window_start`` and ``window_end``.
        value: As Python data; None: a tombstone.
        timestamp_ms: Its timestamp.
        partition: The partition of the output topic; of a record that is piped in, its key decides.
        headers: Pairs of a name and of bytes or None.
    """

    __test__ = False  # pytest is not to collect it

    key: Any
    value: Any
    timestamp_ms: int
    partition: int = 0
    headers: Headers = ()


def records_of(table: pa.Table, partition: int) -> list[TestRecord]:
    """The records of one partition of a topic archive."""
    times = table["timestamp"].cast(pa.int64()).to_pylist()
    rows = python_values(table.select(["key", "value"]).to_struct_array())
    headers = table["headers"].to_pylist()
    return [
        TestRecord(row["key"], row["value"], time, partition, tuple((each["key"], each["value"]) for each in of or ()))
        for row, time, of in zip(rows, times, headers, strict=True)
    ]


def is_windowed(key: Any) -> bool:
    """Whether a key has a window: it is the dict of a windowed key."""
    return isinstance(key, Mapping) and set(key) == _WINDOWED


def hashable(key: Any) -> Any:
    """The key itself, where a dict can have it; else a `Windowed` (a key with a window), or tuples of what is in it."""
    if is_windowed(key):
        return Windowed(hashable(key["key"]), *(ms_since_1970(key[end]) for end in ("window_start", "window_end")))
    if isinstance(key, Mapping):
        return tuple((name, hashable(part)) for name, part in key.items())
    return tuple(map(hashable, key)) if isinstance(key, list) else key


def header_rows(headers: Sequence[tuple[str, bytes | None]]) -> list[dict[str, Any]]:
    """Headers as a topic archive has them.

    Raises:
        ConfigurationError: One is no pair of a name and bytes.
    """
    for header in headers:
        match header:
            case (str(), bytes() | None):
                continue
        raise ConfigurationError(f"{header!r} is no header", next_step='write headers=[("name", b"value")]')
    return [{"key": name, "value": value} for name, value in headers]


def check_fits(value: object, type_: pa.DataType, **where: object) -> None:
    """Looks whether Arrow takes a value for what it is: no number is cut, no field of another name left out.

    Raises:
        ConfigurationError: It does not.
    """
    shown = repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"the {type(value).__name__}"
    try:
        pa.array([value], type_)
        misfit = _misfit(value, type_)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        misfit = str(error).partition("\n")[0]
    if misfit is not None:
        step = "give another value, or declare the topic's types: create_input_topic(topic, key_type, value_type)"
        raise ConfigurationError(f"{shown} is not of type {type_}: {misfit}", next_step=step, **where)


def _misfit(value: Any, type_: pa.DataType) -> str | None:
    """What Arrow would lose of a value that it takes; None: nothing."""
    if pa.types.is_integer(type_) and isinstance(value, float):
        return "it is no int"
    if pa.types.is_struct(type_) and isinstance(value, Mapping):
        unknown = [str(name) for name in value if type_.get_field_index(str(name)) < 0]
        parts = [_misfit(part, type_.field(name).type) for name, part in value.items() if name not in unknown]
        return f"it has no field {unknown[0]}" if unknown else next((part for part in parts if part), None)
    if pa.types.is_list(type_) and isinstance(value, (list, tuple)):
        return next((part for item in value if (part := _misfit(item, type_.value_type))), None)
    return None
