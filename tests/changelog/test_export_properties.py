"""Whatever was put into a versioned store: what is exported is restored as it was, by us and by the shipped library."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from statelib.changelog import import_changelog
from statelib.changelog.export import as_batch, exporter_of
from statelib.described.description import Described, Place
from statelib.described.exporting import Share
from statelib.documents.topologies import NodeDescription, StoreDescription
from statelib.stores.memory import MemoryBackend
from tests.effort import examples
from tests.operators.versioned.test_store_properties import END, KEYS, Config, Put, configs, opened, plain, puts
from tests.reference.versioned_store import KipStore, ShippedStore

if TYPE_CHECKING:
    from statelib.operators.versioned.store import VersionedKeyValueStore

Changes = list[tuple[bytes, bytes | None, int]]

SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])
cuts = st.lists(st.integers(min_value=1, max_value=12), max_size=6)


def described(config: Config) -> Described:
    settings = {"history_retention_ms": config.retention, "segment_interval_ms": config.interval}
    store = StoreDescription(
        name="s",
        kind="versioned",
        node="n",
        sub_topology=0,
        families=("s.latest", "s.segments"),
        settings=settings,
        arrow_schema="",
    )
    node = NodeDescription(name="n", sub_topology=0, parents=(), settings={})
    return Described(store, SCHEMA, {}, config.semantics, {"n": node})  # type: ignore[arg-type]


def exported(config: Config, backend: MemoryBackend) -> list[pa.RecordBatch]:
    with TemporaryDirectory() as folder:
        share = Share(Place(backend, {}, -1), 0, Path(folder))
        return list(map(as_batch, exporter_of(described(config)).records(share)))


def changes_in(batches: list[pa.RecordBatch]) -> Changes:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [(row["key"], row["value"], row["timestamp"]) for row in rows]


def portions(changes: Changes, sizes: list[int]) -> list[Changes]:
    found = []
    for size in sizes:
        found.append(changes[:size])
        changes = changes[size:]
    return [*found, changes]


def assert_same_within_retention(store: Any, model: KipStore | ShippedStore, horizon: int) -> None:
    for key in KEYS:
        for time in range(max(horizon, 0), END + 2):
            assert store.get(key, time) == model.get(key, time)
        assert store.history(key, max(horizon, 0), END + 1) == model.history(key, max(horizon, 0), END + 1)


class Answers:
    """Of a store of ours as of a model."""

    def __init__(self, store: VersionedKeyValueStore) -> None:
        self._store = store

    def get(self, key: bytes, as_of: int) -> Any:
        return plain(self._store.versioned_key_query(key, as_of))

    def history(self, key: bytes, first: int, last: int) -> Any:
        return [tuple(record) for record in self._store.history(key, first, last, order="ascending")]


def made(config: Config, written: list[Put]) -> tuple[MemoryBackend, KipStore | ShippedStore]:
    backend = MemoryBackend()
    store = opened(backend, config)
    is_kip = config.semantics == "kip"
    model = KipStore(config.retention) if is_kip else ShippedStore(config.retention, config.interval)
    for put in written:
        assert store.put(*put) == model.put(*put)
    store.flush()
    return backend, model


@examples(100)
@given(configs, st.lists(puts, min_size=1, max_size=25), cuts)
def test_it_comes_back(config: Config, written: list[Put], sizes: list[int]) -> None:
    backend, model = made(config, written)
    there = changes_in(exported(config, backend))
    batches = [
        pa.RecordBatch.from_pylist(
            [{"key": key, "value": value, "timestamp": ts} for key, value, ts in some],
            pa.schema([*SCHEMA, ("timestamp", pa.int64())]),
        )
        for some in portions(there, sizes)
    ]
    back = MemoryBackend()
    target = described(config)
    import_changelog(target.store, target.schema, batches, back, semantics=target.semantics)
    restored = opened(back, config)
    assume(restored.stream_time == model.stream_time)  # as shipped, the newest record of all can vanish
    assert_same_within_retention(Answers(restored), model, model.stream_time - config.retention)
    assert exported(config, back) == exported(config, backend)


@examples(150)
@given(configs, st.lists(puts, min_size=1, max_size=25), cuts, st.lists(puts, max_size=12))
def test_the_shipped_library_restores_it(
    config: Config, written: list[Put], sizes: list[int], later: list[Put]
) -> None:
    """In any portions; and the application goes on as if it had always run, where the job is as shipped."""
    backend, model = made(config, written)
    restored = ShippedStore(config.retention, config.interval)
    for some in portions(changes_in(exported(config, backend)), sizes):
        restored.restore(some)
    assume(restored.stream_time == model.stream_time)
    horizon = model.stream_time - config.retention
    if isinstance(model, KipStore):
        for key in KEYS:
            for time in range(max(horizon, 0), END + 2):
                assert restored.get(key, time) == model.get(key, time)
        return
    assert_same_within_retention(restored, model, horizon)
    for put in later:
        assert restored.put(*put) == model.put(*put)
    assert_same_within_retention(restored, model, model.stream_time - config.retention)


def test_in_the_order_of_keys_the_shipped_library_does_not() -> None:
    """So the order is what does it: here the clock of one key's record refuses what another has."""
    config = Config("kip", 5, 3)
    backend, _ = made(config, [Put(b"b", b"old", 10), Put(b"a", b"new", 60)])
    changes = changes_in(exported(config, backend))
    assert [key for key, _, _ in changes] == [b"b", b"a"]
    in_time, by_key = (ShippedStore(5, 3) for _ in range(2))
    in_time.restore(changes)
    by_key.restore(sorted(changes))
    assert in_time.get(b"b", 60) == (b"old", 10, None)
    assert by_key.get(b"b", 60) is None


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
def test_a_deletion_whose_trace_is_gone_leaves_its_trace_again(semantics: str) -> None:
    """A value in the place of a deletion: as shipped its own deletion is remembered, whatever comes late."""
    config = Config(semantics, 50, 10)
    backend, _ = made(config, [Put(b"a", None, 30), Put(b"a", b"v", 30)])
    changes = changes_in(exported(config, backend))
    assert changes == [(b"a", b"v", 30)] if semantics == "kip" else [(b"a", None, 30), (b"a", b"v", 30)]
    restored = ShippedStore(50, 10)
    restored.restore(changes)
    restored.put(b"a", None, 30)
    restored.put(b"a", b"older", 20)
    assert (restored.get(b"a", 60) is None) == (semantics == "kafka-4.3")
