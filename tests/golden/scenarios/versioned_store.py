"""``versioned-store``: every operation of KIP-889's store and its queries, by their public names."""

from __future__ import annotations

import re
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from statelib import InputError, MultiVersionedKeyQuery, Stores, VersionedKeyQuery
from statelib.metrics.node_metrics import NodeMetrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.state import VersionedBytesStoreSupplier, VersionedKeyValueStore, VersionedRecord
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case

ORDERS: dict[str, Literal["ascending", "descending"]] = {"any": "descending", "desc": "descending", "asc": "ascending"}
NEGATIVE = "edge-negative-ts"
"""The shipped store corrupts itself in this case; ours refuses the timestamp and stays whole."""


def check(case: Case, compare: Compare) -> None:
    """Runs the case over a store in memory and a persistent one."""
    retention = timedelta(milliseconds=case.params["history_retention"])
    interval = None
    if not case.params.get("segment_interval_is_default"):
        interval = timedelta(milliseconds=case.params["segment_interval"])
    in_memory = Stores.in_memory_versioned_key_value_store("store", retention, interval)
    _check_store(in_memory, None, "in memory", case, compare)
    persistent = Stores.persistent_versioned_key_value_store("store", retention, interval)
    with tempfile.TemporaryDirectory() as folder:
        _check_store(persistent, Path(folder), "persistent", case, compare)


def _check_store(
    supplier: VersionedBytesStoreSupplier, where: Path | None, name: str, case: Case, compare: Compare
) -> None:
    metrics = NodeMetrics()
    builder = Stores.versioned_key_value_store_builder(supplier, pa.string(), pa.string())
    with builder.build().init(where, semantics="kafka-4.3", metrics=metrics) as store:
        compare(0, f"{name}: segment interval", case.params["segment_interval"], store.segment_interval_ms)
        for step in case.steps:
            operation, expected = _operation(step), _expected(step)
            if case.name == NEGATIVE:
                expected = _refusing(step["call"])
            try:
                got = operation(store)
            except InputError:
                got = "error"
            compare(step["i"], f"{name}: ret", expected, got)
            compare(step["i"], f"{name}: dropped", step["dropped"], metrics.counters.get("dropped-records", 0))


def _expected(step: dict[str, Any]) -> object:
    return "error" if "error" in step else step["ret"]


def _refusing(call: str) -> object:
    """What a store gives that refuses ``put('k', 'v', -1)`` and then takes ``put('k', 'w', 5)``."""
    return {
        "put('k','v',-1)": "error",
        "get('k')": None,
        "get('k',-1)": None,
        "get('k',-2)": None,
        "put('k','w',5)": -1,
        "get('k',4)": None,
    }[call]


def _operation(step: dict[str, Any]) -> Callable[[VersionedKeyValueStore], Any]:
    if step["op"] == "edge":
        return _call(step["call"])
    key = step["key"]
    operations: dict[str, Callable[[VersionedKeyValueStore], Any]] = {
        "put": lambda store: store.put(key, step["value"], step["ts"]),
        "delete": lambda store: _record(store.delete(key, step["ts"])),
        "get": lambda store: _record(store.get(key)),
        "get_as_of": lambda store: _record(store.get(key, step["as_of"])),
        "iq_versioned_key": lambda store: _record(store.query(VersionedKeyQuery(key, step["as_of"]))),
        "iq_multi_versioned_key": lambda store: [
            _record(found)
            for found in store.query(MultiVersionedKeyQuery(key, step["from"], step["to"], order=ORDERS[step["order"]]))
        ],
    }
    return operations[step["op"]]


def _call(text: str) -> Callable[[VersionedKeyValueStore], Any]:
    """An operation written as ``put('k', null, 50)``."""
    match = re.fullmatch(r"(put|get|delete)\((.*)\)", text)
    if match is None:
        raise ValueError(f"not a call: {text!r}")
    arguments = [_argument(argument) for argument in match.group(2).split(",")]

    def call(store: VersionedKeyValueStore) -> Any:
        result = getattr(store, match.group(1))(*arguments)
        return result if isinstance(result, int) else _record(result)

    return call


def _argument(text: str) -> str | int | None:
    if text == "null":
        return None
    return text[1:-1] if text.startswith("'") else int(text)


def _record(record: VersionedRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {"value": record.value, "ts": record.timestamp, "valid_to": record.valid_to}
