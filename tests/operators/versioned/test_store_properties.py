"""The versioned store against plain models, point access against batch access, RocksDB against memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.versioned import open_timelines
from statelib.operators.versioned.store import NOT_PUT, VersionedKeyValueStore
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from tests.effort import examples
from tests.operators.versioned.timelines import timelines, version_set
from tests.reference.versioned_store import KipStore, ShippedStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.versioned.store import VersionedRecord
    from statelib.stores.backend import Backend

KEYS = (b"a", b"ab", b"")
END = 60


class Put(NamedTuple):
    key: bytes
    value: bytes | None
    timestamp: int


class Config(NamedTuple):
    semantics: str
    retention: int
    interval: int


configs = st.builds(
    Config,
    st.sampled_from(["kip", "kafka-4.3"]),
    st.sampled_from([0, 1, 5, 20, 100]),
    st.sampled_from([1, 3, 10, 1000]),
)
times = st.sampled_from([0, 9, 10, 11, 30, END]) | st.integers(min_value=0, max_value=END)
puts = st.builds(Put, st.sampled_from(KEYS[:1] * 4 + KEYS), st.sampled_from([None, None, b"", b"v", b"longer"]), times)


def opened(backend: Backend, config: Config) -> VersionedKeyValueStore:
    return VersionedKeyValueStore(
        backend,
        "s",
        history_retention_ms=config.retention,
        segment_interval_ms=config.interval,
        semantics=config.semantics,  # type: ignore[arg-type]
    )


def plain(record: VersionedRecord | None) -> tuple[object, int, int | None] | None:
    return None if record is None else tuple(record)  # type: ignore[return-value]


def assert_same_answers(store: VersionedKeyValueStore, model: KipStore | ShippedStore) -> None:
    assert store.stream_time == model.stream_time
    for key in KEYS:
        latest = model.get(key, END + 1)
        assert plain(store.versioned_key_query(key)) == latest
        for time in range(-1, END + 2):
            expected = model.get(key, time)
            assert plain(store.versioned_key_query(key, time)) == expected
            assert plain(store.get(key, time)) == (expected and (*expected[:2], None))
        for first, last in ((0, END), (10, 20), (15, 15), (30, 45), (END, END), (-5, 5)):
            expected_history = model.history(key, first, last)
            assert [tuple(r) for r in store.history(key, first, last, order="ascending")] == expected_history
            assert [tuple(r) for r in store.history(key, first, last)] == expected_history[::-1]
        assert [tuple(r) for r in store.history(key)] == model.history(key, -(10**6), 10**6)[::-1]


@given(configs, st.lists(puts, max_size=40))
def test_every_answer_is_the_models(config: Config, operations: list[Put]) -> None:
    store = opened(MemoryBackend(), config)
    model = KipStore(config.retention) if config.semantics == "kip" else ShippedStore(config.retention, config.interval)
    for put in operations:
        assert store.put(*put) == model.put(*put)
    assert_same_answers(store, model)


@given(
    configs,
    st.lists(puts, min_size=10, max_size=40),
    st.lists(st.tuples(st.sampled_from(KEYS), st.integers(-1, END + 1)), max_size=60),
)
def test_what_was_asked_before_changes_no_answer(
    config: Config, operations: list[Put], questions: list[tuple[bytes, int]]
) -> None:
    store = opened(MemoryBackend(), config)
    model = KipStore(config.retention) if config.semantics == "kip" else ShippedStore(config.retention, config.interval)
    for put in operations:
        assert store.put(*put) == model.put(*put)
    for key, time in questions:
        assert plain(store.versioned_key_query(key, time)) == model.get(key, time)


asks = st.tuples(st.sampled_from(["get", "history", "range"]), st.sampled_from(KEYS), st.integers(-1, END + 1))


@given(
    configs,
    st.sampled_from([0, 3_000, open_timelines.MOST_BYTES]),
    st.lists(puts | puts | puts | asks | st.just("flush"), max_size=50),
)
def test_when_puts_are_written_changes_no_answer_and_no_byte(
    config: Config, most_bytes: int, actions: list[Put | tuple[str, bytes, int] | str]
) -> None:
    store, written_at_once = opened(MemoryBackend(), config), opened(MemoryBackend(), config)
    model = KipStore(config.retention) if config.semantics == "kip" else ShippedStore(config.retention, config.interval)
    with patch.object(open_timelines, "MOST_BYTES", most_bytes):
        for action in actions:
            if isinstance(action, Put):
                assert store.put(*action) == model.put(*action)
                written_at_once.put(*action)
                written_at_once.flush()
            elif action == "flush":
                store.flush()
                assert contents(store) == contents(written_at_once)
            else:
                what, key, time = action
                if what == "get":
                    assert plain(store.versioned_key_query(key, time)) == model.get(key, time)
                    assert plain(store.versioned_key_query(key)) == model.get(key, END + 1)
                elif what == "history":
                    expected = model.history(key, time, END + 1)
                    assert [tuple(r) for r in store.history(key, time, END + 1, order="ascending")] == expected
                else:
                    found = {key: (record.value, record.timestamp) for key, record in store.range(as_of=time)}
                    there = {key: model.get(key, time) for key in KEYS}
                    assert found == {key: answer[:2] for key, answer in there.items() if answer is not None}
    assert store.stream_time == model.stream_time
    assert contents(store) == contents(written_at_once)
    assert_same_answers(store, model)


@given(configs, st.lists(puts, max_size=30), puts)
def test_delete_gives_what_was_valid_and_puts_a_tombstone(config: Config, operations: list[Put], last: Put) -> None:
    deleting, putting = opened(MemoryBackend(), config), opened(MemoryBackend(), config)
    for put in operations:
        deleting.put(*put)
        putting.put(*put)
    before = putting.get(last.key, last.timestamp)
    refused = putting.put(last.key, None, last.timestamp) == NOT_PUT
    assert deleting.delete(last.key, last.timestamp) == (None if refused else before)
    assert contents(deleting) == contents(putting)


def contents(store: VersionedKeyValueStore) -> list[list[tuple[bytes, bytes]]]:
    """All bytes of all families."""
    store.flush()
    return [list(store._backend.scan(family)) for family in store.families("s")]


def put_batch(store: VersionedKeyValueStore, config: Config, batch: Sequence[Put], *, whole: bool) -> list[int]:
    """What a columnar operator does: load, change, store."""
    keys = sorted({put.key for put in batch})
    from_ms = np.array([min(put.timestamp for put in batch if put.key == key) for key in keys], np.int64)
    loaded = store.load(pa.array(keys, pa.binary()), None if whole else from_ms)
    by_key = dict(zip(keys, timelines(loaded.versions), strict=True))
    stream_time = store.stream_time
    results = []
    for key, value, timestamp in batch:
        if timestamp < stream_time - config.retention:
            results.append(NOT_PUT)
            continue
        stream_time = max(stream_time, timestamp)
        results.append(by_key[key].put(value, timestamp, kip=config.semantics == "kip"))
    write = WriteBatch()
    store.store(loaded, version_set(list(by_key.values())), stream_time, write)
    store._backend.write(write)
    return results


@given(configs, st.lists(st.tuples(st.booleans(), st.booleans(), st.lists(puts, min_size=1, max_size=8)), max_size=6))
def test_point_and_batch_access_lead_to_the_same_bytes(
    config: Config, batches: list[tuple[bool, bool, list[Put]]]
) -> None:
    point, mixed = opened(MemoryBackend(), config), opened(MemoryBackend(), config)
    for in_batch, whole, batch in batches:
        expected = [point.put(*put) for put in batch]
        if in_batch:
            assert put_batch(mixed, config, batch, whole=whole) == expected
        else:
            assert [mixed.put(*put) for put in batch] == expected
        assert contents(mixed) == contents(point)
        assert mixed.stream_time == point.stream_time
        mixed = opened(mixed._backend, config)


@examples(15)  # opening a database takes its time
@given(config=configs, batches=st.lists(st.lists(puts, min_size=1, max_size=8), min_size=1, max_size=3))
def test_rocksdb_and_memory_hold_the_same_bytes_across_restarts(
    tmp_path_factory: pytest.TempPathFactory, config: Config, batches: list[list[Put]]
) -> None:
    path = tmp_path_factory.mktemp("rocksdb") / "db"
    memory = opened(MemoryBackend(), config)
    for batch in batches:
        backend = RocksDbBackend(path)
        rocksdb = opened(backend, config)
        assert put_batch(rocksdb, config, batch, whole=False) == put_batch(memory, config, batch, whole=False)
        assert contents(rocksdb) == contents(memory)
        backend.close()
