"""A field that is not there: the error names all that are, whether or not anything reads them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import ConfigurationError, JoinWindows, StreamsBuilder
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WEATHER = pa.struct([("wind", pa.float64()), ("humidity", pa.float64()), ("visib", pa.float64())])
FLIGHTS = pa.struct([("carrier", pa.string()), ("delay", pa.float64())])
MINUTE = JoinWindows.of_time_difference_with_no_grace(timedelta(minutes=1))


def to_table(builder: StreamsBuilder, path: str) -> None:
    builder.stream("flights").left_join(builder.table("weather"), {"delay": "left.delay", "x": path}).to("out")


def to_global(builder: StreamsBuilder, path: str) -> None:
    weather = builder.global_table("weather")
    builder.stream("flights").join(weather, "value.carrier", {"delay": "left.delay", "x": path}).to("out")


def of_tables(builder: StreamsBuilder, path: str) -> None:
    joined = builder.table("flights").join(builder.table("weather"), {"delay": "left.delay", "x": path})
    joined.to_stream().to("out")


def of_streams(builder: StreamsBuilder, path: str) -> None:
    weather = builder.stream("weather")
    builder.stream("flights").join(weather, {"delay": "left.delay", "x": path}, MINUTE).to("out")


@pytest.mark.parametrize("join", [to_table, to_global, of_tables, of_streams])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "right.humidty",
            "there is no field 'humidty': right has the fields wind, humidity, visib.*did you mean humidity?",
        ),
        ("left.carier", "there is no field 'carier': left has the fields carrier, delay.*did you mean carrier?"),
        ("right.zzz", "right has the fields wind, humidity, visib.*Next: one of: wind, humidity, visib"),
    ],
)
def test_all_fields_of_the_side_are_named(
    tmp_path: Path, join: Callable[[StreamsBuilder, str], None], path: str, message: str
) -> None:
    builder = StreamsBuilder("job")
    join(builder, path)
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("flights", [("JFK", {"carrier": "B6", "delay": 1.0}, 1)], (pa.string(), FLIGHTS))
    pipeline.archive("weather", [("JFK", {"wind": 1.0, "humidity": 2.0, "visib": 3.0}, 1)], (pa.string(), WEATHER))
    with pytest.raises(ConfigurationError, match=message):
        pipeline.run()
