from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.topics.partitioner import hash_keys, partition_for
from tests.golden.check import check_file
from tests.golden.test_check import __file__ as golden_tests

keys = st.lists(st.none() | st.binary(max_size=20), max_size=30)


def test_golden_trace():
    from pathlib import Path  # noqa: PLC0415

    outcome = check_file(Path(golden_tests).parent / "data" / "partitioner.jsonl.gz")
    assert outcome.steps == 332
    assert outcome.differences == []


def murmur2(data: bytes) -> int:
    """One key at a time, as in the description of the hash."""
    state = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 % 2**32
        word = (word ^ word >> 24) * 0x5BD1E995 % 2**32
        state = state * 0x5BD1E995 % 2**32 ^ word
    if data[whole:]:
        state = (state ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 % 2**32
    state = (state ^ state >> 13) * 0x5BD1E995 % 2**32
    return state ^ state >> 15


@given(keys, st.integers(1, 50), st.integers(0, 100), st.integers(0, 5))
def test_like_one_key_at_a_time(values, partitions, null_keys_before, skipped):
    array = pa.array(values, pa.binary()).slice(skipped)
    expected, nulls = [], null_keys_before
    for value in values[skipped:]:
        expected.append(nulls % partitions if value is None else (murmur2(value) & 0x7FFFFFFF) % partitions)
        nulls += value is None
    chosen = partition_for(array, partitions, null_keys_before=null_keys_before)
    assert chosen.dtype == np.int32
    assert chosen.tolist() == expected


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.binary(3)])
def test_types_that_hold_bytes(type_):
    array = pa.array(["abc", None, "déf"[:2] + "g"] if "string" in str(type_) else [b"abc", None, b"def"], type_)
    assert hash_keys(array)[0] == 479470107  # the trace's


def test_no_keys():
    assert partition_for(pa.array([], pa.binary()), 3).tolist() == []
    assert partition_for(pa.array([None, None, None], pa.binary()), 2).tolist() == [0, 1, 0]
