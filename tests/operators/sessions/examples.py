"""Records for properties of sessions: few keys, long enough and late enough for sessions to merge, close and expire."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from statelib.operators.windows.definition import SessionWindows
from tests.operators.chain import Record

WINDOWS = st.builds(SessionWindows, st.integers(0, 12), st.integers(0, 15))
_KEYS = st.sampled_from(["a"] * 6 + [None, "", "ab", "b", "a\0", "a\0\0\0\0\0\0\0\0\0"])


def session_records(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Record]]:
    """Times move on by some milliseconds a record; many records are late."""
    steps = st.tuples(_KEYS, values, st.integers(0, 6), st.just(0) | st.integers(0, 45))
    return (st.lists(steps, max_size=10) | st.lists(steps, min_size=20, max_size=60)).map(_records)


def _records(steps: list[tuple[Any, Any, int, int]]) -> list[Record]:
    now = 0
    records = []
    for key, value, moved, late in steps:
        now += moved
        records.append(Record(key, value, max(0, now - late)))
    return records
