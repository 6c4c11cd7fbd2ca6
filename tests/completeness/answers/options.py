"""Objects that configure: names, stores, serdes, partitions."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works

_NO_SERDES = refused()
_SERDES = differs(
    "Accepted, if keys keep the bytes of their type. Between nodes records are Arrow columns, and nothing is converted"
)
_PARTITIONER = differs(
    "A mapper, which sees the number of partitions, too: [partitioners](operators/topics.md#custom-partitioners)",
)
_NO_CHANGELOG = differs("Accepted, and changes nothing: a replay keeps its state in checkpoints", None)
IN_MEMORY = "[joins of two streams with null values, and emit on window close](semantics.md)"
"""Where Kafka's stores in memory answer otherwise than those in RocksDB."""
STORE_PLACE = (
    "Accepted, and changes nothing: a task keeps all its state in one store, in memory as far as it fits. Results are "
    f"those of Kafka's stores in RocksDB, from which those in memory differ in {IN_MEMORY}"
)
NO_OWN_STORES = refused(
    "A task keeps all its state in one store, which it commits and restores: there are no stores of your own, nor of "
    "others, for the DSL. `BuiltInDslStoreSuppliers` is accepted"
)

OPTIONS = (
    ClassAnswers(
        "kstream.Named", "Named", "The name of a node.", {"as, withName": works()}, kip=307
    ),
    ClassAnswers(
        "kstream.Consumed", "Consumed", "How a source is read.",
        {
            "as, withName": works(kip=307),
            "with, withKeySerde, withValueSerde": works(),
            "with(AutoOffsetReset)": refused("See `withOffsetResetPolicy`", kip=1106),
            "with(TimestampExtractor)": differs(
                "A keyword: `with_(timestamp_extractor=...)`. Mappers are extractors, too"
            ),
            "withTimestampExtractor": works(),
            "withOffsetResetPolicy": refused(kip=1106),
        },
        kip=182,
    ),
    ClassAnswers(
        "AutoOffsetReset", None, "Where a group without offsets begins to read.",
        {"earliest, latest, none, byDuration": refused("See `Consumed.withOffsetResetPolicy`. A run takes a slice")},
        kip=1106,
    ),
    ClassAnswers("Topology$AutoOffsetReset", None, "The same in earlier releases.", {}),
    ClassAnswers(
        "kstream.Produced", "Produced", "How a sink is written.",
        {
            "as, withName": works(kip=307),
            "with, keySerde, valueSerde, withKeySerde, withValueSerde": _NO_SERDES,
            "with(StreamPartitioner)": differs("`Produced.stream_partitioner(...)`", ""),
            "streamPartitioner, withStreamPartitioner": _PARTITIONER,
        },
        kip=182,
    ),
    ClassAnswers(
        "kstream.Grouped", "Grouped", "The name of the repartition topic that a group may need.",
        {
            "as, withName": works(),
            "with(String)": differs("`Grouped.with_(...).with_name(name)`", ""),
            "with, keySerde, valueSerde, withKeySerde, withValueSerde": _SERDES,
        },
        kip=372,
    ),
    ClassAnswers(
        "kstream.Joined", "Joined", "Name and grace period of a join of a stream with a table.",
        {
            "as, withName": works(kip=307),
            "withGracePeriod": works(kip=923),
            "gracePeriod": differs("The attribute `grace_period_ms`", "grace_period_ms", kip=923),
            "with(String)": differs("`Joined.with_(...).with_name(name)`, and `with_grace_period`", ""),
            "with, keySerde, valueSerde, otherValueSerde, withKeySerde, withValueSerde, withOtherValueSerde": (
                _SERDES
            ),
        },
        kip=182,
    ),
    ClassAnswers(
        "kstream.StreamJoined", "StreamJoined", "Names of the nodes and stores of a join of two streams.",
        {
            "as, withName, withStoreName": works(),
            "withLoggingEnabled, withLoggingDisabled": differs(
                "Accepted, and changes nothing: a replay keeps its state in checkpoints", kip=689
            ),
            "with, withKeySerde, withValueSerde, withOtherValueSerde": _SERDES,
            "with(DslStoreSuppliers), withDslStoreSuppliers": differs(STORE_PLACE, kip=954),
            "with(WindowBytesStoreSupplier)": differs(
                "`StreamJoined().with_this_store_supplier(...).with_other_store_supplier(...)`", ""
            ),
            "withThisStoreSupplier, withOtherStoreSupplier": works(),
        },
        kip=479,
    ),
    ClassAnswers(
        "kstream.TableJoined", "TableJoined", "Name and partitioners of a join by a foreign key.",
        {
            "as, withName, withOtherPartitioner": works(),
            "with, withPartitioner": differs(
                "Without a partitioner of the left table, results are [where the default partitioner puts "
                "them](operators/joins.md#foreign-key-joins)", "with_partitioner",
            ),
        },
        kip=775,
    ),
    ClassAnswers(
        "kstream.Materialized", "Materialized", "The store of a table or an aggregation.",
        {
            "as": works(),
            "as(DslStoreSuppliers), withStoreType": differs(STORE_PLACE, kip=591),
            "withRetention": works(kip=328),
            "withCachingDisabled": differs("Accepted, and changes nothing: there is no record cache"),
            "withCachingEnabled": refused(),
            "withLoggingEnabled, withLoggingDisabled": _NO_CHANGELOG,
            "with, withKeySerde, withValueSerde": _SERDES,
        },
        kip=182,
    ),
    ClassAnswers(
        "kstream.Materialized$StoreType", None,
        "Where stores are. Its values are here: `Materialized.StoreType.ROCKS_DB` and `IN_MEMORY`.",
        {"configure, keyValueStore, sessionStore, windowStore": NO_OWN_STORES}, kip=591,
    ),
    ClassAnswers(
        "kstream.Repartitioned", "Repartitioned", "Name and number of partitions of a repartition topic.",
        {
            "as, withName, numberOfPartitions, withNumberOfPartitions": works(),
            "with, withKeySerde, withValueSerde": _SERDES,
            "streamPartitioner, withStreamPartitioner": _PARTITIONER,
        },
        kip=221,
    ),
    ClassAnswers(
        "kstream.Branched", "Branched", "The name of a branch, and what to do with it.",
        {"as, withFunction, withConsumer, withName": works()}, kip=418,
    ),
    ClassAnswers(
        "kstream.Printed", "Printed", "Where and how `print()` prints.",
        {
            "toSysOut": works(),
            "toFile": differs("Appends to the file, which Kafka overwrites; each task writes where it runs"),
            "withLabel, withName": works(),
            "withKeyValueMapper": differs("It takes any mapper"),
        },
        kip=182,
    ),
    ClassAnswers(
        "TopologyConfig", None, "Settings of a topology.",
        {
            "*": refused(
                "These are settings of the client, such as caches, which do not affect results: see "
                "[`hindstream settings`](cli.md)"
            )
        },
        kip=591,
    ),
    ClassAnswers("TopologyConfig$TaskConfig", None, "The same for a task.", {}, kip=591),
    ClassAnswers(
        "TopologyConfig$InternalConfig", None, "Settings that Kafka keeps to itself.",
        {"*": refused("It is internal, though public")},
    ),
    ClassAnswers(
        "DslStoreFormat", None, "Whether the DSL's stores keep headers.",
        {
            "of": refused(
                "It reads a setting of the application, which a replay does not have. With `HEADERS`, tables keep the "
                "headers of their records, which processors and queries see that look into a table's store: here they "
                "see none. What the DSL forwards, and the keys and values in changelogs, are the same in each format. "
                "An application of either [restores what is handed over](kafka.md#versions-of-kafka-streams). Stores "
                "of processors keep headers if their builders say so"
            )
        },
        kip=1285,
    ),
)  # fmt: skip
