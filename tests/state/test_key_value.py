from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, InputError, Stores, ValueAndTimestamp
from statelib.stores.memory import MemoryBackend

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.state import KeyValueBytesStoreSupplier


def supplier(where: Path | None) -> KeyValueBytesStoreSupplier:
    make = Stores.in_memory_key_value_store if where is None else Stores.persistent_key_value_store
    return make("counts")


def test_timestamped_is_what_the_builder_makes_of_it() -> None:
    assert Stores.persistent_timestamped_key_value_store("s") == Stores.persistent_key_value_store("s")


def test_plain(where: Path | None) -> None:
    with Stores.key_value_store_builder(supplier(where), pa.string(), pa.int64()).build().init(where) as store:
        store.put_all([("b", 2), ("a", 1), ("ab", 3)])
        assert store.put_if_absent("a", 9) == 1
        assert store.put_if_absent("c", 4) is None
        assert (store.get("c"), store.get("d")) == (4, None)
        assert list(store.range("a", "b")) == [("a", 1), ("ab", 3), ("b", 2)]
        assert list(store.reverse_range("ab")) == [("c", 4), ("b", 2), ("ab", 3)]
        assert list(store.prefix_scan("a")) == list(store.prefix_scan(b"a")) == [("a", 1), ("ab", 3)]
        assert [key for key, _ in store.all()] == ["a", "ab", "b", "c"]
        assert [key for key, _ in store.reverse_all()] == ["c", "b", "ab", "a"]
        assert store.delete("a") == 1
        assert store.delete("a") is None
        store.put("b", None)
        assert [key for key, _ in store.all()] == ["ab", "c"]
        assert store.approximate_num_entries() >= 2
        assert store.approximate_size_bytes() > 0
        for call in (
            lambda: store.get(None),
            lambda: store.put(None, 1),
            lambda: store.delete(None),
            lambda: store.put("a", "no number"),
            lambda: store.put_all([("x", 1), (None, 2)]),
        ):
            with pytest.raises(InputError):
                call()
        assert store.get("x") is None, "all of put_all or nothing"
    with pytest.raises(ConfigurationError, match="not open"):
        store.get("c")


def test_timestamped(where: Path | None) -> None:
    builder = Stores.timestamped_key_value_store_builder(supplier(where), pa.string(), pa.int64())
    with builder.build().init(where) as store:
        store.put("a", ValueAndTimestamp.make(1, 10))
        store.put("b", ValueAndTimestamp.make(2, 5))
        assert store.get("a") == (1, 10)
        assert store.get("a").timestamp == 10
        assert store.put_if_absent("a", ValueAndTimestamp(7, 7)) == (1, 10)
        assert list(store.all()) == [("a", (1, 10)), ("b", (2, 5))]
        store.put("a", ValueAndTimestamp.make(None, 11))
        assert store.get("a") is None
        assert store.delete("b") == (2, 5)
        for value in (3, (3, 4), ValueAndTimestamp(3, -1)):
            with pytest.raises(InputError):
                store.put("c", value)


def test_a_plain_store_can_be_opened_with_timestamps_later() -> None:
    """As in Kafka (KIP-258): the timestamp of what was put before is -1. The types must be the same."""
    backend = MemoryBackend()
    supplier = Stores.in_memory_key_value_store("s")
    Stores.key_value_store_builder(supplier, pa.string(), pa.int64()).build().init(backend).put("a", 1)
    store = Stores.timestamped_key_value_store_builder(supplier, pa.string(), pa.int64()).build().init(backend)
    assert store.get("a") == (1, -1)
    with pytest.raises(ConfigurationError, match=r"types of a store's rows have changed: stored .value: int64."):
        Stores.key_value_store_builder(supplier, pa.string(), pa.string()).build().init(backend)


@given(st.lists(st.tuples(st.integers(-3, 3), st.none() | st.text(max_size=2))))
def test_like_a_dictionary(puts: list[tuple[int, str | None]]) -> None:
    supplier = Stores.in_memory_key_value_store("s")
    expected: dict[int, str] = {}
    with Stores.key_value_store_builder(supplier, pa.int32(), pa.string()).build().init() as store:
        for key, value in puts:
            store.put(key, value)
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
        in_bytes = sorted(expected.items(), key=lambda entry: entry[0] & 0xFFFFFFFF)  # Kafka's bytes: -1 behind 3
        assert list(store.all()) == in_bytes
        assert list(store.reverse_all()) == in_bytes[::-1]
