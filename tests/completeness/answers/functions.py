"""What users write: functions for the DSL's methods, and timestamp extractors."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works

_MAPPER = "A [mapper](operators/mappers.md): a path, an expression, or a function, `per_record(...)` for one record"
_OF_EARLIER = refused(
    "The interface is left over in Kafka 4, where no method takes one. `Processor` and `FixedKeyProcessor` replace it"
)


def _mapper(name: str, text: str, method: str, kip: int | None = None) -> ClassAnswers:
    return ClassAnswers(f"kstream.{name}", None, text, {method: differs(_MAPPER, "")}, kip)


FUNCTIONS = (
    _mapper("Predicate", "For `filter` and `branch`.", "test"),
    _mapper("ValueMapper", "For `map_values`.", "apply"),
    _mapper("ValueMapperWithKey", "The same with the key.", "apply", 149),
    _mapper("KeyValueMapper", "For `map`, `select_key`, `group_by` and joins with global tables.", "apply"),
    _mapper("ValueJoiner", "For joins. It sees the columns `left` and `right`.", "apply"),
    _mapper("ValueJoinerWithKey", "The same with the column `key`.", "apply", 149),
    ClassAnswers(
        "kstream.ValueJoinerWithStreamAndMappedKey", None, "The same with both keys of a join with a global table.",
        {"apply": differs("The joiner is a mapper, which sees the columns `key` and `mapped_key`", "")}, kip=1340,
    ),
    ClassAnswers(
        "kstream.ForeachAction", None, "For `foreach` and `peek`.",
        {"apply": differs("A function of key and value, or of a batch", "")},
    ),
    ClassAnswers(
        "kstream.Initializer", None, "For `aggregate_with`.", {"apply": differs("A function without arguments", "")}
    ),
    ClassAnswers(
        "kstream.Aggregator", None, "For `aggregate_with`.",
        {"apply": differs("A function of key, value and aggregate", "")},
    ),
    ClassAnswers(
        "kstream.Reducer", None, "For `reduce`.", {"apply": differs("A function of the aggregate and a value", "")}
    ),
    ClassAnswers(
        "kstream.Merger", None, "For `aggregate_with` of sessions.",
        {"apply": differs("A function of key and two aggregates", "")},
    ),
    ClassAnswers(
        "kstream.ValueTransformerWithKeySupplier", "ValueTransformerWithKeySupplier",
        "For `transform_values_with` of tables.",
        {"get": works()}, kip=149,
    ),
    ClassAnswers(
        "kstream.ValueTransformerWithKey", "ValueTransformerWithKey", "What it gives.",
        {
            "transform, init": works(),
            "close": differs("It is not called: a slice ends when its state is committed", ""),
        },
        kip=149,
    ),
    ClassAnswers("kstream.ValueTransformer", None, "Of earlier releases.", {"transform, init, close": _OF_EARLIER}),
    ClassAnswers("kstream.ValueTransformerSupplier", None, "Of earlier releases.", {"get": _OF_EARLIER}),
    ClassAnswers("kstream.Transformer", None, "Of earlier releases.", {"transform, init, close": _OF_EARLIER}),
    ClassAnswers("kstream.TransformerSupplier", None, "Of earlier releases.", {"get": _OF_EARLIER}),
    ClassAnswers("kstream.ForeachProcessor", None, "Of earlier releases.", {"new, process": _OF_EARLIER}),
    ClassAnswers(
        "processor.TimestampExtractor", "TimestampExtractor", "Where a record's time comes from.",
        {
            "extract": differs(
                "`Consumed.with_timestamp_extractor` takes a mapper; for a record with an invalid time there are the "
                "three classes below", "timestamp",
            ),
            "of the time of the partition: extract": differs(
                "The mapper sees the column [`partition_time`](semantics.md#timestamps)", "timestamp"
            ),
        },
    ),
    *(
        ClassAnswers(
            f"processor.{name}", name, f"A record without a valid time {text}.",
            {
                "new": differs(f"`{name}()`, also of a mapper's times"),
                "onInvalidTimestamp": refused("It is for subclasses; here the class says what is done"),
            },
        )
        for name, text in (
            ("FailOnInvalidTimestamp", "ends the run"),
            ("LogAndSkipOnInvalidTimestamp", "is dropped and counted"),
            ("UsePartitionTimeOnInvalidTimestamp", "gets the time of its partition"),
        )
    ),
    ClassAnswers(
        "processor.WallclockTimestampExtractor", None, "Records get the time at which they are read.",
        {"new, extract": refused("A replay of the same records has to give the same results, whenever it is run")},
    ),
    ClassAnswers(
        "processor.TopicNameExtractor", None, "The topic that a record is written to.",
        {"extract": differs("A [mapper](operators/topics.md#topics-that-the-records-choose) that gives the name", "")},
        kip=303,
    ),
    ClassAnswers(
        "processor.StreamPartitioner", None, "The partition that a record is written to.",
        {"partitions": differs("A [mapper](operators/topics.md#custom-partitioners) that gives numbers", "")}, kip=837,
    ),
    ClassAnswers(
        "KeyValue", None, "A key and a value.",
        {"new, pair": differs("Python's pair: `(key, value)`", "")},
    ),
    ClassAnswers(
        "kstream.WindowedSerdes", None, "Serdes of windowed keys.",
        {
            "timeWindowedSerdeFrom": differs("`TimeWindowedSerde.of(key_serde, window_size)`", ""),
            "sessionWindowedSerdeFrom": differs("`SessionWindowedSerde(key_serde)`", ""),
            "new": refused("The class has class methods only"),
        },
    ),
    ClassAnswers(
        "kstream.WindowedSerdes$TimeWindowedSerde", "TimeWindowedSerde", "Keys of time windows in bytes.",
        {
            "new": differs("`TimeWindowedSerde.of(key_serde, window_size)`", "of"),
            "forChangelog": differs("`import_changelog` and `export_changelog` know a changelog's keys", ""),
        },
    ),
    ClassAnswers(
        "kstream.WindowedSerdes$SessionWindowedSerde", "SessionWindowedSerde", "Keys of sessions in bytes.",
        {"new": differs("`SessionWindowedSerde(key_serde)`")},
    ),
    *(
        ClassAnswers(
            f"kstream.{kind}Windowed{side}", None, f"One side of the serde of keys of {windows}.",
            {"*": differs(f"A serde has both sides: `{kind}WindowedSerde`", "")},
        )
        for kind, windows in (("Time", "time windows"), ("Session", "sessions"))
        for side in ("Serializer", "Deserializer")
    ),
)  # fmt: skip
