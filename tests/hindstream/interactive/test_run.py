"""Jobs run from Python: slices, results, frames; in a loop that runs, twice in a row, and after an error."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import hindstream
from hindstream import ConfigurationError, HindstreamError, Job, StreamsBuilder
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders
from tests.hindstream.spark.orders_job import SINK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOB = f"{JOB_FILE}:job"


@pytest.fixture
def places(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Where a call finds its warehouse, which has the topic of orders."""
    monkeypatch.chdir(tmp_path)
    archive_orders(make_settings(tmp_path), orders(400))
    return {"warehouse": tmp_path / "warehouse", "state_dir": str(tmp_path / "state"), "engine": "local"}


def test_a_run_gives_counts_ids_frames_and_the_report(places: dict[str, Any]) -> None:
    first = hindstream.run(JOB, until="1970-01-02T00:00Z", **places)
    assert (first.job, first.commit, first.nothing_to_do) == ("orders", 1, None)
    assert first.run_id is not None
    assert Path(str(first.report)).is_file()
    assert first.counts.read > first.counts.duplicates > 0
    assert first.counts.unaccounted == first.counts.quarantined == 0
    assert first.counts.written == {SINK: len(first.sink(SINK))}
    assert first.ledger["orders-once"]["duplicate"] == first.counts.duplicates
    assert first.until_ms == DAY_MS

    second = hindstream.run(JOB, seal=True, **places)
    assert second.commit == 2
    assert first.counts.read + second.counts.read == 440
    whole, new = second.sink(SINK), second.sink(SINK, only_new=True)
    assert (len(whole), len(new)) == (
        sum(run.counts.written[SINK] for run in (first, second)),
        second.counts.written[SINK],
    )
    assert len(first.sink(SINK)) == first.counts.written[SINK]

    table = whole.to_arrow()
    names = ["partition", "offset", "timestamp", "key.key", "key.window_start", "key.window_end"]
    assert table.column_names == [*names, "value.orders", "value.amount", "headers"]
    assert sum(table["value.orders"].to_pylist()) == 400
    assert whole.to_arrow(flat=False)["key"].to_pylist()[0].keys() == {"key", "window_start", "window_end"}
    assert whole.to_pandas()["value.orders"].sum() == 400
    assert whole.to_polars()["value.orders"].sum() == 400
    assert new.to_arrow().num_rows == len(new)

    third = hindstream.run(JOB, **places)
    assert (third.run_id, third.commit, third.counts.read) == (None, 2, 0)
    assert "nothing new" in str(third.nothing_to_do)
    assert third.sink(SINK).to_arrow() == table
    assert len(third.sink(SINK, only_new=True)) == third.sink(SINK, only_new=True).to_arrow().num_rows == 0
    assert Path(str(third.report)).is_file()


def test_a_backfill_goes_slice_by_slice_and_is_not_repeated(places: dict[str, Any]) -> None:
    first = hindstream.backfill(JOB, start="1970-01-01", end="1970-01-03", timezone="UTC", **places)
    assert (first.commits, len(first.run_ids)) == ((1, 2), 2)
    whole = hindstream.backfill(JOB, start="1970-01-01", end="1970-01-06", timezone="UTC", seal=True, **places)
    assert [run.nothing_to_do is None for run in whole.runs[:4]] == [False, False, True, True]
    assert whole.counts.read + first.counts.read == 440
    assert len(first.sink(SINK)) + len(whole.sink(SINK, only_new=True)) == len(whole.sink(SINK))
    assert sum(whole.sink(SINK).to_arrow()["value.orders"].to_pylist()) == 400
    again = hindstream.backfill(JOB, start="1970-01-01", end="1970-01-06", timezone="UTC", **places)
    assert (again.commits, again.counts.read) == ((), 0)
    assert again.nothing_to_do is not None
    assert repr(again).startswith("BackfillResult('orders: ")
    assert "<td>before 1970-01-02 00:00 UTC</td>" in first._repr_html_()


def test_it_runs_in_a_loop_that_runs_twice_in_a_row_and_after_an_error(places: dict[str, Any]) -> None:
    def broken(batch: pa.RecordBatch) -> pa.Array:
        if len(batch):
            raise ValueError("it is <broken>")
        return batch["value"]

    def job(mapper: Any) -> Job:
        builder = StreamsBuilder("copies")
        builder.stream("orders").map_values(mapper).to("copies")
        return Job("copies", builder.build())

    async def cells() -> None:
        with pytest.raises(HindstreamError, match="it is <broken>") as raised:
            hindstream.run(job(broken), **places)
        assert raised.value._render_traceback_()[0].startswith("UserFunctionError: a mapper failed: ValueError")
        result = hindstream.run(job(lambda batch: batch["value"]), **places)
        assert result.counts.written == {"copies": 440}
        assert hindstream.run(job(lambda batch: batch["value"]), **places).nothing_to_do is not None

    asyncio.run(cells())


def test_a_file_is_read_anew(places: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    text = """\
from hindstream import Job, StreamsBuilder

builder = StreamsBuilder("x")
builder.stream("orders").to("NAME")
job = Job("NAME", builder.build())
"""
    for name in ("first-copy", "second-copy"):
        file.write_text(text.replace("NAME", name), encoding="utf-8")
        assert hindstream.run(f"{file}:job", **places).counts.written == {name: 440}


def test_what_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"warehous.*did you mean warehouse"):
        hindstream.run(JOB, warehous="x")
    with pytest.raises(ConfigurationError, match=r"setting until.*give start= and end="):
        hindstream.backfill(JOB, start="2013-01-01T00:00Z", end="2013-02-01T00:00Z", until="2013-01-01T00:00Z")
    with pytest.raises(ConfigurationError, match=r"setting end_of_input.*seal=True"):
        hindstream.run(JOB, end_of_input="seal")
    with pytest.raises(ConfigurationError, match="ends before it begins"):
        hindstream.backfill(JOB, start="2013-01-01T00:00Z", end="2012-01-01T00:00Z")
    with pytest.raises(ConfigurationError, match="there is no such file"):
        hindstream.run(str(tmp_path / "none.py"))


def test_a_topic_that_is_no_sink_and_a_library_that_is_not_there_say_what_to_do(
    places: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = hindstream.run(JOB, **places)
    with pytest.raises(ConfigurationError, match=rf"does not write this topic.*did you mean {SINK}"):
        result.sink(SINK[:-1])
    assert result.sink("orders-late").to_arrow().num_rows == len(result.sink("orders-quarantine")) == 0
    assert result.sinks == (SINK,)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigurationError, match=r"polars is not installed. Next: pip install polars"):
        result.sink(SINK).to_polars()
