from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.arrow_buffers import filtered, taken, taken_rows, valid_of

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


INNER = pa.struct([("s", pa.string()), ("n", pa.int64())])
VALUES = st.none() | st.fixed_dictionaries({
    "a": st.none() | st.integers(0, 9),
    "in": st.none() | st.fixed_dictionaries({"s": st.none() | st.text(max_size=3), "n": st.none() | st.integers(0, 9)}),
})  # fmt: skip


@given(st.lists(VALUES, min_size=1) | st.lists(VALUES.filter(bool), min_size=1), st.integers(0, 3), st.data())
def test_chosen_rows_are_those_that_arrow_chooses(
    values: list[dict[str, object] | None], start: int, data: st.DataObject
) -> None:
    array = pa.array(values, pa.struct([("a", pa.int64()), ("in", INNER)])).slice(min(start, len(values) - 1))
    chosen = np.array(data.draw(st.lists(st.integers(0, len(array) - 1))), np.int64)
    rows = pa.RecordBatch.from_arrays([array, array.field("a")], ["value", "a"])
    for some in (array, *array.flatten()):
        found = taken(some, pa.array(chosen))
        found.validate(full=True)
        assert found.equals(some.take(pa.array(chosen)))
    with_nulls = pa.array(data.draw(st.lists(st.none() | st.integers(0, len(array) - 1))), pa.int64())
    assert taken(array, with_nulls).to_pylist() == array.take(with_nulls).to_pylist()
    taken(array, with_nulls).validate(full=True)
    assert taken_rows(rows, chosen).equals(rows.take(pa.array(chosen)))
    keep = pa.array(data.draw(st.lists(st.booleans(), min_size=len(array), max_size=len(array))))
    assert filtered(array, keep).equals(array.filter(keep))


def test_a_struct_without_fields_has_rows() -> None:
    nothing = pa.array([{}, {}, {}], pa.struct([]))
    assert taken(nothing, pa.array([2, 0])).to_pylist() == [{}, {}]
    assert filtered(nothing, pa.array([True, False, False])).to_pylist() == [{}]
