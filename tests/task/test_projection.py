"""Fields that nobody looks at are not read, and nothing else changes by it."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import Materialized, Stores, StreamsBuilder, TimeWindows, count, sum_
from statelib.task.inputs import Inputs
from statelib.topology import Consumed, Topology
from tests.task.pipeline import Pipeline

VALUE = pa.struct([("long", pa.string()), ("a", pa.int64()), ("time", pa.int64())])
ROWS = [("k", None if i == 3 else {"long": "x" * 99, "a": i, "time": i * 7}, i * 10) for i in range(20)]


def topology(consumed: Consumed | None = None, **aggregates: object) -> Topology:
    builder = StreamsBuilder("job")
    (
        builder.stream("s", consumed or Consumed())
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace(timedelta(milliseconds=50)))
        .aggregate(aggregates)
        .to_stream()
        .to("out")
    )
    return builder.build()


def result(tmp_path, made: Topology, monkeypatch, **settings: object) -> tuple[object, object, list[str] | None]:
    read = []
    columns = Inputs._columns

    def spied(self, node, schema):
        read.append(columns(self, node, schema))
        return read[-1]

    monkeypatch.setattr(Inputs, "_columns", spied)
    pipeline = Pipeline(tmp_path, made, "job", **settings)
    pipeline.archive("s", ROWS, (pa.string(), VALUE))
    pipeline.run(100)
    pipeline.run()
    monkeypatch.undo()
    return pipeline.output("out"), pipeline.state(), read[0]


@pytest.mark.parametrize(
    ("aggregates", "fields"),
    [
        ({"n": count()}, ["value.a"]),  # of some field one sees whether there is a value
        ({"n": count(), "sum": sum_("a")}, ["value.a"]),
        ({"n": count("long"), "sum": sum_("a")}, ["value.long", "value.a"]),
    ],
    ids=str,
)
def test_answer_and_state_are_those_of_whole_values(tmp_path, monkeypatch, aggregates, fields) -> None:
    output, state, read = result(tmp_path / "some", topology(**aggregates), monkeypatch)
    assert read is not None
    assert [name for name in read if name.startswith("value")] == fields
    whole = result(tmp_path / "all", topology(**aggregates), monkeypatch, on_late_record="topic")
    assert whole[2] is None
    assert (output, state) == whole[:2]


def test_a_timestamp_in_the_value_is_read(tmp_path, monkeypatch) -> None:
    made = topology(Consumed().with_timestamp_extractor("time"), n=count(), sum=sum_("a"))
    rows = [row for row in ROWS if row[1] is not None]
    monkeypatch.setattr("tests.task.test_projection.ROWS", rows)
    _, _, read = result(tmp_path, made, monkeypatch)
    assert read is not None
    assert [name for name in read if name.startswith("value")] == ["value.a", "value.time"]


def test_records_that_are_kept_aside_are_kept_whole(tmp_path, monkeypatch) -> None:
    assert result(tmp_path, topology(n=count()), monkeypatch, on_bad_record="quarantine")[2] is None


@pytest.mark.parametrize("aggregates", [{"n": count()}, {"n": count(), "sum": sum_("a")}], ids=str)
def test_merged_streams_of_which_different_fields_are_read(tmp_path, aggregates) -> None:
    """Before they are merged one is filtered by a field that nobody else looks at."""

    def merged(*, whole: bool) -> list[object]:
        builder = StreamsBuilder("job")
        one, other = (builder.stream(topic, Consumed()) for topic in "sr")
        stream = one.filter(pc.starts_with(pc.field("value", "long"), "x")).merge(other)
        stream = stream.peek(lambda columns: None) if whole else stream
        stream.group_by_key().aggregate(aggregates).to_stream().to("out")
        pipeline = Pipeline(tmp_path / str(whole), builder.build(), "job")
        pipeline.archive("s", ROWS, (pa.string(), VALUE))
        pipeline.archive("r", ROWS, (pa.string(), VALUE))
        pipeline.run()
        return pipeline.output("out")

    assert merged(whole=False) == merged(whole=True)


@pytest.mark.thorough
@pytest.mark.parametrize("aggregates", [{"n": count()}, {"n": count("both"), "sum": sum_("a")}], ids=str)
@pytest.mark.parametrize("versioned", [False, True])
def test_a_chain_of_which_each_part_forwards_what_is_looked_at(tmp_path, aggregates, versioned) -> None:
    def chain(*, whole: bool) -> object:
        stores = Stores.persistent_versioned_key_value_store("t", timedelta(hours=1))
        builder = StreamsBuilder("job")
        table = builder.table("r", Materialized.as_(stores if versioned else Stores.persistent_key_value_store("t")))
        joiner = {"a": "left.a", "long": "left.long", "both": pc.add(pc.field("left", "a"), pc.field("right", "a"))}
        stream = builder.stream("s").filter(pc.not_equal(pc.field("value", "long"), "none"))
        stream = stream.deduplicate_by_key_value("time", timedelta(seconds=1)).left_join(table, joiner)
        stream = stream.peek(lambda columns: None) if whole else stream
        windows = stream.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(timedelta(milliseconds=50)))
        windows.aggregate(aggregates, Materialized.as_("windows")).to_stream().to("out")
        pipeline = Pipeline(tmp_path / str(whole), builder.build(), "job", batch_records=7)
        pipeline.archive("s", [row for row in ROWS for _ in range(2)], (pa.string(), VALUE))
        pipeline.archive("r", ROWS[::5], (pa.string(), VALUE))
        pipeline.run(100)
        pipeline.run()
        return pipeline.output("out"), pipeline.state()

    assert chain(whole=False) == chain(whole=True)
