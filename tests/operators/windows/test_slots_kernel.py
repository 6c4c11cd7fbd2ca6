from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.windows import slots_kernel as window_slots
from statelib.operators.windows.slots_kernel import WindowSlots


@given(
    st.lists(st.tuples(st.integers(-1, 40), st.integers(0, 50), st.integers(0, 4)), max_size=60),
    st.sampled_from([0, 3, 1 << 58, (1 << 62) - 3, 1 << 62]), st.sampled_from([1, 1 << 57]),
    st.sampled_from([0, 1, 4, 1 << 20]), st.data(),
)  # fmt: skip
def test_slots_are_numbered_by_first_appearance(
    records: list[tuple[int, int, int]], origin: int, apart: int, cells_per_slot: int, data: st.DataObject
) -> None:
    """Whether they are found in a grid, by hash, or first so and then so."""
    slots = WindowSlots()
    known: list[tuple[int, int]] = []
    last = np.iinfo(np.int64).max - 4
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(window_slots, "_CELLS_PER_SLOT", cells_per_slot)
        for first in range(0, len(records), 7):
            chunk = [
                (key, min(origin + apart * number, last), count if key >= 0 else 0)
                for key, number, count in records[first : first + 7]
            ]
            first_new = len(known)
            pairs = [(row, (key, at + i)) for row, (key, at, count) in enumerate(chunk) for i in range(count)]
            for _, window in pairs:
                if window not in known:
                    known.append(window)
            keys, starts, counts = (np.array(column, dtype=np.int64) for column in zip(*chunk, strict=True))
            rows, found = slots.find(keys, starts, counts, len(pairs))
            assert rows.tolist() == [row for row, _ in pairs]
            assert found.tolist() == [known.index(window) for _, window in pairs]
            firsts = [next(i for i, (_, window) in enumerate(pairs) if window == new) for new in known[first_new:]]
            assert slots.first_updates(first_new).tolist() == firsts
            if known and data.draw(st.booleans()):
                kept = sorted(data.draw(st.sets(st.integers(0, len(known) - 1))))
                slots.keep(np.array(kept, dtype=np.int64))
                known = [known[i] for i in kept]
    assert list(zip(slots.key_code.tolist(), slots.window.tolist(), strict=True)) == known


@pytest.mark.parametrize("keys", [100, 1_000])
def test_slots_grow(keys: int) -> None:
    slots = WindowSlots()
    ones = np.ones(5_000, dtype=np.int64)
    for batch in range(4):
        of_record = np.arange(5_000) % keys + batch * keys
        windows = np.arange(5_000) // 2_000 + batch
        _, found = slots.find(of_record, windows, ones, 5_000)
        assert len(slots) == 3 * keys * (batch + 1)
        assert (slots.key_code[found] == of_record).all()
        assert (slots.window[found] == windows).all()
    rows, _ = slots.find(ones, ones, 0 * ones, 0)
    assert len(rows) == 0


def test_many_keys_take_no_grid() -> None:
    """A million keys, each in a single one of a hundred windows: a grid would take hundreds of bytes for each."""
    slots = WindowSlots()
    numbers = np.arange(1_000_000)
    slots.find(numbers, numbers % 100, np.ones(1_000_000, dtype=np.int64), 1_000_000)
    assert slots.memory_bytes() <= 64 * 1_000_000


def test_a_record_in_more_windows_than_there_are_places() -> None:
    slots = WindowSlots()
    _, found = slots.find(np.array([3]), np.array([0]), np.array([5_000]), 5_000)
    assert found.tolist() == list(range(5_000))


def test_times_that_lie_far_apart() -> None:
    slots = WindowSlots()
    windows = np.array([0, 1 << 46, 2, 0])
    _, found = slots.find(np.array([1, 1, 1, 1]), windows, np.ones(4, dtype=np.int64), 4)
    assert found.tolist() == [0, 1, 2, 0]
    assert slots.memory_bytes() < 1 << 20
