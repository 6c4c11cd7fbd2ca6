"""Batches are taken, filtered and merged with all their columns together."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pyarrow as pa

from statelib.columns.windowed_type import KeyWindows
from statelib.records.batch import Batch, Uptake, concat_in_order
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows
from statelib.task.source_records import HEADERS_TYPE


def batch(sequences: list[int], *, windowed: bool = False) -> Batch:
    sequence = np.array(sequences, np.int64)
    names = pa.array([f"k{s}" for s in sequences])
    keys = KeyColumn(names)
    if windowed:
        keys = WindowedKeys(keys, Windows(sequence * 10, sequence * 10 + 10), KeyWindows("time", 10), sequence)
    return Batch(keys, sequence, names, sequence * 2, sequence, prior=names)


def test_take_keeps_columns_together() -> None:
    taken = batch([1, 2, 3], windowed=True).take(np.array([2, 0]))
    assert taken.key.to_pylist() == ["k3", "k1"]
    assert taken.timestamp.tolist() == [6, 2]
    assert taken.windows is not None
    assert taken.windows.start.tolist() == [30, 10]
    assert taken.prior is not None
    assert taken.prior.to_pylist() == ["k3", "k1"]


def test_a_filter_that_keeps_everything_copies_nothing() -> None:
    whole = batch([1, 2])
    assert whole.filter(np.array([True, True])) is whole
    assert whole.filter(np.array([False, True])).key.to_pylist() == ["k2"]


def test_a_filter_gives_what_take_does() -> None:
    header = pa.array([None, [{"key": "h", "value": b"1"}], None, None], HEADERS_TYPE)
    whole = replace(batch([1, 2, 3, 4], windowed=True), headers=header, is_latest=np.array([True, False, True, True]))
    keep = np.array([False, True, False, True])
    filtered, taken = whole.filter(keep), whole.take(np.array([1, 3]))
    for field in fields(Batch):
        a, b = (getattr(some, field.name) for some in (filtered, taken))
        match a:
            case KeyColumn():
                assert a.array.storage.equals(b.array.storage)
            case None:
                assert b is None
            case _:
                assert a.tolist() == b.tolist()


def test_merging_is_by_sequence_and_ties_by_input() -> None:
    merged, origin = concat_in_order([batch([1, 3, 3]), batch([2, 3])])
    assert merged.sequence.tolist() == [1, 2, 3, 3, 3]
    assert origin.tolist() == [0, 1, 0, 0, 1]


def test_a_mapper_sees_windows_as_columns() -> None:
    columns = batch([1], windowed=True).as_record_batch()
    assert columns.schema.names == ["key", "value", "timestamp", "window_start", "window_end"]
    assert columns.column("window_end").to_pylist() == [20]


def test_uptake_is_looked_up_by_sequence() -> None:
    none = np.zeros(3, np.int16)
    uptake = Uptake(10, np.array([5, 6, 7]), none, none.astype(np.int32), np.array([100, 101, 102]))
    assert uptake.stream_time_of(batch([12, 10])).tolist() == [7, 5]
