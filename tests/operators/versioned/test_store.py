"""The versioned store's promises, case by case (KIP-889, KIP-960, KIP-968)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from statelib.errors.kinds import ConfigurationError, InputError, InternalError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.versioned.codec import HEADER_KEY
from statelib.operators.versioned.store import (
    NOT_PUT,
    VALID_TO_UNDEFINED,
    VersionedKeyValueStore,
    VersionedRecord,
)
from statelib.serdes import serde_for
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from tests.operators.versioned.timelines import timelines, version_set

if TYPE_CHECKING:
    from typing import Any

    from statelib.operators.versioned.many_keys import Loaded


def new(retention: int = 100, backend: MemoryBackend | None = None, **settings: Any) -> VersionedKeyValueStore:
    settings = {"segment_interval_ms": 10, **settings}
    return VersionedKeyValueStore(backend or MemoryBackend(), "s", history_retention_ms=retention, **settings)


def test_versions_are_found_by_time() -> None:
    store = new()
    assert store.put(b"k", b"v10", 10) == VALID_TO_UNDEFINED
    assert store.put(b"k", b"v30", 30) == VALID_TO_UNDEFINED
    assert store.put(b"k", b"v20", 20) == 30
    assert store.get(b"k") == VersionedRecord(b"v30", 30)
    assert [store.get(b"k", time) for time in (9, 10, 19, 20, 31)] == [
        None,
        VersionedRecord(b"v10", 10),
        VersionedRecord(b"v10", 10),
        VersionedRecord(b"v20", 20),
        VersionedRecord(b"v30", 30),
    ]
    assert store.versioned_key_query(b"k", 15) == VersionedRecord(b"v10", 10, valid_to=20)
    assert store.versioned_key_query(b"k") == VersionedRecord(b"v30", 30, valid_to=None)
    assert store.get(b"other") is None


def test_the_last_put_at_a_timestamp_wins() -> None:
    store = new()
    for value in (b"first", b"second"):
        store.put(b"k", value, 10)
        store.put(b"k", b"later", 20)
    assert store.get(b"k", 15) == VersionedRecord(b"second", 10)


def test_delete_gives_the_value_and_leaves_a_tombstone() -> None:
    store = new()
    store.put(b"k", b"v10", 10)
    store.put(b"k", b"v30", 30)
    assert store.delete(b"k", 20) == VersionedRecord(b"v10", 10)
    assert store.get(b"k", 25) is None
    assert store.get(b"k") == VersionedRecord(b"v30", 30)
    assert store.put(b"k", b"v15", 15) == 20


def test_a_put_older_than_retention_is_refused_and_counted() -> None:
    metrics = NodeMetrics()
    store = new(10, metrics=metrics)
    store.put(b"k", b"v", 100)
    assert store.put(b"other", b"late", 89) == NOT_PUT
    assert store.delete(b"k", 89) is None
    assert metrics.counters == {"dropped-records": 2}
    assert store.put(b"other", b"edge", 90) == VALID_TO_UNDEFINED
    assert store.stream_time == 100


def test_a_get_older_than_retention_finds_only_an_older_latest_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    store = new(10)
    store.put(b"old", b"v1", 1)
    store.put(b"k", b"v2", 2)
    store.put(b"k", b"v100", 100)
    assert store.get(b"old", 50) == VersionedRecord(b"v1", 1)
    assert store.get(b"k", 50) is None
    assert store.get(b"k", 89) is None
    assert store.get(b"k", 90) == VersionedRecord(b"v2", 2)
    assert [record.getMessage() for record in caplog.records] == [
        "store s was asked for 50, which is older than its history retention: no result (logged once)"
    ]


def test_expired_segments_are_dropped_whole() -> None:
    backend = MemoryBackend()
    store = new(20, backend)
    for timestamp in range(0, 100, 5):
        store.put(b"k", b"v", timestamp)
    store.flush()
    assert [key[7] for key, _ in backend.scan("s.segments") if key] == [7, 8, 9]


def test_a_tombstone_at_the_latest_timestamp() -> None:
    """The one case in which the shipped store forgets a tombstone; KIP-889 promises that it counts."""
    expected = {"kip": (50, None), "kafka-4.3": (VALID_TO_UNDEFINED, VersionedRecord(b"older", 40))}
    for semantics, (valid_to, latest) in expected.items():
        store = new(semantics=semantics)
        store.put(b"k", b"v", 50)
        store.put(b"k", None, 50)
        assert store.put(b"k", b"older", 40) == valid_to
        assert store.get(b"k") == latest


@pytest.mark.parametrize("between", [None, b"v9"])
def test_a_version_that_replaces_a_tombstone_before_the_latest_makes_the_shipped_store_remember(
    between: bytes | None,
) -> None:
    """It ends at the latest version's timestamp, so the deletion of that leaves a trace."""
    store = new(semantics="kafka-4.3")
    store.put(b"k", b"v5", 5)
    store.put(b"k", None, 9)
    store.put(b"k", b"v10", 10)
    assert store.put(b"k", between, 9) == 10
    store.put(b"k", None, 10)
    assert store.get(b"k") is None
    assert store.put(b"k", b"older", 8) == 9


