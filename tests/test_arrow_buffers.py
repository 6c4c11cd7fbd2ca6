from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.arrow_buffers import valid_of

ARRAYS = {
    "number": lambda values: pa.array(values, pa.int64()),
    "boolean": lambda values: pa.array(values, pa.int64()).cast(pa.bool_()),
    "struct": lambda values: pa.array([v if v is None else {"a": v or None} for v in values], pa.struct({"a": "int8"})),
    "dictionary": lambda values: pa.array(values, pa.int64()).dictionary_encode(),
    "null": lambda values: pa.nulls(len(values)),
}


@pytest.mark.parametrize("of", ARRAYS)
@given(values=st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=40), data=st.data())
def test_valid_of_is_what_is_not_null(of: str, values: list[int | None], data: st.DataObject) -> None:
    array = ARRAYS[of](values)
    for some in (array, array.slice(data.draw(st.integers(0, len(values))))):
        valid = valid_of(some)
        assert valid.dtype == bool
        assert valid.tolist() == [value is not None for value in some.to_pylist()]
