"""Queries of stores: of a running application in Kafka, of a commit here."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works

_COMMIT = "A query is of a commit: [`open_state(...)`](state-as-data.md) gives a store as data, at any commit"
_READ = differs("`open_state(...).read(where=...)`, or a method of the store", "")
_NO_CACHE = refused("There is no record cache to skip")
_ATTRIBUTE = differs("Python needs no getter of what was just said: see the store's methods", "")
_POSITION = refused("A query names a commit, and a commit has one position: nothing is ahead of it or behind")
_RESULT = differs("`read()` gives an Arrow table; what cannot be read is an error, with its next step", "")


def _query(name: str, text: str, kip: int, builders: str, getters: str) -> ClassAnswers:
    return ClassAnswers(f"query.{name}", None, text, {builders: _READ, getters: _ATTRIBUTE}, kip)


QUERIES = (
    ClassAnswers(
        "query.VersionedKeyQuery", "VersionedKeyQuery", "One version of a key.",
        {
            "withKey, asOf": works(),
            "key": differs("An attribute"),
            "asOfTimestamp": differs("The attribute `as_of_timestamp`"),
        },
        kip=960,
    ),
    ClassAnswers(
        "query.MultiVersionedKeyQuery", "MultiVersionedKeyQuery", "Several versions of a key.",
        {
            "withKey, fromTime(Instant), toTime(Instant), withAscendingTimestamps, withDescendingTimestamps": works(),
            "key": differs("An attribute"),
            "fromTime": differs("The attribute `first`", "first"),
            "toTime": differs("The attribute `last`", "last"),
            "resultOrder": differs("The attribute `order`", "order"),
        },
        kip=968,
    ),
    ClassAnswers("query.Query", None, "The interface of queries.", {}, kip=796),
    ClassAnswers(
        "query.KeyQuery", None, f"The value of a key. {_COMMIT}.",
        {"withKey": _READ, "getKey": _ATTRIBUTE, "skipCache, isSkipCache": _NO_CACHE}, kip=796,
    ),
    ClassAnswers(
        "query.TimestampedKeyQuery", None, "The same with its timestamp.",
        {"withKey": _READ, "key": _ATTRIBUTE, "skipCache, isSkipCache": _NO_CACHE}, kip=992,
    ),
    _query(
        "RangeQuery", "The values of a range of keys.", 805,
        "withRange, withLowerBound, withUpperBound, withNoBounds, withAscendingKeys, withDescendingKeys",
        "getLowerBound, getUpperBound, resultOrder",
    ),
    _query(
        "TimestampedRangeQuery", "The same with their timestamps.", 992,
        "withRange, withLowerBound, withUpperBound, withNoBounds, withAscendingKeys, withDescendingKeys",
        "lowerBound, upperBound, resultOrder",
    ),
    _query(
        "WindowKeyQuery", "The windows of a key.", 806, "withKeyAndWindowStartRange", "getKey, getTimeFrom, getTimeTo"
    ),
    _query(
        "WindowRangeQuery", "The windows of all keys, or the sessions of one.", 806,
        "withKey, withWindowStartRange", "getKey, getTimeFrom, getTimeTo",
    ),
    ClassAnswers(
        "query.TimestampedKeyWithHeadersQuery", None, "The value of a key with its timestamp and headers.",
        {"withKey": _READ, "key": _ATTRIBUTE, "skipCache, isSkipCache": _NO_CACHE}, kip=1356,
    ),
    _query(
        "TimestampedRangeWithHeadersQuery", "Those of a range of keys.", 1356,
        "withRange, withLowerBound, withUpperBound, withNoBounds, withAscendingKeys, withDescendingKeys",
        "lowerBound, upperBound, resultOrder",
    ),
    _query(
        "TimestampedWindowKeyWithHeadersQuery", "The windows of a key, with headers.", 1356,
        "withKeyAndWindowStartRange", "key, timeFrom, timeTo",
    ),
    _query(
        "TimestampedWindowRangeWithHeadersQuery", "The windows of all keys, or of one, with headers.", 1356,
        "withKey, withWindowStartRange", "key, timeFrom, timeTo",
    ),
    ClassAnswers("query.ResultOrder", None, "Ascending or descending.", {}, kip=968),
    ClassAnswers("query.FailureReason", None, "Why a query fails.", {}, kip=796),
    ClassAnswers(
        "query.StateQueryRequest", None, "A query, and where it goes.",
        {
            "inStore, getStoreName": differs("`open_state(warehouse, job, store)`", ""),
            "getQuery": _ATTRIBUTE,
            "withPartitions, withAllPartitions, getPartitions, isAllPartitions": differs(
                "A store is read from all its partitions; `where=` chooses keys, and with them the partition", ""
            ),
            "withPositionBound, getPositionBound": _POSITION,
            "requireActive, isRequireActive": refused("A commit is the same on every host: there is none to be behind"),
            "withIsolationLevel, isolationLevel": refused("Only commits are read", kip=892),
            "enableExecutionInfo, executionInfoEnabled": refused("It tells of layers of stores that are not here"),
        },
        kip=796,
    ),
    ClassAnswers("query.StateQueryRequest$InStore", None, "A part of it.", {"withQuery": _READ}, kip=796),
    ClassAnswers("query.StateQueryResult", None, "What came of it.", {"*": _RESULT}, kip=796),
    ClassAnswers("query.QueryResult", None, "What came of it in one partition.", {"*": _RESULT}, kip=796),
    ClassAnswers("query.QueryConfig", None, "For stores of your own.", {"*": refused("See `StateStore`")}, kip=796),
    ClassAnswers("query.Position", None, "How far a store has come.", {"*": _POSITION}, kip=796),
    ClassAnswers("query.PositionBound", None, "How far it must have come.", {"*": _POSITION}, kip=796),
    ClassAnswers(
        "StoreQueryParameters", None, "The store that `KafkaStreams.store` gives.",
        {
            "fromNameAndType, storeName, queryableStoreType": differs("`open_state(warehouse, job, store)`", ""),
            "withPartition, partition": differs("`where=` chooses keys, and with them the partition", ""),
            "enableStaleStores, staleStoresEnabled": refused("A commit is never stale: it says which slice it is of"),
        },
        kip=562,
    ),
    ClassAnswers(
        "state.QueryableStoreTypes", None, "The kinds of such stores.",
        {
            "keyValueStore, windowStore, sessionStore, timestampedKeyValueStore, timestampedWindowStore": differs(
                "`open_state` knows the kind of a store, and gives its rows with their timestamps", ""
            ),
            "timestampedKeyValueStoreWithHeaders, timestampedWindowStoreWithHeaders, sessionStoreWithHeaders": differs(
                "`open_state` gives values of such stores as structs of the value and the headers", "", kip=1356
            ),
            "new": refused("The class has static methods only"),
        },
    ),
    *(
        ClassAnswers(
            f"state.{name}", None, "One of them.",
            {"*": refused("Kafka's own: what makes a view of the stores of a client")},
        )
        for name in (
            "QueryableStoreType", "QueryableStoreTypes$KeyValueStoreType", "QueryableStoreTypes$WindowStoreType",
            "QueryableStoreTypes$SessionStoreType", "QueryableStoreTypes$TimestampedKeyValueStoreType",
            "QueryableStoreTypes$TimestampedWindowStoreType",
        )
    ),
    ClassAnswers(
        "KeyQueryMetadata", None, "Which host has a key.",
        {
            "*": differs(
                "State is in the warehouse, for every reader; [placement](placement.md) says which host has a copy", ""
            )
        },
        kip=535,
    ),
    ClassAnswers(
        "state.HostInfo", None, "A host of an application.",
        {"*": refused("State is in the warehouse: no reader has to find a host")}, kip=67,
    ),
)  # fmt: skip
