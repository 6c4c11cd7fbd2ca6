"""Stores: how they are made, what processors do with them, and what is in them."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works
from tests.completeness.answers.options import IN_MEMORY, NO_OWN_STORES

_ISOLATION = refused("Nobody reads a store while a transaction is open: readers see commits", kip=892)
_OPTIONAL = "Accepted, and changes nothing: a replay keeps its state in checkpoints"
_OF_CLIENTS = refused("Stores are those of `Stores`: the task opens, restores and commits them")
_ITERATOR = "A Python iterator, which needs no closing"
_BYTES = refused("Kafka's stores convert old formats with it; here each format has a codec that reads all versions")
_LIKE_PERSISTENT = differs(f"Results are those with the persistent one. In Kafka Streams they are not in {IN_MEMORY}")
_RANGE = "`{}`, where None is no bound"
_EXPIRY = "Here {} are forgotten exactly at their retention, in Kafka with their segment."
_DUPLICATES = differs("`fetch` of one window gives its last value; a processor's store cannot be handed over", "")

STORES = (
    ClassAnswers(
        "state.Stores", "Stores", "Makes suppliers and builders of stores.",
        {
            "inMemoryKeyValueStore, persistentKeyValueStore, keyValueStoreBuilder": works(),
            "persistentTimestampedKeyValueStore, timestampedKeyValueStoreBuilder": works(kip=258),
            "persistentVersionedKeyValueStore, versionedKeyValueStoreBuilder": works(kip=889),
            "windowStoreBuilder": works(),
            "persistentWindowStore": works(),
            "inMemoryWindowStore, inMemorySessionStore": _LIKE_PERSISTENT,
            "with retainDuplicates: inMemoryWindowStore, persistentWindowStore": _DUPLICATES,
            "with retainDuplicates: persistentTimestampedWindowStore": _DUPLICATES,
            "persistentTimestampedWindowStore, timestampedWindowStoreBuilder": works(kip=258),
            "persistentSessionStore, sessionStoreBuilder": works(),
            "lruMap": refused(),
            "persistentTimestampedKeyValueStoreWithHeaders": works(kip=1271),
            "timestampedKeyValueStoreWithHeadersBuilder": works(kip=1271),
            "persistentTimestampedWindowStoreWithHeaders, timestampedWindowStoreWithHeadersBuilder": works(kip=1271),
            "persistentSessionStoreWithHeaders, sessionStoreWithHeadersBuilder": works(kip=1271),
            "new": refused("The class has static methods only"),
        },
    ),
    ClassAnswers(
        "state.StoreBuilder", "StoreBuilder", "Builds a store, for `add_state_store` and suppliers of processors.",
        {
            "build, name": works(),
            "withCachingDisabled": differs("Accepted, and changes nothing: there is no record cache"),
            "withCachingEnabled": refused(),
            "withLoggingEnabled, withLoggingDisabled": differs(_OPTIONAL),
            "loggingEnabled, logConfig": refused(),
        },
    ),
    ClassAnswers(
        "state.StoreSupplier", None, "The interface of suppliers.",
        {
            "name": differs("An attribute of each supplier", ""),
            "get, metricsScope": refused("Suppliers say what a store is; the engine's stores are made by it"),
        },
    ),
    ClassAnswers("state.KeyValueBytesStoreSupplier", "KeyValueBytesStoreSupplier", "One of key-value stores.", {}),
    ClassAnswers(
        "state.VersionedBytesStoreSupplier", "VersionedBytesStoreSupplier", "One of versioned stores.",
        {"historyRetentionMs": differs("The attribute `history_retention_ms`")}, kip=889,
    ),
    ClassAnswers(
        "state.WindowBytesStoreSupplier", "WindowBytesStoreSupplier", "One of window stores.",
        {
            "retentionPeriod": differs("The attribute `retention_ms`", "retention_ms"),
            "windowSize": differs("The attribute `window_size_ms`", "window_size_ms"),
            "retainDuplicates": differs("The attribute `retain_duplicates`"),
            "segmentIntervalMs": refused("Windows expire one by one, exactly at their retention, not with a segment"),
        },
    ),
    ClassAnswers(
        "state.SessionBytesStoreSupplier", "SessionBytesStoreSupplier", "One of session stores.",
        {
            "retentionPeriod": differs("The attribute `retention_ms`", "retention_ms"),
            "segmentIntervalMs": refused("Sessions expire one by one, exactly at their retention, not with a segment"),
        },
    ),
    ClassAnswers("state.HeadersBytesStoreSupplier", None, "One of stores with headers.", {}, kip=1271),
    ClassAnswers(
        "processor.StateStore", "StateStore", "What all stores have in common.",
        {
            "name, persistent": differs("Attributes", ""),
            "isOpen": differs("The attribute `is_open`"),
            "init": differs("`init(folder)` opens a store outside of a job; a task opens those of processors"),
            "close, flush": works(),
            "query": differs("Versioned stores have `query`; the others are asked by their methods", "", kip=796),
            "getPosition": refused("The position of a store is that of its commit", kip=796),
            "commit, committedOffset, managesOffsets": refused(
                "A task's state and its position are committed together, by the task", kip=1035
            ),
            "approximateNumUncommittedBytes": refused("The memory budget counts for all stores of a task", kip=892),
        },
    ),
    ClassAnswers(
        "processor.StateStoreContext", None, "What a store of your own gets from its task.", {"*": _OF_CLIENTS}, kip=478
    ),
    ClassAnswers("processor.StateRestoreCallback", None, "How such a store is restored.", {"restore": _OF_CLIENTS}),
    ClassAnswers(
        "processor.BatchingStateRestoreCallback", None, "The same for batches.", {"restore, restoreAll": _OF_CLIENTS},
        kip=167,
    ),
    ClassAnswers("processor.CommitCallback", None, "What such a store does at a commit.", {"onCommit": _OF_CLIENTS}),
    ClassAnswers(
        "state.ReadOnlyKeyValueStore", "KeyValueStore", "A key-value store, for reading.",
        {
            "get, range, all, approximateNumEntries": works(),
            "reverseRange, reverseAll": works(kip=617),
            "prefixScan": differs("The prefix is bytes, or what the key serde makes of it; no serializer", kip=614),
            "readOnly": _ISOLATION,
        },
    ),
    ClassAnswers(
        "state.KeyValueStore", "KeyValueStore", "A key-value store.",
        {"put, putAll, putIfAbsent, delete": works()},
    ),
    ClassAnswers("state.TimestampedKeyValueStore", "TimestampedKeyValueStore", "One with timestamps.", {}, kip=258),
    ClassAnswers(
        "state.VersionedKeyValueStore", "VersionedKeyValueStore", "Several versions of each key.",
        {
            "put": differs(
                "The default mode keeps what the KIP promises: [semantics](semantics.md#where-the-two-differ)"
            ),
            "delete, get": works(),
            "readOnly": _ISOLATION,
        },
        kip=889,
    ),
    ClassAnswers(
        "state.VersionedBytesStore", "VersionedBytesStore", "The same of bytes.",
        {"put, delete, get": works(), "readOnly": _ISOLATION}, kip=889,
    ),
    ClassAnswers(
        "state.ReadOnlyWindowStore", "WindowStore", f"A window store, for reading. {_EXPIRY.format('windows')}",
        {
            "fetch, fetchAll": works(kip=358),
            "fetch(long), all": works(),
            "of several keys: fetch": differs(_RANGE.format("fetch_range"), "fetch_range", kip=358),
            "backwardFetch, backwardFetchAll, backwardAll": works(kip=617),
            "of several keys: backwardFetch": differs(
                _RANGE.format("backward_fetch_range"), "backward_fetch_range", kip=617
            ),
            "readOnly": _ISOLATION,
        },
    ),
    ClassAnswers(
        "state.WindowStore", "WindowStore", "A window store.",
        {
            "put": works(),
            "fetch, fetchAll": works(),
            "of several keys: fetch": differs(_RANGE.format("fetch_range"), "fetch_range"),
            "backwardFetch, backwardFetchAll": works(kip=617),
            "of several keys: backwardFetch": differs(
                _RANGE.format("backward_fetch_range"), "backward_fetch_range", kip=617
            ),
        },
    ),
    ClassAnswers("state.TimestampedWindowStore", "TimestampedWindowStore", "The same with timestamps.", {}, kip=258),
    ClassAnswers(
        "state.ReadOnlySessionStore", "SessionStore", f"A session store, for reading. {_EXPIRY.format('sessions')}",
        {
            "fetch, fetchSession, findSessions": works(),
            "of several keys: fetch": differs(_RANGE.format("fetch_range"), "fetch_range"),
            "of several keys: findSessions": differs(_RANGE.format("find_sessions_of_range"), "find_sessions_of_range"),
            "backwardFetch, backwardFindSessions": works(kip=617),
            "of several keys: backwardFetch": differs(
                _RANGE.format("backward_fetch_range"), "backward_fetch_range", kip=617
            ),
            "of several keys: backwardFindSessions": differs(
                _RANGE.format("backward_find_sessions_of_range"), "backward_find_sessions_of_range", kip=617
            ),
            "readOnly": _ISOLATION,
        },
        kip=94,
    ),
    ClassAnswers(
        "state.SessionStore", "SessionStore", "A session store.",
        {
            "put, remove, fetchSession, findSessions": works(),
            "of several keys: findSessions": differs(_RANGE.format("find_sessions_of_range"), "find_sessions_of_range"),
            "by the time of their ends: findSessions": differs(
                "`find_sessions_by_end(earliest, latest)`", "find_sessions_by_end", kip=825
            ),
            "backwardFindSessions": works(kip=617),
            "of several keys: backwardFindSessions": differs(
                _RANGE.format("backward_find_sessions_of_range"), "backward_find_sessions_of_range", kip=617
            ),
        },
        kip=94,
    ),
    *(
        ClassAnswers(f"state.{name}", name, "One that keeps the headers of records with its values.", {}, kip=1271)
        for name in (
            "TimestampedKeyValueStoreWithHeaders", "TimestampedWindowStoreWithHeaders", "SessionStoreWithHeaders"
        )
    ),
    ClassAnswers(
        "state.ValueTimestampHeaders", "ValueTimestampHeaders", "What is in them.",
        {
            "make, value, timestamp": works(),
            "headers": differs("Pairs of a name and bytes"),
            "makeAllowNullable": differs("`ValueTimestampHeaders(value, timestamp, headers)`", ""),
            "getValueOrNull": differs("Python's `found and found.value`", ""),
        },
        kip=1271,
    ),
    ClassAnswers(
        "state.AggregationWithHeaders", "AggregationWithHeaders", "What is in those of sessions.",
        {
            "make, aggregation": works(),
            "headers": differs("Pairs of a name and bytes"),
            "makeAllowNullable": differs("`AggregationWithHeaders(aggregation, headers)`", ""),
            "getAggregationOrNull": differs("Python's `found and found.aggregation`", ""),
        },
        kip=1271,
    ),
    ClassAnswers(
        "state.ValueAndTimestamp", "ValueAndTimestamp", "A value and its timestamp.",
        {
            "make, value, timestamp": works(),
            "makeAllowNullable": works(kip=889),
            "getValueOrNull": differs("Python's `found and found.value`", ""),
        },
        kip=258,
    ),
    ClassAnswers(
        "state.VersionedRecord", "VersionedRecord", "A version of a value.",
        {"new, value, timestamp": works(), "validTo": works(kip=960)}, kip=889,
    ),
    ClassAnswers(
        "state.KeyValueIterator", None, "An iterator of pairs.",
        {
            "close": differs(_ITERATOR, ""),
            "peekNextKey": differs("A Python iterator has no peek; `next()` gives the pair", ""),
        },
    ),
    ClassAnswers("state.WindowStoreIterator", None, "One of windows.", {"close": differs(_ITERATOR, "")}),
    ClassAnswers(
        "state.VersionedRecordIterator", None, "One of versions.",
        {"close": differs("`history` and `query` give a list", "")}, kip=968,
    ),
    ClassAnswers(
        "state.ReadOnlyRecordIterator", None, "One of records with headers, of queries.",
        {"close": differs("`read()` gives an Arrow table", "")}, kip=1356,
    ),
    ClassAnswers(
        "state.StateSerdes", None, "The serdes of a store of your own.",
        {"*": refused("Stores are those of `Stores`, which serialise by themselves. A serde's methods do the same")},
    ),
    ClassAnswers(
        "state.TimestampedBytesStore", None, "Kafka's own conversion of old formats.",
        {"convertToTimestampedFormat": _BYTES}, kip=258,
    ),
    ClassAnswers(
        "state.HeadersBytesStore", None, "Kafka's own conversion of old formats.",
        {"convertToHeaderFormat, convertFromPlainToHeaderFormat": _BYTES}, kip=1271,
    ),
    ClassAnswers(
        "state.DslStoreSuppliers", None, "Where the DSL's stores are.",
        {"keyValueStore, windowStore, sessionStore, configure": NO_OWN_STORES}, kip=954,
    ),
    ClassAnswers(
        "state.BuiltInDslStoreSuppliers", "BuiltInDslStoreSuppliers",
        "Where the DSL's stores are: in RocksDB or in memory.",
        {"new": differs("An enumeration: `BuiltInDslStoreSuppliers.ROCKS_DB` and `.IN_MEMORY`")}, kip=954,
    ),
    *(
        ClassAnswers(
            f"state.BuiltInDslStoreSuppliers${place}DslStoreSuppliers", None, f"The class of `{value}`.",
            {
                "new": differs(f"`BuiltInDslStoreSuppliers.{value}`", ""),
                "keyValueStore, windowStore, sessionStore": NO_OWN_STORES,
            },
            kip=954,
        )
        for place, value in (("InMemory", "IN_MEMORY"), ("RocksDB", "ROCKS_DB"))
    ),
    *(
        ClassAnswers(f"state.{name}", None, "What a supplier is told.", {"*": NO_OWN_STORES}, kip=954)
        for name in ("DslKeyValueParams", "DslWindowParams", "DslSessionParams")
    ),
    ClassAnswers(
        "state.RocksDBConfigSetter", None, "The options of RocksDB.",
        {
            "setConfig, close": refused(
                "RocksDB keeps state between slices only, in a format of its own; the [memory budget](performance.md) "
                "is the one setting"
            )
        },
    ),
)  # fmt: skip
