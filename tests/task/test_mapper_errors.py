"""A mapper's error says which record and which line of the user's function it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import ConfigurationError, StreamsBuilder, per_record
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib import KStream


def whole(columns: pa.RecordBatch) -> pa.Array:
    if pc.any(pc.equal(columns.column("value"), 7)).as_py():
        raise ZeroDivisionError("seven")  # line of `whole`
    return columns.column("value")


def one(value: int) -> int:
    return 10 // (value - 7)  # line of `one`


def line_of(marked: str) -> int:
    with Path(__file__).open(encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, start=1) if line.rstrip().endswith(f"# line of `{marked}`"))


@pytest.mark.parametrize("function", ["whole", "one"])
@pytest.mark.parametrize(
    "step",
    [
        lambda s, of: s.map_values(of).to("out"),
        lambda s, of: s.filter(pc.field("value") > 3).map_values(of).to("out"),
        lambda s, of: s.select_key(of).to("out"),
        lambda s, of: s.group_by_key().sum(of).to_stream().to("out"),
        lambda s, of: s.group_by(of).count().to_stream().to("out"),
        lambda s, of: s.to_table().map_values(of).to_stream().to("out"),
    ],
    ids=["map_values", "after a filter", "select_key", "sum", "group_by", "table"],
)  # fmt: skip
def test_the_record_and_the_line(tmp_path: Path, step: Callable[[KStream, Any], None], function: str) -> None:
    builder = StreamsBuilder("job")
    mapper = whole if function == "whole" else per_record(one, pa.int64(), "value")
    stream = builder.stream("in")
    step(stream, mapper)
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("in", [("k", n, 1_000 + n) for n in range(20)], (pa.string(), pa.int64()))
    with pytest.raises(ConfigurationError, match="a mapper failed: ZeroDivisionError") as raised:
        pipeline.run()
    place = raised.value.place
    assert (place["topic"], place["partition"], place["offset"]) == ("in", 0, 7)
    assert (place["file"], place["line"]) == (__file__, line_of(function))
    assert str(place["node"]).startswith("K")
