"""What a store with timestamps takes as a value."""

from __future__ import annotations

from typing import Any

from statelib.errors.kinds import InputError
from statelib.operators.tables.value_and_timestamp import ValueAndTimestamp
from statelib.records.batch import NO_TIMESTAMP


def with_timestamp(value: Any, store: str) -> tuple[Any, int]:
    """(value, timestamp in ms) of what was given to ``put``; (None, `NO_TIMESTAMP`) of None.

    Raises:
        InputError: It is no pair of a value and a timestamp, or the timestamp is negative.
    """
    if value is None:
        return None, NO_TIMESTAMP
    if not isinstance(value, ValueAndTimestamp):
        step = "ValueAndTimestamp.make(value, timestamp)"
        raise InputError(f"{value!r} has no timestamp", store=store, next_step=step)
    if value.timestamp < 0:
        raise InputError(f"timestamp {value.timestamp} is negative", store=store)
    return value
