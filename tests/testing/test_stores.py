"""What stores hold is read in a test: of the DSL's operators, and of custom processors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    InputError,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    TopologyTestDriver,
    ValueAndTimestamp,
    VersionedRecord,
    Windowed,
    count,
    export_changelog,
    open_state,
)

if TYPE_CHECKING:
    from pathlib import Path

MINUTE_MS = 60_000


def driver_of(builder: StreamsBuilder, **options: object) -> TopologyTestDriver:
    return TopologyTestDriver(builder.build(), **options)  # type: ignore[arg-type]


def test_a_tables_last_values_are_read_in_the_order_of_their_keys() -> None:
    builder = StreamsBuilder("app")
    builder.stream("clicks").group_by_key().aggregate({"n": count()}, Materialized.as_("clicks-by-user"))
    driver = driver_of(builder, partitions=3)
    clicks = driver.create_input_topic("clicks")
    store = driver.get_key_value_store("clicks-by-user")
    assert (store.get("a"), [*store.all()], store.approximate_num_entries()) == (None, [], 0)
    assert [*store.range("a", "b")] == [*store.prefix_scan("a")] == []
    clicks.pipe_record_list([(key, "x", time) for time, key in enumerate(["b", "a", "ab", "c", "a"])])
    assert store.get("a") == {"n": 2}
    assert store.get("z") is None
    assert [key for key, _ in store.all()] == ["a", "ab", "b", "c"]
    assert [key for key, _ in store.reverse_all()] == ["c", "b", "ab", "a"]
    assert [*store.range("ab", "b")] == [("ab", {"n": 1}), ("b", {"n": 1})]
    assert [key for key, _ in store.reverse_range(to_key="ab")] == ["ab", "a"]
    assert [key for key, _ in store.prefix_scan("a")] == [key for key, _ in store.prefix_scan(b"a")] == ["a", "ab"]
    assert store.approximate_num_entries() == 4
    assert driver.get_timestamped_key_value_store("clicks-by-user").get("a") == ValueAndTimestamp({"n": 2}, 4)
    assert store.to_arrow().num_rows == 4
    clicks.pipe_input("a", "x", 9)
    assert store.get("a") == {"n": 3}
    with pytest.raises(InputError, match="5 is no key of this store"):
        store.get(5)


def test_windows_are_read_by_key_and_time() -> None:
    builder = StreamsBuilder("app")
    windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(hours=1))
    builder.stream("clicks").group_by_key().windowed_by(windows).aggregate({"n": count()}, Materialized.as_("minutes"))
    driver = driver_of(builder)
    clicks = driver.create_input_topic("clicks")
    clicks.pipe_record_list([("b", "x", 1), ("a", "x", 2), ("a", "x", 3), ("a", "x", MINUTE_MS)])
    store = driver.get_window_store("minutes")
    assert store.fetch("a", 0) == {"n": 2}
    assert store.fetch("a", datetime.fromtimestamp(60, UTC)) == {"n": 1}
    assert store.fetch("a", 1) is None
    assert [*store.fetch("a", 0, MINUTE_MS)] == [(0, {"n": 2}), (MINUTE_MS, {"n": 1})]
    assert [start for start, _ in store.backward_fetch("a", 0, MINUTE_MS)] == [MINUTE_MS, 0]
    keys = [Windowed("a", 0, MINUTE_MS), Windowed("b", 0, MINUTE_MS), Windowed("a", MINUTE_MS, 2 * MINUTE_MS)]
    assert [window for window, _ in store.all()] == keys
    assert [window for window, _ in store.backward_all()] == keys[::-1]
    assert [window for window, _ in store.fetch_all(1, MINUTE_MS)] == keys[2:]
    assert [window for window, _ in store.fetch_range("b", None, 0, MINUTE_MS)] == [keys[1]]
    assert [window for window, _ in store.backward_fetch_all(0, MINUTE_MS - 1)] == keys[1::-1]
    assert [window for window, _ in store.backward_fetch_range("a", "a", 0, MINUTE_MS)] == keys[::-2]
    assert driver.get_timestamped_window_store("minutes").fetch("a", 0) == ValueAndTimestamp({"n": 2}, 3)


def test_sessions_are_read_by_key_and_bounds() -> None:
    builder = StreamsBuilder("app")
    sessions = SessionWindows.of_inactivity_gap_and_grace(timedelta(milliseconds=10), timedelta(hours=1))
    builder.stream("clicks").group_by_key().windowed_by(sessions).aggregate({"n": count()}, Materialized.as_("visits"))
    driver = driver_of(builder)
    driver.create_input_topic("clicks").pipe_record_list([("a", "x", 1), ("b", "x", 2), ("a", "x", 5), ("a", "x", 30)])
    store = driver.get_session_store("visits")
    assert [*store.fetch("a")] == [(Windowed("a", 1, 5), {"n": 2}), (Windowed("a", 30, 30), {"n": 1})]
    assert [window.window_start for window, _ in store.backward_fetch("a")] == [30, 1]
    assert store.fetch_session("a", 1, 5) == {"n": 2}
    assert store.fetch_session("a", 1, 6) is None
    assert [window for window, _ in store.find_sessions("a", 6, 40)] == [Windowed("a", 30, 30)]
    assert [window.key for window, _ in store.all()] == ["b", "a", "a"]
    first, second, of_b = Windowed("a", 1, 5), Windowed("a", 30, 30), Windowed("b", 2, 2)
    assert [window for window, _ in store.backward_find_sessions("a", 0, 40)] == [second, first]
    assert [window for window, _ in store.fetch_range("a", "b")] == [of_b, first, second]
    assert [window for window, _ in store.backward_fetch_range("b", None)] == [of_b]
    assert [window for window, _ in store.find_sessions_of_range("a", None, 3, 29)] == [first]
    assert [window for window, _ in store.backward_find_sessions_of_range(None, "a", 0, 30)] == [second, first]
    assert [window for window, _ in store.find_sessions_by_end(2, 5)] == [of_b, first]


def test_versions_are_read_as_of_a_time() -> None:
    builder = StreamsBuilder("app")
    versioned = Stores.persistent_versioned_key_value_store("prices", timedelta(days=1))
    builder.table("prices", Materialized.as_(versioned)).to_stream().to("out")
    driver = driver_of(builder)
    prices = driver.create_input_topic("prices", value_type=pa.int64())
    prices.pipe_record_list([("a", 1, 10), ("a", 2, 20), ("b", 7, 25), ("a", None, 30), ("a", 3, 40)])
    store = driver.get_versioned_key_value_store("prices")
    assert store.get("a") == VersionedRecord(3, 40)
    assert store.get("a", 25) == VersionedRecord(2, 20)
    assert store.get("a", 35) is None
    assert store.history("a") == [VersionedRecord(3, 40), VersionedRecord(2, 20, 30), VersionedRecord(1, 10, 20)]
    assert [*store.all()] == [("a", VersionedRecord(3, 40)), ("b", VersionedRecord(7, 25))]
    assert [key for key, _ in store.all(as_of=35)] == ["b"]


class Latest(Processor):
    """Keeps the last value of each key."""

    def process(self, record: Record) -> None:
        self.context.get_state_store("latest").put(record.key, record.value)


def test_a_custom_processors_store_is_read_and_others_are_refused_by_name() -> None:
    builder = StreamsBuilder("app")
    supplier = Stores.persistent_key_value_store("latest")
    builder.add_state_store(Stores.key_value_store_builder(supplier, StringSerde(), StringSerde()))
    builder.stream("clicks").process(Latest, "latest")
    driver = driver_of(builder)
    driver.create_input_topic("clicks").pipe_input("a", "x", 1)
    assert [*driver.get_key_value_store("latest").all()] == [("a", "x")]
    assert driver.get_timestamped_key_value_store("latest").get("a") == ValueAndTimestamp("x", -1)
    assert "latest" in driver.get_all_state_stores()
    assert driver.get_state_store("latest").kind == "key-value"
    with pytest.raises(ConfigurationError, match=r"of kind key-value, not window.*use get_key_value_store\('latest'\)"):
        driver.get_window_store("latest")
    with pytest.raises(ConfigurationError, match=r"has no such store.*one of: .*latest"):
        driver.get_key_value_store("lates")


class Collect(Processor):
    """Keeps all values of a key and minute, and tells how many there are."""

    def process(self, record: Record) -> None:
        store = self.context.get_state_store("all")
        store.put(record.key, record.value, record.timestamp // MINUTE_MS * MINUTE_MS)
        values = [value for _, value in store.fetch(record.key, 0, record.timestamp)]
        self.context.forward(record.with_value(" ".join(values)))


def test_a_store_that_retains_duplicates_goes_on_in_the_next_slice(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    minute = timedelta(minutes=1)
    supplier = Stores.persistent_window_store("all", timedelta(hours=1), minute, retain_duplicates=True)
    builder.add_state_store(Stores.window_store_builder(supplier, StringSerde(), StringSerde()))
    builder.stream("in").process(Collect, "all").to("out")
    driver = driver_of(builder, folder=tmp_path)
    topic, out = driver.create_input_topic("in"), driver.create_output_topic("out")
    topic.pipe_record_list([("a", "x", 1), ("a", "y", 2), ("b", "x", 3)])
    assert out.read_values_to_list() == ["x", "x y", "x"]
    topic.pipe_record_list([("a", "x", 4), ("a", "z", MINUTE_MS)])
    assert out.read_values_to_list() == ["x y x", "x y x z"]
    assert driver.get_window_store("all").fetch("a", 0) == ["x", "y", "x"], "as data a window has a list"
    with (
        open_state(tmp_path / "warehouse", "topology-test-driver", "all", state_dir=tmp_path / "state") as store,
        pytest.raises(ConfigurationError, match=r"several values.*leave the store out"),
    ):
        export_changelog(store, 0)


class CollectWithTimes(Processor):
    """The same with the timestamp of each value, latest first."""

    def process(self, record: Record) -> None:
        store = self.context.get_state_store("all")
        value = ValueAndTimestamp.make(record.value, record.timestamp)
        store.put(record.key, value, record.timestamp // MINUTE_MS * MINUTE_MS)
        values = [f"{value}@{at}" for _, (value, at) in store.backward_fetch(record.key, 0, record.timestamp)]
        self.context.forward(record.with_value(" ".join(values)))


def test_so_does_one_with_timestamps(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    minute = timedelta(minutes=1)
    supplier = Stores.persistent_timestamped_window_store("all", timedelta(hours=1), minute, retain_duplicates=True)
    builder.add_state_store(Stores.timestamped_window_store_builder(supplier, StringSerde(), StringSerde()))
    builder.stream("in").process(CollectWithTimes, "all").to("out")
    driver = driver_of(builder, folder=tmp_path)
    topic, out = driver.create_input_topic("in"), driver.create_output_topic("out")
    topic.pipe_record_list([("a", "x", 1), ("a", "y", 2)])
    assert out.read_values_to_list() == ["x@1", "y@2 x@1"]
    topic.pipe_record_list([("a", "x", 4), ("a", "z", MINUTE_MS)])
    assert out.read_values_to_list() == ["x@4 y@2 x@1", f"z@{MINUTE_MS} x@4 y@2 x@1"]
    with open_state(tmp_path / "warehouse", "topology-test-driver", "all", state_dir=tmp_path / "state") as store:
        assert store.read()["value"].to_pylist()[0] == [
            {"value": "x", "timestamp": 1}, {"value": "y", "timestamp": 2}, {"value": "x", "timestamp": 4},
        ]  # fmt: skip
        with pytest.raises(ConfigurationError, match=r"several values.*leave the store out"):
            export_changelog(store, 0)


def test_operators_own_stores_are_tables() -> None:
    builder = StreamsBuilder("app")
    builder.stream("clicks").deduplicate_by_key(timedelta(minutes=1)).to("once")
    driver = driver_of(builder)
    driver.create_input_topic("clicks").pipe_record_list([("a", "x", 1), ("a", "x", 2)])
    (store,) = driver.get_all_state_stores().values()
    assert (store.kind, store.to_arrow()["key"].to_pylist()) == ("deduplication", ["a"])
    builder = StreamsBuilder("app")
    builder.stream("clicks").to("out")
    with pytest.raises(ConfigurationError, match="the topology is stateless"):
        driver_of(builder).get_state_store("any")
