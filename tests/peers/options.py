"""The options of recorded calls: names, windows, stores, serdes, as the DSL here takes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import (
    BufferConfig,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from tests.peers.recording import NotExpressed, type_of_serde

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib import StoreBuilder

Option = dict[str, Any]
_LONGEST = timedelta(days=100_000)
_LONGEST_MS = _LONGEST // timedelta(milliseconds=1)


def kind(told: Any) -> str:
    """What an argument is: the name of its class, ``ref``, ``function``, ``text`` and so on."""
    if isinstance(told, dict):
        return str(told.get("class") or next(iter(told)))
    return "text" if isinstance(told, str) else type(told).__name__


def ms(told: Any) -> timedelta:
    """A duration, or a number of milliseconds."""
    return timedelta(milliseconds=min(told["ms"] if isinstance(told, dict) else told, _LONGEST_MS))


def named(told: Option | None) -> Named | None:
    """A ``Named``."""
    name = None if told is None else told["fields"]["name"]
    return None if name is None else Named.as_(name)


def name_of(told: Option | None, field: str = "name") -> str | None:
    """The name in an option that has more."""
    return None if told is None else told["fields"][field]


def consumed(told: Option | None) -> Consumed | None:
    """A ``Consumed``; timestamps come as they were extracted."""
    name = name_of(told, "processorName")
    return None if name is None else Consumed.as_(name)


def _refuse_partitioner(told: Option | None) -> None:
    if told is not None and told["fields"]["partitioner"] is not None:
        raise NotExpressed("a partitioner of the test's own")


def produced(told: Option | None) -> Produced | None:
    """A ``Produced``."""
    _refuse_partitioner(told)
    name = name_of(told, "processorName")
    return None if name is None else Produced.as_(name)


def grouped(told: Option | None) -> Grouped | None:
    """A ``Grouped``."""
    name = name_of(told)
    return None if name is None else Grouped.as_(name)


def joined(told: Option | None) -> Joined | None:
    """A ``Joined``."""
    if told is None:
        return None
    of = told["fields"]
    made = Joined() if of["name"] is None else Joined.as_(of["name"])
    return made if of.get("gracePeriod") is None else made.with_grace_period(ms(of["gracePeriod"]))


def repartitioned(told: Option | None) -> Repartitioned | None:
    """A ``Repartitioned``."""
    if told is None:
        return None
    _refuse_partitioner(told)
    of = told["fields"]
    made = Repartitioned() if of["name"] is None else Repartitioned.as_(of["name"])
    return made if of["numberOfPartitions"] is None else made.with_number_of_partitions(of["numberOfPartitions"])


def stream_joined(told: Option | None) -> StreamJoined | None:
    """A ``StreamJoined``."""
    if told is None:
        return None
    of = told["fields"]
    made = StreamJoined()
    if of["storeName"] is not None:
        made = made.with_store_name(of["storeName"])
    if of["name"] is not None:
        made = made.with_name(of["name"])
    if of["thisStoreSupplier"] is not None:
        made = made.with_this_store_supplier(supplier(of["thisStoreSupplier"]))
    if of["otherStoreSupplier"] is not None:
        made = made.with_other_store_supplier(supplier(of["otherStoreSupplier"]))
    return made if of["loggingEnabled"] else made.with_logging_disabled()


def materialized(told: Option | None) -> Materialized | None:
    """A ``Materialized``."""
    if told is None:
        return None
    of = told["fields"]
    made = Materialized()
    if of["storeSupplier"] is not None:
        made = Materialized.as_(supplier(of["storeSupplier"]))
    elif of["storeName"] is not None:
        made = Materialized.as_(of["storeName"])
    if of["retention"] is not None:
        made = made.with_retention(ms(of["retention"]))
    return made if of["loggingEnabled"] else made.with_logging_disabled()


def supplier(told: Option) -> Any:  # noqa: PLR0911 - one for each kind
    """A supplier of stores."""
    of = told.get("fields", {})
    match kind(told):
        case "RocksDbKeyValueBytesStoreSupplier" | "RocksDBKeyValueBytesStoreSupplier":
            return Stores.persistent_key_value_store(of["name"])
        case "RocksDBKeyValueHeadersBytesStoreSupplier":
            return Stores.persistent_timestamped_key_value_store_with_headers(of["name"])
        case "InMemoryKeyValueBytesStoreSupplier":
            return Stores.in_memory_key_value_store(of["name"])
        case "RocksDbVersionedKeyValueBytesStoreSupplier":
            retention, segments = ms(of["historyRetentionMs"]), ms(of["segmentIntervalMs"])
            return Stores.persistent_versioned_key_value_store(of["name"], retention, segments)
        case "RocksDbWindowBytesStoreSupplier" | "RocksDbIndexedTimeOrderedWindowBytesStoreSupplier":
            return Stores.persistent_window_store(
                of["name"], ms(of["retentionPeriod"]), ms(of["windowSize"]), of["retainDuplicates"]
            )
        case "InMemoryWindowBytesStoreSupplier":
            return Stores.in_memory_window_store(
                of["name"], ms(of["retentionPeriod"]), ms(of["windowSize"]), of["retainDuplicates"]
            )
        case "RocksDbSessionBytesStoreSupplier":
            return Stores.persistent_session_store(of["name"], ms(of["retentionPeriod"]))
        case "InMemorySessionBytesStoreSupplier":
            return Stores.in_memory_session_store(of["name"], ms(of["retentionPeriod"]))
    raise _another(told)


def store_builder(told: Option, types: tuple[pa.DataType | None, pa.DataType | None]) -> StoreBuilder[Any]:
    """A builder of stores.

    Args:
        told: It.
        types: Of the keys and values that a processor has put there.
    """
    of = told.get("fields", {})
    if "HeaderAddingSerde" in str((of.get("keySerde"), of.get("valueSerde"))):
        raise NotExpressed("a serde that adds headers to the record")
    key, value = (
        type_ or type_of_serde(of.get(serde)) or pa.string()
        for type_, serde in zip(types, ("keySerde", "valueSerde"), strict=True)
    )
    builders: Mapping[str, Callable[..., StoreBuilder[Any]]] = {
        "KeyValueStoreBuilder": Stores.key_value_store_builder,
        "TimestampedKeyValueStoreBuilder": Stores.timestamped_key_value_store_builder,
        "TimestampedKeyValueStoreBuilderWithHeaders": Stores.timestamped_key_value_store_with_headers_builder,
        "VersionedKeyValueStoreBuilder": Stores.versioned_key_value_store_builder,
        "WindowStoreBuilder": Stores.window_store_builder,
        "TimestampedWindowStoreBuilder": Stores.timestamped_window_store_builder,
        "TimestampedWindowStoreWithHeadersBuilder": Stores.timestamped_window_store_with_headers_builder,
        "SessionStoreBuilder": Stores.session_store_builder,
        "SessionStoreWithHeadersBuilder": Stores.session_store_with_headers_builder,
    }
    if kind(told) == "MockKeyValueStoreBuilder":
        return Stores.key_value_store_builder(Stores.persistent_key_value_store(of["name"]), key, value)
    if kind(told) not in builders:
        raise _another(told)
    return builders[kind(told)](supplier(of["storeSupplier"]), key, value)


def windows(told: Option) -> Any:
    """Windows of an aggregation."""
    of = told.get("fields", {})
    match kind(told):
        case "TimeWindows":
            made = TimeWindows.of_size_and_grace(ms(of["sizeMs"]), ms(of["graceMs"]))
            return made if of["advanceMs"] == of["sizeMs"] else made.advance_by(ms(of["advanceMs"]))
        case "SessionWindows":
            return SessionWindows.of_inactivity_gap_and_grace(ms(of["gapMs"]), ms(of["graceMs"]))
        case "SlidingWindows":
            return SlidingWindows.of_time_difference_and_grace(ms(of["timeDifferenceMs"]), ms(of["graceMs"]))
        case "UnlimitedWindows":
            return UnlimitedWindows.of().start_on(datetime.fromtimestamp(of["startMs"] / 1000, UTC))
    raise NotExpressed("windows of the test's own")


def join_windows(told: Option) -> JoinWindows:
    """Windows of a join."""
    of = told["fields"]
    before, after = ms(of["beforeMs"]), ms(of["afterMs"])
    made = JoinWindows.of_time_difference_and_grace(max(before, after), ms(of["graceMs"]))
    made = made.before(before).after(after)
    return made if of["enableSpuriousResultFix"] else made.emit_unmatched_at_once()


def emit_strategy(told: Option) -> EmitStrategy:
    """An ``EmitStrategy``."""
    return EmitStrategy.on_window_close() if "Close" in kind(told) else EmitStrategy.on_window_update()


def suppressed(told: Option) -> Suppressed:
    """A ``Suppressed``."""
    of = told["fields"]
    if kind(told) == "FinalResultsSuppressionBuilder":
        made = Suppressed.until_window_closes(_buffer(of["bufferConfig"]))
    elif of.get("timeToWaitForMoreEvents") is None:
        made = Suppressed.until_time_limit(_LONGEST, _buffer(of["bufferConfig"]))
    else:
        made = Suppressed.until_time_limit(ms(of["timeToWaitForMoreEvents"]), _buffer(of["bufferConfig"]))
    return made if of["name"] is None else made.with_name(of["name"])


_NO_LIMIT = 2**63 - 1


def _buffer(told: Option) -> Any:
    of = told["fields"]
    made: Any = BufferConfig.unbounded()
    if of["maxRecords"] != _NO_LIMIT:
        made = made.with_max_records(of["maxRecords"])
    if of["maxBytes"] != _NO_LIMIT:
        made = made.with_max_bytes(of["maxBytes"])
    if kind(told).startswith("Eager") or of.get("bufferFullStrategy") == {"constant": "EMIT"}:
        return made.emit_early_when_full()
    return made


def _another(told: Option) -> NotExpressed:
    if "Mock" in kind(told):
        return NotExpressed("a mock in place of a store")
    return NotExpressed(f"a store of another kind: {told.get('class') or 'a class without a name'}")
