"""What was computed for some rows, spread over all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.scatter import scatter

_ROW = pa.struct([("n", pa.int64()), ("inner", pa.struct([("text", pa.string())]))])


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (pa.int64(), [1, None, 3]),
        (pa.binary(), [b"a", b"", None]),
        (pa.list_(pa.int64()), [[1, 2], None, []]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "b", None]),
        (_ROW, [{"n": 1, "inner": {"text": "a"}}, None, {"n": None, "inner": None}]),
        (pa.struct([]), [{}, None, {}]),
    ],
)
@given(data=st.data())
def test_each_row_that_is_there_has_the_next_value(
    data_type: pa.DataType, values: list[object], data: st.DataObject
) -> None:
    there = data.draw(st.lists(st.booleans(), max_size=8))
    given_values = data.draw(st.lists(st.sampled_from(values), min_size=sum(there), max_size=sum(there)))
    of_rows = iter(given_values)
    spread = scatter(pa.array(given_values, data_type), np.array(there, dtype=np.bool_))
    spread.validate(full=True)
    assert spread.type == data_type
    assert spread.to_pylist() == [next(of_rows) if is_there else None for is_there in there]
