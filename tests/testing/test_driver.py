"""The driver for tests of topologies: what a job would give, slice by slice."""

from __future__ import annotations

import gc
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from statelib import Named, StreamsBuilder, TestRecord, TimeWindows, Topology, TopologyTestDriver, Windowed, sum_
from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError

SALES = pa.struct([("amount", pa.int64())])


def topology() -> Topology:
    builder = StreamsBuilder("shop")
    windows = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
    sums = builder.stream("sales").group_by_key().windowed_by(windows).aggregate({"amount": sum_("amount")})
    sums.to_stream().to("sums")
    return builder.build()


def test_records_go_in_and_come_out_and_state_stays(tmp_path: Path) -> None:
    driver = TopologyTestDriver(topology(), tmp_path)
    sales = driver.create_input_topic("sales", pa.string(), SALES)
    sums = driver.create_output_topic("sums")
    assert sums.read_records_to_list() == []
    sales.pipe_input("a", {"amount": 3}, 1_000)
    sales.pipe_input("a", {"amount": 4}, datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC))
    minute = {"window_start": datetime.fromtimestamp(0, UTC), "window_end": datetime.fromtimestamp(60, UTC)}
    assert sums.read_records_to_list() == [
        TestRecord({"key": "a", **minute}, {"amount": 3}, 1_000),
        TestRecord({"key": "a", **minute}, {"amount": 7}, 2_000),
    ]
    sales.pipe_record_list([("a", {"amount": 5}, 3_000), ("b", {"amount": 1}, 3_000)])
    assert [value for _, value in sums.read_key_values_to_list()] == [{"amount": 12}, {"amount": 1}]
    assert sums.read_records_to_list() == []


def test_without_a_folder_it_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    driver = TopologyTestDriver(topology())
    driver.create_input_topic("sales", pa.string(), SALES).pipe_input("a", {"amount": 3}, 1_000)
    assert [value for _, value in driver.create_output_topic("sums").read_key_values_to_list()] == [{"amount": 3}]
    assert [*tmp_path.iterdir()]
    del driver
    gc.collect()
    assert not [*tmp_path.iterdir()]


def test_a_folder_is_one_drivers(tmp_path: Path) -> None:
    (tmp_path / "input.csv").touch()
    TopologyTestDriver(topology(), tmp_path).create_input_topic("sales", pa.string(), SALES)
    with pytest.raises(ConfigurationError, match="another test driver's topics and state.*leave the folder out"):
        TopologyTestDriver(topology(), tmp_path)


def test_partitions_and_errors_are_those_of_a_job(tmp_path: Path) -> None:
    driver = TopologyTestDriver(topology(), tmp_path, partitions=3)
    sales = driver.create_input_topic("sales", pa.string(), SALES)
    sales.pipe_record_list([(f"k{n}", {"amount": n}, n) for n in range(20)])
    assert {record.partition for record in driver.create_output_topic("sums").read_records_to_list()} == {0, 1, 2}
    sales.pipe_input("k", {"amount": 1}, -5)
    with pytest.raises(InputError, match="negative timestamp"):
        driver.replay()


def test_a_time_without_zone_is_refused(tmp_path: Path) -> None:
    sales = TopologyTestDriver(topology(), tmp_path).create_input_topic("sales", pa.string(), SALES)
    with pytest.raises(ConfigurationError, match=r"has no time zone .*Next: give milliseconds"):
        sales.pipe_input("a", {"amount": 1}, datetime(2024, 1, 1))  # noqa: DTZ001
    with pytest.raises(ConfigurationError, match="has no time zone"):
        sales.pipe_record_list([("a", {"amount": 1}, datetime(2024, 1, 1))])  # noqa: DTZ001


def test_topics_have_to_be_those_of_the_topology(tmp_path: Path) -> None:
    driver = TopologyTestDriver(topology(), tmp_path)
    with pytest.raises(ConfigurationError, match=r"does not read this topic.*sales"):
        driver.create_input_topic("sums")
    with pytest.raises(ConfigurationError, match=r"does not write this topic.*sums"):
        driver.create_output_topic("sales")
    with pytest.raises(ConfigurationError, match=r"not declared.*create_input_topic"):
        driver.create_output_topic("sums").read_records_to_list()


