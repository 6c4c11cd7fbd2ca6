"""The public methods of Kafka Streams 4.4.0's DSL, and some that earlier releases had: ``javap -public`` of the jar."""

from __future__ import annotations

KAFKAS: dict[str, str] = {
    "StreamsBuilder": "addGlobalStore addReadOnlyStateStore addStateStore build globalTable stream table",
    "KStream": """
        filter filterNot flatMap flatMapValues foreach groupBy groupByKey join leftJoin map mapValues merge outerJoin
        peek print process processValues repartition selectKey split to toTable
        branch through transform transformValues flatTransform flatTransformValues""",
    "KTable": """
        filter filterNot groupBy join leftJoin mapValues outerJoin queryableStoreName suppress toStream
        transformValues to through foreach print writeAsText""",
    "GlobalKTable": "queryableStoreName",
    "KGroupedStream": "aggregate cogroup count reduce windowedBy",
    "KGroupedTable": "aggregate count reduce",
    "CogroupedKStream": "aggregate cogroup windowedBy",
    "TimeWindowedCogroupedKStream": "aggregate",
    "SessionWindowedCogroupedKStream": "aggregate",
    "TimeWindowedKStream": "aggregate count emitStrategy reduce",
    "SessionWindowedKStream": "aggregate count emitStrategy reduce",
    "BranchedKStream": "branch defaultBranch noDefaultBranch",
    "Branched": "as withConsumer withFunction withName",
    "Consumed": """
        as equals hashCode with withKeySerde withName withOffsetResetPolicy withTimestampExtractor withValueSerde""",
    "Produced": """
        as equals hashCode keySerde streamPartitioner valueSerde with withKeySerde withName withStreamPartitioner
        withValueSerde""",
    "Grouped": "as keySerde valueSerde with withKeySerde withName withValueSerde",
    "Joined": """
        as gracePeriod keySerde otherValueSerde valueSerde with withGracePeriod withKeySerde withName
        withOtherValueSerde withValueSerde""",
    "Named": "as withName",
    "StreamJoined": """
        as toString with withDslStoreSuppliers withKeySerde withLoggingDisabled withLoggingEnabled withName
        withOtherStoreSupplier withOtherValueSerde withStoreName withThisStoreSupplier withValueSerde""",
    "Materialized": """
        as with withCachingDisabled withCachingEnabled withKeySerde withLoggingDisabled withLoggingEnabled withRetention
        withStoreType withValueSerde""",
    "Repartitioned": """
        as numberOfPartitions streamPartitioner with withKeySerde withName withNumberOfPartitions withStreamPartitioner
        withValueSerde""",
    "Suppressed": "untilTimeLimit untilWindowCloses withName",
    "BufferConfig": """
        emitEarlyWhenFull maxBytes maxRecords shutDownWhenFull unbounded withLoggingDisabled withLoggingEnabled
        withMaxBytes withMaxRecords withNoBound""",
    "EmitStrategy": "onWindowClose onWindowUpdate type",
    "TimeWindows": "advanceBy equals gracePeriodMs hashCode ofSizeAndGrace ofSizeWithNoGrace size toString windowsFor",
    "SlidingWindows": """
        equals gracePeriodMs hashCode ofTimeDifferenceAndGrace ofTimeDifferenceWithNoGrace timeDifferenceMs toString""",
    "SessionWindows": """
        equals gracePeriodMs hashCode inactivityGap ofInactivityGapAndGrace ofInactivityGapWithNoGrace toString""",
    "UnlimitedWindows": "equals gracePeriodMs hashCode of size startOn toString windowsFor",
    "JoinWindows": """
        after before equals grace gracePeriodMs hashCode of ofTimeDifferenceAndGrace ofTimeDifferenceWithNoGrace size
        toString windowsFor""",
    "Stores": """
        inMemoryKeyValueStore inMemorySessionStore inMemoryWindowStore keyValueStoreBuilder lruMap
        persistentKeyValueStore
        persistentSessionStore persistentSessionStoreWithHeaders persistentTimestampedKeyValueStore
        persistentTimestampedKeyValueStoreWithHeaders persistentTimestampedWindowStore
        persistentTimestampedWindowStoreWithHeaders persistentVersionedKeyValueStore persistentWindowStore
        sessionStoreBuilder sessionStoreWithHeadersBuilder timestampedKeyValueStoreBuilder
        timestampedKeyValueStoreWithHeadersBuilder timestampedWindowStoreBuilder
        timestampedWindowStoreWithHeadersBuilder
        versionedKeyValueStoreBuilder windowStoreBuilder""",
    "TopologyTestDriver": """
        advanceWallClockTime close createInputTopic createOutputTopic getAllStateStores getKeyValueStore getSessionStore
        getSessionStoreWithHeaders getStateStore getTimestampedKeyValueStore getTimestampedKeyValueStoreWithHeaders
        getTimestampedWindowStore getTimestampedWindowStoreWithHeaders getVersionedKeyValueStore getWindowStore metrics
        producedTopicNames""",
    "TestInputTopic": "advanceTime pipeInput pipeKeyValueList pipeRecordList pipeValueList toString",
    "TestOutputTopic": """
        getQueueSize isEmpty readKeyValue readKeyValuesToList readKeyValuesToMap readRecord readRecordsToList readValue
        readValuesToList toString""",
}  # fmt: skip
"""By class, its methods' names; those of earlier releases last."""

STREAMS_AND_TABLES = (
    "StreamsBuilder", "KStream", "KTable", "GlobalKTable", "KGroupedStream", "KGroupedTable", "TimeWindowedKStream",
    "SessionWindowedKStream", "BranchedKStream",
)  # fmt: skip
"""Those of them from one of which another comes: a method may be looked for on the wrong one."""
