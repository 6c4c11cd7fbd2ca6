from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.aggregation.latest_headers import LatestHeaders
from statelib.task.source_records import HEADERS_TYPE

RECORDS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from([None, None, [], [{"key": "h", "value": b"x"}], [{"key": "h", "value": b"y"}]]),
    )
)


@given(st.lists(st.tuples(RECORDS, st.sets(st.integers(0, 6)))))
def test_each_slot_has_those_of_its_last_record(batches) -> None:
    latest, expected = LatestHeaders(), dict.fromkeys(range(7))
    for records, kept in batches:
        headers = pa.array([value for _, value in records], HEADERS_TYPE)
        slots = np.array([slot for slot, _ in records], dtype=np.int64)
        latest.update(headers, np.arange(len(records)), slots, 7)
        expected |= dict(records)
        assert latest.take(np.arange(7), HEADERS_TYPE).to_pylist() == list(expected.values())
        if kept:
            latest.keep(np.array(sorted(kept)))
            expected = dict.fromkeys(range(7)) | {new: expected[old] for new, old in enumerate(sorted(kept))}


def test_nothing_is_kept_of_records_without_headers_nor_of_those_that_are_replaced() -> None:
    latest, rows = LatestHeaders(), np.arange(1_000)
    latest.update(pa.nulls(1_000, HEADERS_TYPE), rows, rows % 10, 10)
    assert latest.memory_bytes() == 0
    for _ in range(100):
        latest.update(pa.array([[("name", b"value")]] * 1_000, HEADERS_TYPE), rows, rows % 10, 10)
    assert latest.memory_bytes() < 5_000