@pytest.mark.parametrize(
    ("value_type", "value", "timestamp", "message"),
    [
        (pa.string(), 5, 0, r"5 is not of type string.*topic words, part value"),
        (pa.int64(), "x", 0, "'x' is not of type int64"),
        (pa.int64(), 1.5, 0, r"1\.5 is not of type int64: it is no int"),
        (pa.int64(), 2**70, 0, "is not of type int64"),
        (pa.struct([("a", pa.int64())]), {"b": 1}, 0, "it has no field b"),
        (pa.struct([("a", pa.int64())]), {"a": 0.5}, 0, "it is no int"),
        (pa.list_(pa.int64()), [1, 2.5], 0, "it is no int"),
        (pa.string(), "\ud800", 0, "surrogates not allowed"),
        (pa.string(), "v", 2**63, "part timestamp"),
    ],
)
def test_what_a_topic_cannot_hold_is_refused_when_it_is_piped_in(
    tmp_path, value_type: pa.DataType, value: object, timestamp: int, message: str
) -> None:
    builder = StreamsBuilder("app")
    builder.stream("words").to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    words = driver.create_input_topic("words", value_type=value_type)
    with pytest.raises(ConfigurationError, match=message):
        words.pipe_input("key", value, timestamp)
    words.pipe_input("key", None, 1)
    assert [record.value for record in driver.create_output_topic("out").read_records_to_list()] == [None]


def echo(tmp_path: Path | None = None, **options) -> TopologyTestDriver:
    builder = StreamsBuilder("app")
    builder.stream("in").to("out")
    return TopologyTestDriver(builder.build(), tmp_path, **options)


def test_headers_go_in_and_come_out() -> None:
    driver = echo()
    topic, out = driver.create_input_topic("in"), driver.create_output_topic("out")
    topic.pipe_input("a", "x", 1, headers=[("trace", b"1"), ("empty", None)])
    topic.pipe_input(TestRecord("b", "y", 2, headers=(("trace", b"2"),)))
    topic.pipe_input("c", "z", 3)
    topic.pipe_input("v", timestamp=4)
    assert out.read_records_to_list() == [
        TestRecord("a", "x", 1, headers=(("trace", b"1"), ("empty", None))),
        TestRecord("b", "y", 2, headers=(("trace", b"2"),)),
        TestRecord("c", "z", 3),
        TestRecord(None, "v", 4),
    ]
    topic.pipe_input(TestRecord("b", "y", 2), timestamp=5)
    topic.pipe_input("w")
    assert out.read_records_to_list() == [TestRecord("b", "y", 5), TestRecord(None, "w", 0)]
    for wrong in [("trace", "text")], ["trace"], [(1, b"")]:
        with pytest.raises(ConfigurationError, match="is no header"):
            topic.pipe_input("a", "x", 1, headers=wrong)


def test_metrics_are_told_by_node_and_add_up() -> None:
    builder = StreamsBuilder("app")
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))
    builder.stream("in").group_by_key().windowed_by(windows).count(named=Named.as_("counts")).to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), partitions=2)
    topic = driver.create_input_topic("in")
    assert driver.metrics() == {}
    topic.pipe_record_list([("a", "x", 25), ("a", "x", 3), (None, "x", 26)])
    counts = driver.metrics()["counts"]
    assert (counts["late-record-drop-total"], counts["dropped-records-total"]) == (1, 2)
    assert counts["open-windows-current"] == 1
    topic.pipe_record_list([("a", "x", 4), ("a", "x", 26)])
    counts = driver.metrics()["counts"]
    assert (counts["late-record-drop-total"], counts["dropped-records-total"]) == (2, 3)
    assert counts["open-windows-current"] == 1, "a gauge does not add up"


def test_the_topics_own_clock_gives_times() -> None:
    driver = echo()
    start, step = datetime.fromtimestamp(1, UTC), timedelta(milliseconds=5)
    topic, out = driver.create_input_topic("in", start=start, auto_advance=step), driver.create_output_topic("out")
    topic.pipe_input("a", "1")
    topic.pipe_key_value_list([("a", "2"), ("a", "3")])
    topic.advance_time(timedelta(seconds=1))
    topic.pipe_value_list(["4"])
    topic.pipe_key_value_list([("a", "5"), ("a", "6")], 3_000, step)
    topic.pipe_value_list(["7"], datetime.fromtimestamp(4, UTC))
    read = out.read_records_to_list()
    assert [record.timestamp_ms for record in read] == [1_000, 1_005, 1_010, 2_015, 3_000, 3_005, 4_000]
    assert [record.key for record in read] == ["a", "a", "a", None, "a", "a", None]
    with pytest.raises(ConfigurationError, match="time cannot go back"):
        topic.advance_time(-step)
    with pytest.raises(ConfigurationError, match="there is an advance, but no start"):
        topic.pipe_value_list(["x"], advance=step)


