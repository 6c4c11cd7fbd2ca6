"""``VersionedKeyValueStore`` by KIP-889's names, over a folder and in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    ConfigurationError,
    CorruptedDataError,
    InputError,
    MultiVersionedKeyQuery,
    Stores,
    ValueAndTimestamp,
    VersionedKeyQuery,
    VersionedKeyValueStore,
    VersionedRecord,
)
from statelib.metrics.node_metrics import NodeMetrics
from tests.reference.versioned_store import KipStore

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.state import StoreBuilder, VersionedBytesStoreSupplier

UNDEFINED = VersionedKeyValueStore.PUT_RETURN_CODE_VALID_TO_UNDEFINED
NOT_PUT = VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT


def supplier(where: Path | None, retention_ms: int = 100, interval_ms: int | None = 10) -> VersionedBytesStoreSupplier:
    make = Stores.in_memory_versioned_key_value_store if where is None else Stores.persistent_versioned_key_value_store
    interval = None if interval_ms is None else timedelta(milliseconds=interval_ms)
    return make("rates", timedelta(milliseconds=retention_ms), interval)


def builder(where: Path | None, retention_ms: int = 100) -> StoreBuilder[VersionedKeyValueStore]:
    return Stores.versioned_key_value_store_builder(supplier(where, retention_ms), pa.string(), pa.string())


def test_the_kips_interface(where: Path | None) -> None:
    with builder(where).build().init(where) as store:
        assert store.put("EUR", "1.10", 10) == UNDEFINED == -1
        assert store.put("EUR", "1.30", 30) == UNDEFINED
        assert store.put("EUR", "1.20", 20) == 30
        assert store.put("EUR", "1.25", 20) == 30, "the second put with a timestamp replaces the first"
        assert store.get("EUR") == VersionedRecord("1.30", 30)
        assert store.get("EUR", 19) == store.get("EUR", as_of=10) == VersionedRecord("1.10", 10)
        assert store.get("EUR", 9) is None
        assert store.delete("EUR", 25) == VersionedRecord("1.25", 20), "delete gives what it deleted"
        assert store.get("EUR", 29) is None
        assert store.delete("none", 40) is None
        assert store.put("GBP", None, 45) == UNDEFINED
        assert store.get("GBP") is None
        assert (store.stream_time, store.history_retention_ms, store.segment_interval_ms) == (45, 100, 10)


def test_what_is_older_than_the_retention_is_refused(where: Path | None) -> None:
    metrics = NodeMetrics()
    with builder(where).build().init(where, metrics=metrics) as store:
        store.put("EUR", "v", 200)
        assert store.put("GBP", "late", 99) == NOT_PUT == -9223372036854775808
        assert store.delete("EUR", 99) is None
        assert store.put("GBP", "just in time", 100) == UNDEFINED
        assert metrics.counters == {"dropped-records": 2}


def test_null_keys_wrong_types_and_negative_times_are_input_errors(where: Path | None) -> None:
    with builder(where).build().init(where) as store:
        for call in (
            lambda: store.put(None, "v", 1),
            lambda: store.get(None),
            lambda: store.get(None, 1),
            lambda: store.delete(None, 1),
            lambda: store.history(None),
            lambda: store.query(VersionedKeyQuery.with_key(None)),
            lambda: store.put("k", "v", -1),
            lambda: store.put("k", 5, 1),
            lambda: store.put(5, "v", 1),
            lambda: store.history("k", 2, 1),
        ):
            with pytest.raises(InputError):
                call()
        assert list(store.all()) == []


def test_a_store_that_is_not_open_is_a_configuration_error(where: Path | None) -> None:
    store = builder(where).build()
    for _ in ("before init", "after close"):
        assert not store.is_open
        for call in (
            lambda: store.get("k"),
            lambda: store.get("k", 1),
            lambda: store.put("k", "v", 1),
            lambda: store.delete("k", 1),
            lambda: store.history("k"),
            lambda: store.range("a", "b"),
            store.approximate_size_bytes,
        ):
            with pytest.raises(ConfigurationError, match="the store is not open .store rates.. Next: init"):
                call()
        store.init(where)
        with pytest.raises(ConfigurationError, match="open already"):
            store.init(where)
        store.close()
        store.close()


def test_a_folder_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a persistent store needs a folder"):
        builder(tmp_path).build().init()
    with pytest.raises(ConfigurationError, match="a store in memory has no folder"):
        builder(None).build().init(tmp_path)


def test_a_persistent_store_is_there_again(tmp_path: Path) -> None:
    with builder(tmp_path).build().init(tmp_path) as store:
        store.put("EUR", "1.10", 300)
    with builder(tmp_path).build().init(tmp_path) as store:
        assert store.get("EUR") == VersionedRecord("1.10", 300)
        assert store.put("EUR", "old", 199) == NOT_PUT, "the clock is stored too"
    other = Stores.persistent_versioned_key_value_store("rates", timedelta(seconds=1), timedelta(milliseconds=20))
    store = Stores.versioned_key_value_store_builder(other, pa.string(), pa.string()).build()
    with pytest.raises(ConfigurationError, match="segments of 10 ms, not of 20 ms"):
        store.init(tmp_path)
    assert not store.is_open


def test_history_and_queries(where: Path | None) -> None:
    with builder(where).build().init(where) as store:
        for value, time in (("a", 10), ("b", 20), (None, 30), ("c", 40)):
            store.put("k", value, time)
        a, b, c = VersionedRecord("a", 10, 20), VersionedRecord("b", 20, 30), VersionedRecord("c", 40)
        assert store.history("k") == [c, b, a]
        assert store.history("k", order="ascending") == [a, b, c]
        assert store.history("k", 15, 20, "ascending") == [a, b]
        assert store.history("k", from_time=30, to_time=39) == []
        query = MultiVersionedKeyQuery.with_key("k")
        assert store.query(query) == [c, b, a]
        assert store.query(query.from_time(20).with_ascending_timestamps()) == [b, c]
        assert store.query(query.to_time(20).with_ascending_timestamps().with_descending_timestamps()) == [b, a]
        assert store.query(VersionedKeyQuery.with_key("k")) == c
        assert store.query(VersionedKeyQuery.with_key("k").as_of(29)) == b
        assert store.query(VersionedKeyQuery.with_key("k").as_of(30)) is None


def test_times_may_be_datetimes(where: Path | None) -> None:
    noon = datetime(2013, 6, 1, 12, tzinfo=UTC)
    with builder(where).build().init(where) as store:
        store.put("k", "v", noon)
        assert store.get("k", noon) == VersionedRecord("v", 1_370_088_000_000)
        assert store.get("k", noon - timedelta(milliseconds=1)) is None
        with pytest.raises(ConfigurationError, match="no time zone"):
            store.get("k", datetime(2013, 6, 1))  # noqa: DTZ001


def test_ranges_as_of_a_time(where: Path | None) -> None:
    with builder(where).build().init(where) as store:
        for key in ("a", "ab", "b", "c"):
            store.put(key, f"{key}10", 10)
        store.delete("ab", 20)
        store.put("b", "b20", 20)
        assert [key for key, _ in store.all()] == ["a", "b", "c"]
        assert dict(store.range("ab", "b", as_of=15)) == {"ab": ("ab10", 10, None), "b": ("b10", 10, None)}
        assert [value.value for _, value in store.range("ab", None)] == ["b20", "c10"]
        assert [key for key, _ in store.prefix_scan("a", 19)] == ["a", "ab"]
        assert [key for key, _ in store.prefix_scan(b"a", 20)] == ["a"]
        assert list(store.all(as_of=9)) == []
        assert store.approximate_num_entries() >= 3
        assert store.approximate_size_bytes() > 0


keys = st.sampled_from(["", "a", "ab", "b", "\x00"])
puts = st.tuples(keys, st.sampled_from([None, "v", "w"]), st.integers(0, 60))


@given(st.lists(puts, max_size=30), st.sampled_from([0, 5, 20, 100]), keys, keys, st.integers(-1, 61))
def test_a_range_is_what_get_says_of_each_key(
    operations: list[tuple[str, str | None, int]], retention_ms: int, first: str, last: str, time: int
) -> None:
    model = KipStore(retention_ms)
    with builder(None, retention_ms).build().init() as store:
        for key, value, timestamp in operations:
            store.put(key, value, timestamp)
            model.put(key.encode(), None if value is None else value.encode(), timestamp)

        def expected(as_of: int) -> list[tuple[str, str, int]]:
            found = ((key, model.get(key.encode(), as_of)) for key in sorted({key for key, _, _ in operations}))
            return [(key, hit[0].decode(), hit[1]) for key, hit in found if hit is not None]

        def given(found: object) -> list[tuple[str, str, int]]:
            return [(key, record.value, record.timestamp) for key, record in found]

        everything = expected(time)
        assert given(store.all(time)) == everything
        assert given(store.range(first, last, time)) == [entry for entry in everything if first <= entry[0] <= last]
        assert given(store.prefix_scan(first, time)) == [entry for entry in everything if entry[0].startswith(first)]
        assert given(store.all()) == expected(10**6)


def test_values_and_timestamps_in_one_value(where: Path | None) -> None:
    adapter = supplier(where).get().init(where)
    assert adapter.is_open
    assert adapter.name == "rates"
    assert adapter.put(b"k", b"v", 772) == UNDEFINED
    joined = bytes.fromhex("0000000000000304") + b"v"  # Kafka's ValueAndTimestampSerializer
    assert adapter.get(b"k") == joined
    assert adapter.put(b"other", joined) == UNDEFINED
    assert adapter.get(b"other") == joined
    assert adapter.put(b"k", b"w", 780) == UNDEFINED
    assert adapter.get(b"k", 779) == joined
    assert adapter.get(b"k", 771) is None
    assert adapter.delete(b"k", 779) == joined
    assert adapter.get(b"k", 779) is None
    assert adapter.inner.get(b"k") == VersionedRecord(b"w", 780)
    with pytest.raises(InputError, match="deletion has no timestamp"):
        adapter.put(b"k", None)
    with pytest.raises(CorruptedDataError, match="less than a timestamp"):
        adapter.put(b"k", b"short")
    adapter.close()
    assert not adapter.is_open


def test_suppliers() -> None:
    day = timedelta(days=1)
    persistent = Stores.persistent_versioned_key_value_store("s", day)
    assert persistent.history_retention_ms == 86_400_000
    assert persistent.persistent
    assert not Stores.in_memory_versioned_key_value_store("s", day).persistent
    for durations in ((-day,), (day, timedelta(0)), (timedelta(microseconds=1),)):
        with pytest.raises(ConfigurationError):
            Stores.persistent_versioned_key_value_store("s", *durations)


def test_a_value_and_its_timestamp() -> None:
    assert ValueAndTimestamp.make(None, 1) is None
    assert ValueAndTimestamp.make_allow_nullable(None, 1) == (None, 1)
