from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.time_columns import out_of_reach, out_of_reach_reason, python_values, time_texts
from statelib.columns.times import LAST_TIME_MS, instant_text
from statelib.errors.kinds import InputError
from statelib.operators.mappers.python_values import items_of
from statelib.serdes.json import json_text
from statelib.topics.parquet.schema import topic_schema

MS, US, S, PLAIN = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("s"), pa.timestamp("us")
INT64 = st.integers(-(2**63), 2**63 - 1)
YEAR_55840 = 1_700_000_000_000_000
NESTED = pa.struct([
    ("at", MS), ("all", pa.list_(MS)), ("by", pa.map_(pa.string(), S)), ("deep", pa.struct([("at", MS)])),
    ("n", pa.int64()),
])  # fmt: skip


def nested(number: int, where: str) -> pa.Array:
    """A column of two values, the second of which holds a time (seconds in the map), or has it beside it only."""
    value: dict[str, Any] = {"at": 0, "all": [1, None], "by": [("a", 2)], "deep": {"at": 3}, "n": number}
    if where == "all":
        value["all"] = [1, number]
    elif where == "by":
        value["by"] = [("a", 1), ("b", number)]
    elif where == "deep":
        value["deep"] = {"at": number}
    elif where == "at":
        value["at"] = number
    return pa.array([None, value, {"at": 0, "all": [], "by": None, "deep": None, "n": 0}], NESTED)


@pytest.mark.parametrize("where", ["at", "all", "by", "deep", "n"])
@given(number=INT64)
def test_what_no_topic_can_hold_is_what_cannot_be_cast(where: str, number: int) -> None:
    column = nested(number, where)
    far = out_of_reach(column)
    try:
        column.cast(topic_schema(pa.string(), NESTED).field("value").type)
    except pa.ArrowInvalid:
        assert far is not None
        assert far.tolist() == [False, True, False]
        assert "out of reach" in out_of_reach_reason(column, 1)
    else:
        last = LAST_TIME_MS if where != "by" else LAST_TIME_MS // 1000
        assert far is None or abs(number) > last, "microseconds before the last millisecond"


@given(st.lists(st.none() | INT64, max_size=5), st.sampled_from([MS, US, S, PLAIN]))
def test_every_time_has_a_value_and_a_text(numbers: list[int | None], arrow_type: pa.DataType) -> None:
    column = pa.array(numbers, pa.int64()).cast(arrow_type)
    a_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[arrow_type.unit]
    values, texts = python_values(column), time_texts(column, "%Y-%m-%dT%H:%M:%SZ").to_pylist()
    for number, value, text in zip(numbers, values, texts, strict=True):
        if number is None:
            assert value is text is None
        elif isinstance(value, datetime):
            assert value == (
                datetime(1970, 1, 1, tzinfo=value.tzinfo) + timedelta(microseconds=number * (10**6 // a_second))
            )
            assert text[:19] == value.replace(microsecond=0, tzinfo=None).isoformat()
        else:
            assert value == text
            ms = number * 1000 // a_second
            assert value[:9] in (instant_text(ms)[:9] if abs(ms) < 2**63 else f"{number} s")
    assert len(json_text(column)) == len(numbers)


def test_values_are_as_python_has_them_around_a_far_time() -> None:
    column = nested(YEAR_55840, "all")
    first = datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC)
    assert python_values(column)[1]["all"] == [first, "+55840-11-08T22:13:20.000Z"]
    assert python_values(column)[0] is None
    assert [python_values(column)[2][name] for name in ("all", "by", "deep", "n")] == [[], None, None, 0]
    assert python_values(nested(5, "all")) == nested(5, "all").to_pylist()
    by = nested(YEAR_55840 // 1000, "by")
    assert python_values(by)[1]["by"][1] == ("b", "+55840-11-08T22:13:20.000Z")
    assert json.loads(json_text(column)[1].as_py())["all"][1] == "+55840-11-08T22:13:20.000Z"


def test_a_function_is_never_given_a_time_that_python_lacks() -> None:
    with pytest.raises(InputError, match=r"\+55840-11-08T22:13:20.000Z.*year 9999"):
        items_of(nested(YEAR_55840, "deep"))
    assert items_of(nested(0, "deep")) == nested(0, "deep").to_pylist()


def test_none_of_many_is_out_of_reach() -> None:
    assert out_of_reach(pa.array(np.arange(3), pa.int64()).cast(MS)) is None
    assert out_of_reach(pa.array([2**63 - 1], pa.int64())) is None, "a number is no time"


def test_days_and_durations_that_python_does_not_have_are_texts() -> None:
    days = pa.array([0, -1, -1_000_000, 4_000_000, None], pa.int32()).cast(pa.date32())
    assert python_values(days) == [date(1970, 1, 1), date(1969, 12, 31), "-0768-02-04", "+12921-08-18", None]
    assert python_values(pa.array([{"d": day} for day in (None,)], pa.struct([("d", pa.date32())]))) == [{"d": None}]
    nested = pa.StructArray.from_arrays([days.slice(3, 1)], ["day"])
    assert python_values(nested) == [{"day": "+12921-08-18"}]
    durations = pa.array([1, None, 2**62], pa.duration("s"))
    assert python_values(durations) == ["1 s", None, f"{2**62} s"]
