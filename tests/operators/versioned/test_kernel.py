"""Timelines that were loaded in two parts, against those that were loaded whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.versioned.kernel import NO_ROW, Timelines

KEYS, END = 2, 30
EVERYONE = np.arange(KEYS)


class Step(NamedTuple):
    """A put, or a look-up where ``row`` is None."""

    code: int
    time: int
    row: int | None


timelines = st.lists(st.dictionaries(st.integers(0, END), st.booleans(), max_size=6), min_size=KEYS, max_size=KEYS)
codes, starts = st.integers(0, KEYS - 1), st.lists(st.integers(0, END + 1), min_size=KEYS, max_size=KEYS)
rows = st.none() | st.sampled_from([NO_ROW, 100, 101])


def carried_out(timelines: Timelines, steps: list[Step]) -> list[int]:
    """What the look-ups among ``steps`` find."""
    puts = np.array([(i, *step) for i, step in enumerate(steps) if step.row is not None], np.int64).reshape(-1, 4)
    asks = np.array([(i, *step[:2]) for i, step in enumerate(steps) if step.row is None], np.int64).reshape(-1, 3)
    found: list[int] = timelines.apply(tuple(puts.T.copy()), tuple(asks.T.copy())).found.tolist()  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("kip", [True, False])
@given(
    stored=timelines,
    known_from=starts,
    older=st.integers(0, 2),
    late=st.lists(st.builds(Step, codes, st.integers(0, END), rows), max_size=8),
    any_time=st.lists(st.builds(Step, codes, st.integers(0, END + 5), rows), max_size=8),
)
def test_what_is_loaded_later_is_as_if_it_had_been_there(
    kip: bool, stored: list[dict[int, bool]], known_from: list[int], older: int, late: list[Step], any_time: list[Step]
) -> None:
    whole, parts = (Timelines(retention_ms=1000, stream_time=END, kip=kip) for _ in range(2))
    history = [(code, time) for code in range(KEYS) for time in sorted(stored[code])]
    key, valid_from = np.array(history, np.int64).reshape(-1, 2).T.copy()
    row = np.array([i if stored[code][time] else NO_ROW for i, (code, time) in enumerate(history)], np.int64)
    remembered = np.array([True, False])

    def offsets_of(key: np.ndarray) -> np.ndarray:
        return np.searchsorted(key, np.arange(KEYS + 1))

    # What is valid at or after the time asked for, and some that came before.
    ends = np.array([next((t for c, t in history if c == code and t > time), END + 2) for code, time in history], int)
    is_read = ends >= np.array(known_from)[key] - older
    for loaded, some in ((whole, np.ones(len(key), bool)), (parts, is_read)):
        loaded.make_room(KEYS)
        loaded.load(EVERYONE, offsets_of(key[some]), valid_from[some], row[some], remembered)
    late = [step for step in late if step.time >= known_from[step.code]]
    assert carried_out(whole, late) == carried_out(parts, late)
    parts.extend_back(EVERYONE, np.array(known_from), offsets_of(key), valid_from, row)
    for left, right in zip(whole.versions(EVERYONE), parts.versions(EVERYONE), strict=True):
        assert left.tolist() == right.tolist()
    assert carried_out(whole, any_time) == carried_out(parts, any_time)
