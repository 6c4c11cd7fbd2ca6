"""What topologies are built with: ``StreamsBuilder``, and the streams and tables that it gives."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works

_FUNCTIONS_OF_SQL = (
    "`aggregate` takes [aggregate functions](operators/aggregations.md#functions), such as `count()` and `max_()`; "
    "`aggregate_with` takes Python functions and the Arrow type of the aggregate"
)
_EMIT_STRATEGY = differs(
    "In the default mode [no final result is lost](semantics.md#emit-on-window-close-kip-825), as the KIP promises",
    kip=825,
)
_COGROUP = "It takes aggregate functions, such as `count()`, or a Python function of key, value and aggregate"
_COGROUPED = "`aggregate()` for aggregate functions, `aggregate_with(initializer, arrow_type)` for Python functions"
_FOREIGN_KEY = "`join(other, joiner, foreign_key=...)`: the foreign key is a named argument"

STREAMS = (
    ClassAnswers(
        "StreamsBuilder", "StreamsBuilder", "Where a topology begins.",
        {
            "new": differs("`StreamsBuilder(application_id)`: the id begins the names of internal topics"),
            "new(TopologyConfig)": refused(
                "Settings of a topology, such as its caches, do not affect results; the job and the command line have "
                "the settings", kip=591
            ),
            "stream, table, addStateStore, globalTable": works(),
            "stream(Pattern)": differs(
                "`stream(pattern, topics=[...])` [lists what it matches](operators/topics.md#topics-by-a-pattern); "
                "a run is refused if there is more"
            ),
            "build": works(),
            "build(Properties)": differs(
                '`build({"topology.optimization": "all"})`: '
                "[topologies are optimised](semantics.md#optimised-topologies-kip-295-kip-862) as Kafka Streams does. "
                "Other properties are refused: a run has its own settings", kip=312,
            ),
            "addGlobalStore": works(kip=233),
        },
        kip=120,
    ),
    ClassAnswers(
        "kstream.KStream", "KStream", "A stream of records. Each method returns a new stream or table.",
        {
            "filter, filterNot, selectKey, map, flatMap, groupByKey, groupBy": works(),
            "mapValues, flatMapValues": works(kip=149),
            "foreach, peek": differs(
                "A function of key and value is called for each record, a function of one argument for each batch, "
                "which is faster; [both again when a task is repeated](semantics.md#flat-mapping-splitting-and-merging)"
            ),
            "print": differs(
                "Keys and values are printed as Python shows them, where the task runs; a file is appended to", kip=182
            ),
            "merge": works(kip=202),
            "split": works(kip=418),
            "repartition": works(kip=221),
            "toTable": works(kip=523),
            "to": works(),
            "to(TopicNameExtractor)": differs(
                "`to(extractor, topics=[...])`: [all topics are known before the first record]"
                "(operators/topics.md#topics-that-the-records-choose)", kip=303,
            ),
            "process": differs(
                "`key_type=` and `value_type=` name the Arrow types of what the processor forwards, if they change", "",
                kip=820,
            ),
            "processValues": differs("As `process`", "", kip=820),
            "join, leftJoin": works(),
            "outerJoin": works(),
            "join(ValueJoinerWithStreamAndMappedKey), leftJoin(ValueJoinerWithStreamAndMappedKey)": differs(
                "The joiner sees the column `mapped_key`", kip=1340
            ),
            "join(GlobalKTable), leftJoin(GlobalKTable)": works(kip=99),
            "join(ValueJoinerWithKey), leftJoin(ValueJoinerWithKey), outerJoin(ValueJoinerWithKey)": works(kip=149),
        },
    ),
    ClassAnswers(
        "kstream.BranchedKStream", "BranchedKStream", "A stream that is being split, made by `split()`.",
        {"branch, defaultBranch, noDefaultBranch": works()}, kip=418,
    ),
    ClassAnswers(
        "kstream.KGroupedStream", "KGroupedStream", "A stream grouped by key.",
        {
            "count, reduce": works(),
            "aggregate": differs(_FUNCTIONS_OF_SQL, "aggregate_with"),
            "windowedBy": works(kip=182),
            "windowedBy(SlidingWindows)": works(kip=450),
            "cogroup": differs(_COGROUP, kip=150),
        },
    ),
    ClassAnswers(
        "kstream.TimeWindowedKStream", "TimeWindowedKStream",
        "A grouped stream in tumbling, hopping, sliding or unlimited windows.",
        {
            "count, reduce": works(),
            "aggregate": differs(_FUNCTIONS_OF_SQL, "aggregate_with"),
            "emitStrategy": _EMIT_STRATEGY,
        },
        kip=182,
    ),
    ClassAnswers(
        "kstream.SessionWindowedKStream", "SessionWindowedKStream", "A grouped stream in sessions.",
        {
            "count, reduce": works(),
            "aggregate": differs(_FUNCTIONS_OF_SQL, "aggregate_with"),
            "emitStrategy": _EMIT_STRATEGY,
        },
        kip=182,
    ),
    ClassAnswers(
        "kstream.CogroupedKStream", "CogroupedKStream", "Several grouped streams that are aggregated together.",
        {
            "cogroup": differs(_COGROUP),
            "windowedBy": works(),
            "aggregate": differs(_COGROUPED, "aggregate_with"),
        },
        kip=150,
    ),
    ClassAnswers(
        "kstream.TimeWindowedCogroupedKStream", "TimeWindowedCogroupedKStream", "The same in time windows.",
        {"aggregate": differs(f"{_COGROUPED}. [All streams have one stream time](semantics.md#clocks)")}, kip=150,
    ),
    ClassAnswers(
        "kstream.SessionWindowedCogroupedKStream", "SessionWindowedCogroupedKStream", "The same in sessions.",
        {"aggregate": differs(f"{_COGROUPED}; the latter takes the merger, too")}, kip=150,
    ),
    ClassAnswers(
        "kstream.KTable", "KTable",
        "A table. One whose keys have windows is a `WindowedKTable` here, which can do the same.",
        {
            "filter, filterNot, mapValues, groupBy, toStream": works(),
            "transformValues": differs("It takes a mapper, which is also called for null values", kip=292),
            "with stores, or a context: transformValues": differs(
                "`transform_values_with(...)`. Without a store, the table gets one if an operator looks it up",
                "transform_values_with", kip=292,
            ),
            "join, leftJoin, outerJoin": works(),
            "join(Function), leftJoin(Function)": differs(_FOREIGN_KEY, kip=213),
            "join(BiFunction), leftJoin(BiFunction)": differs(
                f"{_FOREIGN_KEY}; its mapper sees the key, too", kip=1104
            ),
            "suppress": works(kip=328),
            "queryableStoreName": differs(
                "An attribute. It names generated stores too, since all can be queried"
            ),
        },
    ),
    ClassAnswers(
        "kstream.KGroupedTable", "KGroupedTable", "A table grouped by another key.",
        {
            "count, reduce": works(),
            "aggregate": differs(_FUNCTIONS_OF_SQL, "aggregate_with"),
        },
    ),
    ClassAnswers(
        "kstream.GlobalKTable", "GlobalKTable", "A table of which every task has all keys.",
        {"queryableStoreName": differs("An attribute. It names generated stores too")}, kip=99,
    ),
)  # fmt: skip
