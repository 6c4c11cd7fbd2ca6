"""The processor API, old and new, and ``Topology``."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works

_READ_ONLY = (
    "Kafka's own, which wraps suppliers that it is given. Wrap the class or function that you give to `process()`"
)
_CLOSE = "At the end of each slice, as `init` is called at its beginning"
_START = "`start_time=` is a keyword, and only of stream time"
_SCHEDULED = "By stream time. Callbacks continue in the next slice: [semantics](semantics.md#custom-processors-kip-820)"
_METADATA = "`record_metadata()`"
_TRANSFORMERS = "In a `ValueTransformerWithKey` it works: `TransformerContext`"

PROCESSORS = (
    ClassAnswers(
        "processor.api.Processor", "Processor", "What is called for each record.",
        {"init, process": works(), "close": differs(_CLOSE, "")}, kip=478,
    ),
    ClassAnswers(
        "processor.api.FixedKeyProcessor", "FixedKeyProcessor", "The same, under the same keys.",
        {"init, process": works(), "close": differs(_CLOSE, "")}, kip=820,
    ),
    ClassAnswers(
        "processor.api.ContextualProcessor", None, "A processor that keeps its context.",
        {"init": differs("Every `Processor` keeps it: `self.context`", "")}, kip=478,
    ),
    ClassAnswers(
        "processor.api.ContextualFixedKeyProcessor", None, "The same, under the same keys.",
        {"init": differs("Every `FixedKeyProcessor` keeps it: `self.context`", "")}, kip=820,
    ),
    ClassAnswers(
        "processor.api.ProcessorSupplier", "ProcessorSupplier", "What makes processors; a class will do.",
        {"get": works()}, kip=478,
    ),
    ClassAnswers(
        "processor.api.FixedKeyProcessorSupplier", "ProcessorSupplier", "The same for such processors.",
        {"get": works()}, kip=820,
    ),
    ClassAnswers(
        "processor.ConnectedStoreProvider", "ProcessorSupplier", "What declares a processor's stores.",
        {"stores": works()}, kip=401,
    ),
    ClassAnswers(
        "processor.api.Record", "Record", "What a processor gets and forwards.",
        {
            "new": works(),
            "new(Headers)": differs("Headers are pairs of a name and bytes"),
            "key, value, timestamp": works(),
            "withKey, withValue, withTimestamp": works(),
            "headers, withHeaders": differs("Pairs of a name and bytes"),
        },
        kip=478,
    ),
    ClassAnswers(
        "processor.api.FixedKeyRecord", "FixedKeyRecord", "The same under one key.",
        {
            "key, value, timestamp, withValue, withTimestamp": works(),
            "headers, withHeaders": differs("Pairs of a name and bytes"),
        },
        kip=820,
    ),
    ClassAnswers(
        "processor.api.ReadOnlyRecord", None, "The interface of both, for reading.",
        {"key, value, timestamp, headers": differs("Attributes of `Record` and `FixedKeyRecord`", "")}, kip=1356,
    ),
    ClassAnswers(
        "processor.api.InternalFixedKeyRecordFactory", None, "Kafka's own.",
        {"create": refused("It is internal, though public. `FixedKeyRecord(key, value, timestamp)` makes one")},
    ),
    ClassAnswers(
        "processor.api.RecordMetadata", "RecordMetadata", "The place of a source record.",
        {"topic, partition, offset": works()}, kip=478,
    ),
    ClassAnswers(
        "processor.api.ProcessorContext", "ProcessorContext", "How a processor forwards records.",
        {"forward": works()}, kip=478,
    ),
    ClassAnswers(
        "processor.api.FixedKeyProcessorContext", "ProcessorContext", "The same, under the same keys.",
        {"forward": works()}, kip=820,
    ),
    ClassAnswers(
        "processor.api.ProcessingContext", "ProcessorContext", "What else a processor may ask for.",
        {
            "applicationId, getStateStore, recordMetadata": works(),
            "of a store of a table: getStateStore": differs(
                "[Most can be read, some written](operators/process.md#stores)"
            ),
            "taskId": differs("Text: `0_1`"),
            "schedule": differs(_SCHEDULED),
            "by wall-clock time: schedule": differs(
                "The wall clock shows the task's stream time: "
                "[semantics](semantics.md#custom-processors-kip-820)"
            ),
            "schedule(Instant)": differs(_START, "schedule", kip=1146),
            "currentStreamTimeMs": works(kip=622),
            "currentSystemTimeMs": differs("The task's stream time, as for callbacks by wall-clock time", kip=622),
            "commit": differs("Accepted, and changes nothing: a slice is committed as a whole"),
            "appConfigs, appConfigsWithPrefix": refused(),
            "keySerde, valueSerde": refused(),
            "metrics": refused(),
            "stateDir": refused(),
        },
        kip=820,
    ),
    ClassAnswers(
        "processor.Punctuator", None, "What a processor schedules.",
        {"punctuate": differs("A function of the time, ms", "")}, kip=138,
    ),
    ClassAnswers("processor.PunctuationType", "PunctuationType", "By which clock.", {}, kip=138),
    ClassAnswers(
        "processor.Cancellable", "Cancellable", "What cancels a schedule.", {"cancel": works()}, kip=138
    ),
    ClassAnswers(
        "processor.api.ProcessorWrapper", None, "What wraps all processors of a topology.",
        {
            "wrapProcessorSupplier, wrapFixedKeyProcessorSupplier, configure, asWrapped, asWrappedFixedKey": refused(
                "Between the nodes of the DSL records pass thousands at a time: no call is made for each, around which "
                "a wrapper could go. `hindstream explain` shows which records made a result, and a run's metrics, also "
                "in [OpenTelemetry](operations.md#metrics), what each node did. Processors of your own you can wrap "
                "where you pass them to `process`"
            )
        },
        kip=1112,
    ),
    ClassAnswers("processor.api.WrappedProcessorSupplier", None, "What it gives.", {}, kip=1112),
    ClassAnswers("processor.api.WrappedFixedKeyProcessorSupplier", None, "What it gives.", {}, kip=1112),
    ClassAnswers(
        "processor.ProcessorContext", "ProcessorContext", "The context of earlier releases.",
        {
            "applicationId, getStateStore": works(),
            "taskId": differs("Text: `0_1`"),
            "currentStreamTimeMs": works(kip=622),
            "forward": differs("`forward(Record(key, value, timestamp))`, with the child's name after it", ""),
            "schedule": differs(_SCHEDULED, ""),
            "schedule(Instant)": differs(_START, "", kip=1146),
            "commit": differs("Accepted, and changes nothing"),
            "topic, partition, offset": differs(f"{_METADATA} has it. {_TRANSFORMERS}", "record_metadata"),
            "timestamp, headers": differs(f"The record has it. {_TRANSFORMERS}", ""),
            "currentSystemTimeMs": differs("The task's stream time, as for callbacks by wall-clock time", kip=622),
            "appConfigs, appConfigsWithPrefix": refused(),
            "keySerde, valueSerde": refused(),
            "metrics": refused(),
            "register": refused(),
            "stateDir": refused(),
        },
    ),
    ClassAnswers(
        "processor.To", None, "The child and time of what it forwards.",
        {
            "all, child": differs("`forward(record, child_name)`", ""),
            "withTimestamp": differs("`record.with_timestamp(...)`", ""),
        },
        kip=251,
    ),
    ClassAnswers(
        "processor.RecordContext", None, "What is known of a record, for topic extractors and handlers of errors.",
        {
            "topic, partition, offset": differs(f"{_METADATA} of a processor", ""),
            "timestamp, headers": differs("The record has it", ""),
            "sourceRawKey, sourceRawValue": differs(
                "A record that cannot be used, or for which a function fails, goes to "
                "[quarantine](operations.md#functions-that-fail) with its bytes", "", kip=1034
            ),
        },
        kip=303,
    ),
    ClassAnswers(
        "processor.TaskId", None, "The name of a task.",
        {
            "subtopology, partition": differs("Parts of the text `<sub-topology>_<partition>`", ""),
            "parse, compareTo, topologyName": refused("Only assignors and tools have to do with tasks by name"),
            "new": differs("Text: `0_1`", ""),
        },
    ),
    ClassAnswers(
        "Topology", "Topology", "Sources, processors and sinks by name. `StreamsBuilder.build()` gives one, too.",
        {
            "describe": differs("The text that Kafka prints; see `TopologyDescription`"),
            "new": differs("`Topology(application_id)`: the id begins the names of internal topics"),
            "new(TopologyConfig)": refused("See `TopologyConfig`", kip=591),
            "addSource": differs("`consumed=` has the serdes and the timestamp extractor"),
            "addSource(AutoOffsetReset)": refused(
                "A replay has no committed offsets of a group: it goes on where the last slice ended"
            ),
            "addSource(Pattern)": differs(
                "`add_source(name, pattern, topics=[...])` [lists what it "
                "matches](operators/topics.md#topics-by-a-pattern); a run is refused if there is more"
            ),
            "addProcessor": differs("`key_type=` and `value_type=` name the Arrow types of what goes to sinks"),
            "addSink": differs("`produced=` has the partitions and the partitioner"),
            "addSink(TopicNameExtractor)": differs("`add_sink(name, extractor, *parents, topics=[...])`", kip=303),
            "addStateStore, connectProcessorAndStateStores": works(),
            "addGlobalStore": differs("`consumed=` has the serdes and the timestamp extractor", kip=233),
            "addReadOnlyStateStore": differs("`consumed=` has the serdes and the timestamp extractor", kip=813),
        },
        kip=120,
    ),
    ClassAnswers(
        "TopologyDescription", None, "A topology as data. `Topology.describe()` gives it as Kafka's text.",
        {"subtopologies, globalStores": differs("`Topology.sub_topologies` has the tasks' nodes", "")}, kip=120,
    ),
    *(
        ClassAnswers(
            f"TopologyDescription${name}", None, "A part of it.",
            {methods: differs("In the text of `Topology.describe()`", "")}, kip=120,
        )
        for name, methods in (
            ("Subtopology", "id, nodes"), ("GlobalStore", "id, processor, source"),
            ("Node", "name, predecessors, successors"), ("Source", "topicSet, topicPattern"),
            ("Processor", "stores"), ("Sink", "topic, topicNameExtractor"),
        )
    ),
)  # fmt: skip
