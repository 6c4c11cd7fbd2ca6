"""The columns of a change stay together, and out-of-order changes are told apart."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statelib.operators.tables.change import as_stream, only_latest, without_empty
from statelib.records.batch import Batch
from statelib.records.key_column import KeyColumn


def changes(is_latest: np.ndarray | None = None) -> Batch:
    none = np.arange(4)
    value, prior = pa.array([1, None, None, 4]), pa.array([None, None, 3, 4])
    keys = KeyColumn(pa.array(["a", "b", "a", "c"]))
    return Batch(keys, none, value, none * 10, none, prior=prior, is_latest=is_latest)


LATE = np.array([True, True, False, True])


def test_only_latest_leaves_out_and_counts_the_others() -> None:
    latest, out_of_order = only_latest(changes(is_latest=LATE))
    assert (latest.key.to_pylist(), latest.prior.to_pylist(), out_of_order) == (["a", "b", "c"], [None, None, 4], 1)
    assert latest.is_latest is None
    everything = changes()
    assert only_latest(everything) == (everything, 0)


def test_a_change_from_nothing_to_nothing_can_be_left_out() -> None:
    assert without_empty(changes()).key.to_pylist() == ["a", "a", "c"]
    assert len(without_empty(as_stream(changes()))) == 4


def test_taking_records_takes_whole_changes() -> None:
    taken = changes(is_latest=LATE).take(np.array([2, 0]))
    assert taken.is_latest is not None
    assert (taken.is_latest.tolist(), taken.prior.to_pylist()) == ([False, True], [3, None])


def test_a_stream_knows_nothing_of_the_past() -> None:
    stream = as_stream(changes(is_latest=LATE))
    assert stream.prior is None
    assert stream.is_latest is None
    assert stream.value.to_pylist() == [1, None, None, 4]
