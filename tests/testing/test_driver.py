"""The driver for tests of topologies: what a job would give, slice by slice."""

from __future__ import annotations

import gc
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from statelib import StreamsBuilder, TestRecord, TimeWindows, Topology, TopologyTestDriver, sum_
from statelib.errors.kinds import ConfigurationError, InputError

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
    with pytest.raises(ConfigurationError, match=r"has no time zone\. Next: give milliseconds"):
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
