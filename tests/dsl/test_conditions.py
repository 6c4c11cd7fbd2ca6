"""The methods that take ``where=`` give what the same functions give in ``aggregate``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    count,
    max_,
    mean_,
    min_,
    sum_,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = pc.field("value", "x") > 2
ROW = pa.struct([("g", pa.string()), ("x", pa.int64())])
TEN_MS = timedelta(milliseconds=10)
ROWS = [("a", 3), ("b", 1), ("a", 2), ("a", 9), ("b", None), ("b", 5), ("a", 7), ("c", 0)]
FUNCTIONS: dict[str, Any] = {"count": count, "sum": sum_, "min": min_, "max": max_, "mean": mean_}
GROUPED: dict[str, Callable[[StreamsBuilder], Any]] = {
    "keys": lambda b: b.stream("in").group_by_key(),
    "windows": lambda b: b.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(TEN_MS)),
    "sessions": lambda b: b.stream("in").group_by_key().windowed_by(
        SessionWindows.of_inactivity_gap_with_no_grace(TEN_MS)
    ),
    "sliding": lambda b: b.stream("in").group_by_key().windowed_by(
        SlidingWindows.of_time_difference_with_no_grace(TEN_MS)
    ),
    "table": lambda b: b.table("in").group_by("value.g", "value"),
}  # fmt: skip


def results(grouped: str, aggregate: Callable[[Any], Any]) -> list[Any]:
    builder = StreamsBuilder("app")
    aggregate(GROUPED[grouped](builder)).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    topic = driver.create_input_topic("in", value_type=ROW)
    topic.pipe_record_list([(key, {"g": "one", "x": x}, 4 * n) for n, (key, x) in enumerate(ROWS)])
    return list(driver.create_output_topic("out").read_values_to_list())


@pytest.mark.parametrize("grouped", GROUPED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_condition(grouped: str, name: str) -> None:
    if grouped == "table" and name in {"min", "max"}:
        return
    of = [] if name == "count" else ["x"]
    short = results(grouped, lambda some: getattr(some, name)(*of, where=LARGE))
    long = results(grouped, lambda some: some.aggregate({"result": FUNCTIONS[name](*of, where=LARGE)}))
    without = results(grouped, lambda some: getattr(some, name)(*of))
    assert short
    assert short != without
    assert short == [value and value["result"] for value in long]
