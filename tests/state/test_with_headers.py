"""Stores that keep the headers of records with their values (KIP-1271)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import (
    AggregationWithHeaders,
    ConfigurationError,
    InputError,
    Materialized,
    StoreFormat,
    Stores,
    ValueTimestampHeaders,
    Windowed,
    count,
    export_changelog,
    open_state,
)
from statelib.serdes.json import JsonSerde
from statelib.testing.driver import TopologyTestDriver
from tests.changelog.test_rebuild import head_of, rebuilt
from tests.kafka.test_headers import EVENTS, STORES, keeping
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

HEADERS = (("by", b"x"), ("none", None), ("by", b""))
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
MINUTE_MS = 60_000


def test_key_value(where: Path | None) -> None:
    supplier = Stores.persistent_timestamped_key_value_store_with_headers("s")
    if where is None:
        supplier = Stores.in_memory_key_value_store("s")
    builder = Stores.timestamped_key_value_store_with_headers_builder(supplier, pa.string(), pa.int64())
    with builder.build().init(where) as store:
        store.put("a", ValueTimestampHeaders.make(1, 10, HEADERS))
        store.put("b", ValueTimestampHeaders(2, 20))
        assert store.get("a") == ValueTimestampHeaders(1, 10, HEADERS)
        assert list(store.all()) == [("a", ValueTimestampHeaders(1, 10, HEADERS)), ("b", ValueTimestampHeaders(2, 20))]
        store.put("a", ValueTimestampHeaders(None, 30))
        assert store.delete("b") == ValueTimestampHeaders(2, 20)
        assert list(store.all()) == []
        assert ValueTimestampHeaders.make(None, 1) is None
        with pytest.raises(InputError, match="1 has no headers"):
            store.put("a", 1)
        with pytest.raises(InputError, match="timestamp -1 is negative"):
            store.put("a", ValueTimestampHeaders(1, -1))


def test_windows(where: Path | None) -> None:
    supplier = Stores.persistent_timestamped_window_store_with_headers("s", HOUR, MINUTE)
    if where is None:
        supplier = Stores.in_memory_window_store("s", HOUR, MINUTE)
    builder = Stores.timestamped_window_store_with_headers_builder(supplier, pa.string(), pa.int64())
    with builder.build().init(where) as store:
        store.put("a", ValueTimestampHeaders(1, 10, HEADERS), 0)
        store.put("a", ValueTimestampHeaders(2, MINUTE_MS), MINUTE_MS)
        assert store.fetch("a", 0) == ValueTimestampHeaders(1, 10, HEADERS)
        assert list(store.fetch("a", 1, MINUTE_MS)) == [(MINUTE_MS, ValueTimestampHeaders(2, MINUTE_MS))]
        store.put("a", None, 0)
        assert [window.window_start for window, _ in store.all()] == [MINUTE_MS]
    duplicates = Stores.persistent_timestamped_window_store_with_headers("s", HOUR, MINUTE, True)
    if where is not None:
        several = Stores.timestamped_window_store_with_headers_builder(duplicates, pa.string(), pa.int64())
        with several.build().init(where / "several") as store:
            values = [ValueTimestampHeaders(1, 5, HEADERS), ValueTimestampHeaders(1, 6)]
            for value in values:
                store.put("a", value, 0)
            assert [value for _, value in store.fetch("a", 0, MINUTE_MS)] == values


def test_sessions(where: Path | None) -> None:
    supplier = Stores.persistent_session_store_with_headers("s", HOUR)
    if where is None:
        supplier = Stores.in_memory_session_store("s", HOUR)
    builder = Stores.session_store_with_headers_builder(supplier, pa.string(), pa.struct([("n", pa.int64())]))
    with builder.build().init(where) as store:
        store.put(Windowed("a", 1, 5), AggregationWithHeaders.make({"n": 1}, HEADERS))
        assert store.fetch_session("a", 1, 5) == AggregationWithHeaders({"n": 1}, HEADERS)
        assert list(store.fetch("a")) == [(Windowed("a", 1, 5), AggregationWithHeaders({"n": 1}, HEADERS))]
        store.put(Windowed("a", 1, 5), AggregationWithHeaders(None))
        assert store.fetch_session("a", 1, 5) is None
        assert AggregationWithHeaders.make(None) is None
        with pytest.raises(InputError, match="has no headers"):
            store.put(Windowed("a", 1, 5), {"n": 1})


def test_the_test_driver_shows_them(tmp_path: Path) -> None:
    builder = keeping()
    builder.stream("events").group_by_key().aggregate({"n": count()}, Materialized.as_("counted"))
    driver = TopologyTestDriver(builder.build(), tmp_path)
    driver.create_input_topic("events").pipe_record_list([("a", "x1", 61_000), ("a", "y2", 62_000)])
    headers = (("by", b"y"), ("none", None))
    kept = ValueTimestampHeaders("y2", 62_000, headers)
    assert driver.get_timestamped_key_value_store_with_headers("latest").get("a") == kept
    assert driver.get_timestamped_window_store_with_headers("minutes").fetch("a", MINUTE_MS) == kept
    visits = driver.get_session_store_with_headers("visits")
    assert visits.fetch_session("a", MINUTE_MS, MINUTE_MS) == AggregationWithHeaders("y2", headers)
    with pytest.raises(ConfigurationError, match=r"keeps no headers.*use get_key_value_store\('counted'\)"):
        driver.get_timestamped_key_value_store_with_headers("counted")
    with pytest.raises(ConfigurationError, match="of kind window, not session"):
        driver.get_session_store_with_headers("minutes")


def test_slices_batches_and_memory_do_not_matter_and_changelogs_rebuild_them(tmp_path: Path) -> None:
    topology, states = keeping().build(), {}
    logged = [store.name for sub in topology.sub_topologies for store in sub.stores]
    for name, cuts, settings in (
        ("whole", [None], {}),
        ("cut", [700_000, 750_000, None], {"batch_records": 3, "memory_budget_bytes": 1}),
    ):
        pipeline = Pipeline(tmp_path / name, topology, changelogs=logged, **settings)
        pipeline.archive("events", EVENTS, (pa.string(), pa.string()), partitions=2)
        for cut in cuts:
            pipeline.run(cut)
        states[name] = pipeline.state()
        assert rebuilt(pipeline, head_of(pipeline)) == states[name]
    assert states["cut"] == states["whole"]


def test_values_and_headers_as_data_and_in_the_applications_bytes(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, keeping().build())
    pipeline.archive("events", [("a", "x1", 61_000)], (pa.string(), pa.string()))
    pipeline.run(None)
    headers = [{"key": "by", "value": b"x"}, {"key": "none", "value": None}]
    quoted = StoreFormat(value=JsonSerde(pa.string()))
    with open_state(tmp_path / "warehouse", "job", state_dir=tmp_path / "read") as state:
        for store in map(state.store, STORES):
            assert state.store(store.name).read("latest")["value"].to_pylist() == [{"value": "x1", "headers": headers}]
            for form, value in ((StoreFormat(), b"x1"), (quoted, b'"x1"')):
                (row,) = (row for batch in export_changelog(store, 0, form) for row in batch.to_pylist())
                assert (row["value"], row["headers"]) == (value, headers)
