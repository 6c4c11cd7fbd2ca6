"""What the tests of table operators have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.operators.task import Record
from tests.reference.table import Change

if TYPE_CHECKING:
    from typing import Any

    from statelib.records.batch import Batch

KEYS = st.sampled_from(["a", "a", "a", "b", "c", None])
NUMBERS = st.none() | st.integers(0, 9)


@st.composite
def updates(draw: st.DrawFn, values: st.SearchStrategy[Any] = NUMBERS, parents: tuple[int, ...] = (0,)) -> list[Record]:
    """Out of order, with equal times, null keys and tombstones; mostly one hot key. Sometimes late by a lot."""
    now = draw(st.sampled_from([0, 40, 1_700_000_000_000]))
    records = []
    for row in range(draw(st.integers(0, 30))):
        now += draw(st.sampled_from([0, 0, 1, 1, 5, 30]))
        timestamp = max(0, now - draw(st.sampled_from([0, 0, 0, 1, 5, 10, 11, 40])))
        parent = draw(st.sampled_from(parents))
        records.append(Record(draw(KEYS), draw(values), timestamp, row, parent))
    return records


CUTS = st.lists(st.integers(1, 29), max_size=6)
HOW = st.sampled_from([0, 0, 1, 3])
"""After how many batches there is a flush and a restart; 0: never."""


def changes_of(batches: list[Batch]) -> list[Change]:
    """What a table has forwarded."""
    rows = []
    for batch in batches:
        count = len(batch)
        old = [None] * count if batch.prior is None else batch.prior.to_pylist()
        latest = [True] * count if batch.is_latest is None else batch.is_latest.tolist()
        rows += zip(batch.key.to_pylist(), batch.value.to_pylist(), old, batch.timestamp.tolist(), latest, strict=True)
    return [Change(*row) for row in rows]