def test_records_are_read_one_by_one_or_as_a_map() -> None:
    driver = echo()
    topic, out = driver.create_input_topic("in"), driver.create_output_topic("out")
    assert out.is_empty()
    assert driver.produced_topic_names() == set()
    with pytest.raises(ConfigurationError, match=r"no record to read.*topic out"):
        out.read_value()
    topic.pipe_key_value_list([("a", "1"), ("b", "2"), ("a", "3"), ("b", None), ("c", "4")])
    assert out.get_queue_size() == 5
    assert out.read_record() == TestRecord("a", "1", 0)
    assert driver.create_output_topic("out").read_key_value() == ("b", "2")
    assert out.read_value() == "3"
    assert not out.is_empty()
    assert out.read_key_values_to_map() == {"b": None, "c": "4"}
    topic.pipe_value_list(["5", "6"])
    assert out.read_values_to_list() == ["5", "6"]
    topic.pipe_value_list(["7"])
    with pytest.raises(ConfigurationError, match="a record has no key"):
        out.read_key_values_to_map()
    assert driver.produced_topic_names() == {"out"}


def test_keys_of_windows_and_structs_are_keys_of_the_map(tmp_path: Path) -> None:
    driver = TopologyTestDriver(topology(), tmp_path)
    driver.create_input_topic("sales", pa.string(), SALES).pipe_record_list([("a", {"amount": n}, n) for n in (3, 4)])
    assert driver.create_output_topic("sums").read_key_values_to_map() == {Windowed("a", 0, 60_000): {"amount": 7}}
    driver = echo()
    driver.create_input_topic("in", pa.struct([("x", pa.list_(pa.int64()))])).pipe_input({"x": [1, 2]}, "v")
    assert driver.create_output_topic("out").read_key_values_to_map() == {(("x", (1, 2)),): "v"}


def test_bad_records_end_the_replay_or_are_read_from_the_quarantine() -> None:
    bad = ("b", "y", -5)
    driver = echo()
    driver.create_input_topic("in").pipe_record_list([("a", "x", 1), bad])
    with pytest.raises(InputError, match="negative timestamp"):
        driver.replay()
    driver = echo(on_bad_record="quarantine")
    driver.create_input_topic("in").pipe_record_list([("a", "x", 1), bad])
    assert driver.create_output_topic("out").read_key_values_to_list() == [("a", "x")]
    (record,) = driver.read_quarantined_records()
    assert (record.key, record.value["value"]) == (b"b", b"y")
    assert (record.value["topic"], record.value["offset"], record.value["timestamp"]) == ("in", 1, -5)
    assert "negative timestamp" in record.value["reason"]
    assert driver.read_quarantined_records() == []


@pytest.mark.parametrize("on_bad_record", ["fail", "quarantine"])
def test_a_function_that_raises_ends_the_replay_whatever_becomes_of_bad_records(on_bad_record: str) -> None:
    def broken(batch: pa.RecordBatch) -> pa.Array:
        if "y" in batch["value"].to_pylist():
            raise ValueError("it is broken")
        return batch["value"]

    builder = StreamsBuilder("app")
    builder.stream("in").map_values(broken).to("out")
    driver = TopologyTestDriver(builder.build(), on_bad_record=on_bad_record)
    driver.create_input_topic("in").pipe_record_list([("a", "x", 1), ("a", "y", 2)])
    with pytest.raises(HindstreamError, match=r"a mapper failed: ValueError: it is broken.*test_driver\.py"):
        driver.replay()


def test_late_records_are_read(tmp_path: Path) -> None:
    driver = TopologyTestDriver(topology(), tmp_path)
    sales = driver.create_input_topic("sales", pa.string(), SALES)
    sales.pipe_record_list([("a", {"amount": 1}, 100_000), ("a", {"amount": 2}, 1)])
    assert driver.create_output_topic("sums").get_queue_size() == 1
    (late,) = driver.read_late_records()
    assert (late.timestamp_ms, late.value["offset"], late.value["value"]) == (1, 1, '{"amount":2}')
    assert driver.read_late_records() == []


def test_a_closed_driver_leaves_nothing_and_a_folder_of_ones_own_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with echo() as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 1)
        assert [*tmp_path.iterdir()]
    assert not [*tmp_path.iterdir()]
    with echo(tmp_path / "own") as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 1)
    assert (tmp_path / "own").is_dir()