def test_history() -> None:
    store = new(40, semantics="kip")
    for timestamp, value in ((10, b"a"), (20, b"b"), (30, None), (55, b"c"), (60, b"d")):
        store.put(b"k", value, timestamp)
    a_is_expired = [VersionedRecord(b"b", 20, 30), VersionedRecord(b"c", 55, 60), VersionedRecord(b"d", 60)]
    assert store.history(b"k", order="ascending") == a_is_expired
    assert store.history(b"k") == a_is_expired[::-1]
    assert store.history(b"k", 25, 55) == [VersionedRecord(b"c", 55, 60), VersionedRecord(b"b", 20, 30)]
    assert store.history(b"k", 30, 54) == []
    assert store.history(b"k", 0, 19) == []
    with pytest.raises(InputError, match="before it begins"):
        store.history(b"k", 2, 1)


def test_history_as_shipped_searches_segments_up_to_the_ranges_end() -> None:
    store = new(1_000, semantics="kafka-4.3")
    store.put(b"k", b"a", 10)
    store.put(b"k", b"b", 50)
    assert store.history(b"k", 10, 49) == []
    assert store.history(b"k", 10, 50) == [VersionedRecord(b"b", 50), VersionedRecord(b"a", 10, 50)]


def test_history_as_shipped_orders_by_32_bits_within_a_segment() -> None:
    store = new(1 << 40, segment_interval_ms=1 << 40, semantics="kafka-4.3")
    for timestamp in (0, 3_000_000_000, 3_000_000_001):
        store.put(b"k", b"v", timestamp)
    ascending = store.history(b"k", order="ascending")
    assert [record.timestamp for record in ascending] == [3_000_000_000, 0, 3_000_000_001]


def test_null_keys_and_negative_timestamps_are_refused() -> None:
    store = new()
    for call in (
        lambda: store.put(None, b"v", 0),
        lambda: store.get(None),
        lambda: store.delete(None, 0),
        lambda: store.history(None),
        lambda: store.put(b"k", b"v", -1),
        lambda: store.delete(b"k", -1),
    ):
        with pytest.raises(InputError):
            call()
    assert store.get(b"k", -1) is None
    assert store.stream_time == -1


def test_a_closed_store_is_an_internal_error() -> None:
    backend = MemoryBackend()
    store = new(backend=backend)
    backend.close()
    with pytest.raises(InternalError, match="closed"):
        store.get(b"k")


def test_a_reopened_store_goes_on_with_its_clock() -> None:
    backend = MemoryBackend()
    writer = new(10, backend)
    writer.put(b"k", b"v", 100)
    writer.flush()
    store = new(10, backend)
    assert store.stream_time == 100
    assert store.put(b"k", b"late", 89) == NOT_PUT


def test_two_objects_on_one_store_see_what_either_writes() -> None:
    backend = MemoryBackend()
    store, other = new(10, backend), new(10, backend)
    for timestamp, writer, reader in ((50, store, other), (100, other, store)):
        assert writer.put(b"k", b"v", timestamp) == VALID_TO_UNDEFINED
        assert reader.stream_time < timestamp
        writer.flush()
        assert reader.stream_time == timestamp
        assert reader.put(b"k", b"late", timestamp - 11) == NOT_PUT


def test_another_segment_interval_is_refused() -> None:
    backend = MemoryBackend()
    store = new(backend=backend)
    store.put(b"k", b"v", 100)
    store.flush()
    with pytest.raises(ConfigurationError, match="segments of 10 ms, not of 20 ms"):
        new(backend=backend, segment_interval_ms=20)


@pytest.mark.parametrize("settings", [{"retention": -1}, {"segment_interval_ms": 0}], ids=["retention", "interval"])
def test_impossible_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="negative"):
        new(**settings)


