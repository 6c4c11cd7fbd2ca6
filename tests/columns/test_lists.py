"""Lists as Arrow may lay them out: of a slice, of a fixed size, and with elements behind a null row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.lists import lengths_of, parents_of
from statelib.columns.time_columns import out_of_reach
from statelib.columns.times import LAST_TIME_MS
from statelib.operators.mappers.mapping import Path
from statelib.operators.serialized_sizes import serialized_bytes

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
FAR_S = LAST_TIME_MS // 1_000 + 1
ITEMS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "number": (pa.int64(), [1, None]),
    "header": (HEADER, [{"key": "h", "value": b"1"}, {"key": "i", "value": None}]),
    "time": (pa.timestamp("s"), [0, None, FAR_S]),
}


@st.composite
def lists(draw: st.DrawFn, of: str, *, fixed: bool = False) -> pa.Array:
    """A part of an array of lists, some of whose elements are behind a null."""
    item, values = ITEMS[of]
    size = st.just(2) if fixed else st.integers(0, 3)
    sizes = draw(st.lists(size, max_size=6))
    elements = pa.array(draw(st.lists(st.sampled_from(values), min_size=sum(sizes), max_size=sum(sizes))), item)
    mask = pa.array(draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes))), pa.bool_())
    if fixed:
        array = pa.FixedSizeListArray.from_arrays(elements, 2, mask=mask)
    else:
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), pa.int32())
        array = pa.ListArray.from_arrays(offsets, elements, mask=mask)
    return array[draw(st.integers(0, len(sizes))) :]


@pytest.mark.parametrize("fixed", [False, True])
@given(data=st.data())
def test_each_element_has_its_row(data: st.DataObject, fixed: bool) -> None:
    array = data.draw(lists("number", fixed=fixed))
    rows = array.to_pylist()
    assert lengths_of(array).tolist() == [len(row or ()) for row in rows]
    assert parents_of(array).tolist() == [n for n, row in enumerate(rows) for _ in row or ()]
    sizes = [sum(8 for item in row or () if item is not None) for row in rows]
    assert serialized_bytes(array).tolist() == sizes


@given(lists("header"))
def test_a_header_is_of_its_record(headers: pa.Array) -> None:
    columns = pa.record_batch({"headers": headers})
    expected = [dict(map(dict.values, row or ())).get("h") for row in headers.to_pylist()]
    assert Path(("headers", "h")).map(columns).to_pylist() == expected


@pytest.mark.parametrize("fixed", [False, True])
@given(data=st.data())
def test_a_time_out_of_reach_is_of_its_row(data: st.DataObject, fixed: bool) -> None:
    array = data.draw(lists("time", fixed=fixed))
    far = out_of_reach(array)
    seconds = array.cast(pa.list_(pa.int64(), 2) if fixed else pa.list_(pa.int64())).to_pylist()
    expected = [any(abs(time or 0) > LAST_TIME_MS // 1_000 for time in row or ()) for row in seconds]
    assert (np.zeros(len(array), np.bool_) if far is None else far).tolist() == expected
