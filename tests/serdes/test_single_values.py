"""Single values have the bytes that whole columns have."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import InputError
from statelib.serdes import serde_for
from statelib.serdes.single_values import decoder, encoder, from_bytes, to_bytes

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
BOUNDS = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint8(): (0, 2**8 - 1),
    pa.uint16(): (0, 2**16 - 1),
    pa.uint32(): (0, 2**32 - 1),
    pa.uint64(): (0, 2**64 - 1),
}
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **{arrow_type: st.integers(*bounds) for arrow_type, bounds in BOUNDS.items()},
    pa.float64(): st.floats() | st.integers(-5, 5),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(),
    pa.large_string(): st.text(),
    pa.binary(): st.binary(),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    STRUCT: st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | st.text()}),
}


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])))
def test_the_bytes_of_a_column(typed: tuple[pa.DataType, Any]) -> None:
    arrow_type, value = typed
    serde = serde_for(arrow_type)
    raw = to_bytes(value, serde)
    assert raw == encoder(serde)(value) == serde.serialize(pa.array([value], arrow_type))[0].as_py()
    assert raw is not None
    for back in (from_bytes(raw, serde), decoder(serde)(raw)):
        assert back == value or (math.isnan(value) and math.isnan(back))
        assert type(back) is type(pa.array([value], arrow_type)[0].as_py())


def test_none_and_bytes_stay() -> None:
    for serde in (None, serde_for(pa.int64())):
        assert to_bytes(None, serde) is encoder(serde)(None) is None
        assert from_bytes(None, serde) is None
    assert to_bytes(b"x", None) == from_bytes(b"x", None) == encoder(None)(b"x") == decoder(None)(b"x") == b"x"


@pytest.mark.parametrize(
    ("arrow_type", "value"),
    [
        (pa.int8(), 128),
        (pa.uint64(), -1),
        (pa.int64(), 2**63),
        (pa.int64(), "1"),
        (pa.string(), 1),
        (pa.string(), "\ud800"),
        (pa.float64(), "x"),
        (STRUCT, 3),
    ],
    ids=str,
)
def test_what_is_of_another_type_is_refused(arrow_type: pa.DataType, value: Any) -> None:
    for encode in (lambda item: to_bytes(item, serde_for(arrow_type)), encoder(serde_for(arrow_type))):
        with pytest.raises(InputError, match="is no value of type"):
            encode(value)


@pytest.mark.parametrize(("arrow_type", "raw"), [(pa.int64(), b"short"), (pa.string(), b"\xff")], ids=str)
def test_bytes_that_are_no_value_are_refused(arrow_type: pa.DataType, raw: bytes) -> None:
    for decode in (lambda raw: from_bytes(raw, serde_for(arrow_type)), decoder(serde_for(arrow_type))):
        with pytest.raises(InputError, match="cannot be decoded"):
            decode(raw)