def test_serdes() -> None:
    value_type = pa.struct([("rate", pa.float64())])
    store = new(key_serde=serde_for(pa.string()), value_serde=serde_for(value_type))
    store.put("EUR", {"rate": 1.08}, 10)
    store.put("EUR", {"rate": 1.09}, 20)
    assert store.get("EUR", 15) == VersionedRecord({"rate": 1.08}, 10)
    assert [record.value for record in store.history("EUR")] == [{"rate": 1.09}, {"rate": 1.08}]
    assert store.delete("EUR", 30) == VersionedRecord({"rate": 1.09}, 20)


def load(store: VersionedKeyValueStore, keys: list[bytes], from_ms: Any = None) -> Loaded:
    return store.load(pa.array(keys, pa.binary()), from_ms)


class CountingBackend(MemoryBackend):
    """Counts look-ups, those in segments without the header."""

    rows_asked = 0
    latest_asked = 0

    def get(self, family: str, key: bytes) -> bytes | None:
        self.rows_asked += family.endswith(".segments") and key != HEADER_KEY
        self.latest_asked += family.endswith(".latest")
        return super().get(family, key)

    def multi_get(self, family: str, keys: Any) -> Any:
        if family.endswith(".segments"):
            self.rows_asked += len(keys)
        return super().multi_get(family, keys)


def test_look_ups_that_an_answer_takes() -> None:
    backend = CountingBackend()
    store = new(backend=backend)
    for key in (b"a", b"b"):
        for timestamp in (10, 15, 35, 50):  # what began at 15 ended two segments later
            store.put(key, b"v", timestamp)
    store.flush()

    def asked(key: bytes, as_of: int | None, begins: int) -> tuple[int, int]:
        backend.latest_asked = backend.rows_asked = 0
        found = store.get(key, as_of)
        assert found == VersionedRecord(b"v", begins)
        return backend.latest_asked, backend.rows_asked

    assert asked(b"a", None, 50) == (1, 0)
    assert asked(b"a", 50, 50) == (1, 0)
    assert asked(b"a", 49, 35) == (1, 1)  # the segment in which the latest value began, not that of 40..49
    assert asked(b"b", 49, 35) == (0, 2)  # 40..49 and 50..59: rows come first now
    assert asked(b"b", 12, 10) == (0, 1)
    assert asked(b"a", 17, 15) == (1, 3)  # 10..19 and 20..29, then the latest value, then 30..39
    assert asked(b"b", 16, 15) == (0, 3)
    assert asked(b"b", 51, 50) == (1, 0)  # after the clock there is no history
    assert asked(b"b", 12, 10) == (0, 1)
    store.put(b"c", b"v", 60)
    store.flush()
    assert asked(b"b", 55, 50) == (1, 3)  # rows come first in vain, and no longer
    assert asked(b"b", 12, 10) == (1, 1)


def test_load_reads_no_segment_for_keys_whose_latest_is_old_enough() -> None:
    backend = CountingBackend()
    store = new(backend=backend)
    for timestamp in (10, 30, 50):
        store.put(b"a", b"v", timestamp)
        store.put(b"b", b"v", timestamp)
    backend.rows_asked = 0
    versions = load(store, [b"a", b"b"], np.array([51, 60])).versions
    assert backend.rows_asked == 0
    assert versions.valid_from.tolist() == [50, 50]
    assert load(store, [b"b", b"a"], np.array([51, 35])).versions.valid_from.tolist() == [50, 10, 30, 50]
    assert backend.rows_asked == 2  # of a, those that ended in 30..39 and 50..59: nothing ended in 40..49


def test_load_gives_flat_arrays() -> None:
    store = new()
    store.put(b"a", b"x", 10)
    store.put(b"a", None, 20)
    store.put(b"a", b"", 30)
    versions = load(store, [b"a", b"none"]).versions
    assert len(versions) == 2
    assert versions.offsets.tolist() == [0, 3, 3]
    assert versions.valid_from.tolist() == [10, 20, 30]
    assert versions.is_tombstone.tolist() == [False, True, False]
    assert versions.values.to_pylist() == [b"x", None, b""]


def test_storing_what_was_not_loaded_is_an_internal_error() -> None:
    store = new()
    store.put(b"a", b"v", 95)
    loaded = load(store, [b"a"], np.array([97]))
    (timeline,) = timelines(loaded.versions)
    timeline.put(b"early", 20, kip=True)
    with pytest.raises(InternalError, match="ends at 95, but what ended by 95 was not read"):
        store.store(loaded, version_set([timeline]), 95, WriteBatch())
