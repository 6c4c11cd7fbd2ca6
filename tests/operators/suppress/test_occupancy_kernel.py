from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.suppress.layout_kernel import FIGURES
from statelib.operators.suppress.occupancy_kernel import NO_BYTES, follow


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=15).filter(
        lambda rs: any(t for _, t in rs)
    ),
    st.data(),
)
def test_what_one_update_after_the_other_gives(records: list[tuple[int, bool]], data: st.DataObject) -> None:
    """Records move the clock on; those that are taken make an update."""
    stream_time = np.cumsum([step for step, _ in records])
    rows = np.flatnonzero([taken for _, taken in records])
    first = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=8)))
    is_new = [data.draw(st.booleans()) for _ in first]
    more = [data.draw(st.integers(-5, 5)) for _ in first]
    last_taken = int(stream_time[rows[-1]])
    due = sorted(data.draw(st.lists(st.integers(-2, last_taken), max_size=8)))
    due_bytes = [data.draw(st.integers(0, 5)) for _ in due]

    records_now, size, left = 7, 40, 0
    maxima, sums, triggers = [0, 0], [0, 0], []
    for update, row in enumerate(rows):
        records_now += sum(new for at, new in zip(first, is_new, strict=True) if at == update)
        size += sum(bytes_ for at, bytes_ in zip(first, more, strict=True) if at == update)
        maxima = [max(maxima[0], records_now), max(maxima[1], size)]
        while left < len(due) and due[left] <= stream_time[row]:
            triggers.append(update)
            records_now -= 1
            size -= due_bytes[left]
            left += 1
        sums = [sums[0] + records_now, sums[1] + size]

    figures = np.zeros(1, FIGURES)
    trigger, leaving = np.empty(len(due), np.int64), np.empty(len(due) + 1, np.int64)
    new_records, new_bytes, most_bytes = (np.full(len(due) + 1, fill, np.int64) for fill in (0, 0, NO_BYTES))
    more_of, due_at, bytes_due = (np.array(column, np.int64) for column in (more, due, due_bytes))
    follow(
        7, 40, stream_time, rows, np.array(first, np.int64), np.array(is_new, np.bool_), more_of, due_at, bytes_due,
        leaving, new_records, new_bytes, most_bytes, trigger, figures,
    )  # fmt: skip
    assert trigger.tolist() == triggers
    assert [figures[name][0] for name in ("max_records", "max_bytes")] == maxima
    assert [figures[name][0] for name in ("sum_records", "sum_bytes")] == sums
