"""Stores that processors of random programs have for themselves, of all kinds, as ``OwnStores.java``.

Of each record the processor puts what it forwards, or deletes, and tells what it then finds in one of the ways in which
a store of that kind can be read.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import AggregationWithHeaders, Stores, ValueAndTimestamp, ValueTimestampHeaders, Windowed

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from statelib import StoreBuilder
    from tests.differential.program import Step

_OF_KEYS = ("get", "range", "reverse_range", "all", "reverse_all", "prefix", "count", "if_absent", "delete")
_OF_WINDOWS = (
    "one",
    "fetch",
    "backward_fetch",
    "range",
    "backward_range",
    "time",
    "backward_time",
    "all",
    "backward_all",
)
_OF_SESSIONS = ("one", "fetch", "backward_fetch", "find", "backward_find", "range", "find_range")
READS: dict[str, tuple[str, ...]] = {
    "plain": _OF_KEYS, "in_memory": _OF_KEYS, "timestamped": _OF_KEYS, "headers": _OF_KEYS,
    "window": _OF_WINDOWS, "timestamped_window": _OF_WINDOWS, "headers_window": _OF_WINDOWS,
    "session": _OF_SESSIONS, "headers_session": _OF_SESSIONS,
    "versioned": ("get", "as_of", "delete"),
}  # fmt: skip
"""The kinds of stores, and how each is read."""
_BOUNDS = ("a", "b")


def own_store(rng: Random, name: str) -> Step:
    """What a step says of one; times are ms."""
    kind = rng.choice([*READS])
    kept = rng.choice([5, 20, 1000]) if kind == "versioned" else rng.choice([60, 1000])
    return {"name": name, "kind": kind, "read": rng.choice(READS[kind]), "kept": kept, "size": 10}


def builder_of(own: Step) -> StoreBuilder[Any]:
    """Of such a store."""
    name, kept, size = own["name"], timedelta(milliseconds=own["kept"]), timedelta(milliseconds=own["size"])
    serdes = pa.string(), pa.string()
    builders: dict[str, Callable[[], StoreBuilder[Any]]] = {
        "plain": lambda: Stores.key_value_store_builder(Stores.persistent_key_value_store(name), *serdes),
        "in_memory": lambda: Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), *serdes),
        "timestamped": lambda: Stores.timestamped_key_value_store_builder(
            Stores.persistent_timestamped_key_value_store(name), *serdes
        ),
        "headers": lambda: Stores.timestamped_key_value_store_with_headers_builder(
            Stores.persistent_timestamped_key_value_store_with_headers(name), *serdes
        ),
        "window": lambda: Stores.window_store_builder(Stores.persistent_window_store(name, kept, size), *serdes),
        "timestamped_window": lambda: Stores.timestamped_window_store_builder(
            Stores.persistent_timestamped_window_store(name, kept, size), *serdes
        ),
        "headers_window": lambda: Stores.timestamped_window_store_with_headers_builder(
            Stores.persistent_timestamped_window_store_with_headers(name, kept, size), *serdes
        ),
        "session": lambda: Stores.session_store_builder(Stores.persistent_session_store(name, kept), *serdes),
        "headers_session": lambda: Stores.session_store_with_headers_builder(
            Stores.persistent_session_store_with_headers(name, kept), *serdes
        ),
        "versioned": lambda: Stores.versioned_key_value_store_builder(
            Stores.persistent_versioned_key_value_store(name, kept), *serdes
        ),
    }
    return builders[own["kind"]]()


def told(own: Step, store: Any, key: str, value: str | None, timestamp: int) -> str:
    """Puts a value, or deletes the key; what the store then has."""
    if own["kind"] == "versioned":
        return _versions(own, store, key, value, timestamp)
    if own["kind"].endswith("session"):
        return _sessions(own, store, key, value, timestamp)
    if own["kind"].endswith("window"):
        return _windows(own, store, key, value, timestamp)
    return _keys(own, store, key, value, timestamp)


def _keys(own: Step, store: Any, key: str, value: str | None, timestamp: int) -> str:
    given = _given(own["kind"], value, timestamp)
    if own["read"] == "if_absent" and given is not None:
        return _shown(store.put_if_absent(key, given))
    if own["read"] == "delete" and timestamp % 3 == 0:
        return _shown(store.delete(key))
    store.put(key, given)
    reads: dict[str, Callable[[], str]] = {
        "range": lambda: _all(store.range(*_BOUNDS)),
        "reverse_range": lambda: _all(store.reverse_range(None, _BOUNDS[1])),
        "all": lambda: _all(store.all()),
        "reverse_all": lambda: _all(store.reverse_all()),
        "prefix": lambda: _all(store.prefix_scan("a")),
        "count": lambda: str(len(list(store.all()))),
    }
    return reads.get(own["read"], lambda: _shown(store.get(key)))()


def _windows(own: Step, store: Any, key: str, value: str | None, timestamp: int) -> str:
    size = own["size"]
    start = timestamp - timestamp % size
    store.put(key, _given(own["kind"], value, timestamp), start)
    near = max(0, start - 3 * size), start + 2 * size
    reads: dict[str, Callable[[], str]] = {
        "one": lambda: _shown(store.fetch(key, start)),
        "fetch": lambda: _all(store.fetch(key, *near)),
        "backward_fetch": lambda: _all(store.backward_fetch(key, *near)),
        "range": lambda: _by_key(store.fetch_range(*_BOUNDS, *near)),
        "backward_range": lambda: _by_key(store.backward_fetch_range(*_BOUNDS, *near)),
        "time": lambda: _by_key(store.fetch_all(*near)),
        "backward_time": lambda: _by_key(store.backward_fetch_all(*near)),
        "all": lambda: _by_key(store.all()),
        "backward_all": lambda: _by_key(store.backward_all()),
    }
    return reads[own["read"]]()


def _sessions(own: Step, store: Any, key: str, value: str | None, timestamp: int) -> str:
    size = own["size"]
    session = Windowed(key, timestamp - timestamp % size, timestamp)
    if value is None:
        store.remove(session)
    else:
        store.put(session, _given(own["kind"], value, timestamp))
    near = max(0, timestamp - 3 * size), timestamp + size
    reads: dict[str, Callable[[], str]] = {
        "one": lambda: _shown(store.fetch_session(key, session.window_start, session.window_end)),
        "fetch": lambda: _all(store.fetch(key)),
        "backward_fetch": lambda: _all(store.backward_fetch(key)),
        "find": lambda: _all(store.find_sessions(key, *near)),
        "backward_find": lambda: _all(store.backward_find_sessions(key, *near)),
        "range": lambda: _by_key(store.fetch_range(*_BOUNDS)),
        "find_range": lambda: _by_key(store.find_sessions_of_range(*_BOUNDS, *near)),
    }
    return reads[own["read"]]()


def _versions(own: Step, store: Any, key: str, value: str | None, timestamp: int) -> str:
    if value is None or (own["read"] == "delete" and timestamp % 3 == 0):
        return _shown(store.delete(key, timestamp))
    done = store.put(key, value, timestamp)
    as_of = [max(0, timestamp - own["size"])] if own["read"] == "as_of" else []
    return f"{done} {_shown(store.get(key, *as_of))}"


def _given(kind: str, value: str | None, timestamp: int) -> Any:
    """What a store of a kind keeps."""
    headers = () if value is None else (("h", value[:3].encode()),)
    match kind:
        case "timestamped" | "timestamped_window":
            return ValueAndTimestamp.make(value, timestamp)
        case "headers" | "headers_window":
            return ValueTimestampHeaders.make(value, timestamp, headers)
        case "headers_session":
            return AggregationWithHeaders.make(value, headers)
        case _:
            return value


def _all(found: Any) -> str:
    return ",".join(f"{_key(key)}={_shown(value)}" for key, value in found)


def _by_key(found: Any) -> str:
    """The windows of several keys, each key's in their order: how keys alternate differs (``docs/semantics.md``)."""
    return ",".join(f"{_key(key)}={_shown(value)}" for key, value in sorted(found, key=lambda pair: str(pair[0].key)))


def _key(key: Any) -> str:
    return f"{key.key}[{key.window_start},{key.window_end})" if isinstance(key, Windowed) else str(key)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return "null" if value is None else value
    headers = "".join(f"/{name}:{(of or b'').decode()}" for name, of in getattr(value, "headers", ()))
    if isinstance(value, AggregationWithHeaders):
        return f"{value.aggregation}{headers}"
    return f"{value.value}@{value.timestamp}{headers}"
