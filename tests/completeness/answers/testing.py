"""``TopologyTestDriver`` and what belongs to it."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works

_MOCK = refused(
    "It stands for a context in tests of one processor. Here the driver runs a topology of one processor, with the "
    "real context, stores and schedule: `builder.stream(...).process(MyProcessor).to(...)`"
)
_TYPES = "Arrow types in place of serdes"

TEST_DRIVER = (
    ClassAnswers(
        "TopologyTestDriver", "TopologyTestDriver",
        "Tests a topology. Records of several topics are processed in the order of their timestamps.",
        {
            "new": differs("`TopologyTestDriver(topology, folder, semantics=..., partitions=...)`"),
            "new(Properties)": differs("Settings of a run are arguments: `semantics=`, `on_bad_record=`"),
            "new(Instant)": refused("The wall clock begins with the first record, and records move it"),
            "createInputTopic, createOutputTopic": differs(_TYPES, kip=470),
            "close, getAllStateStores, getStateStore, getKeyValueStore, getWindowStore, getSessionStore": works(),
            "getTimestampedKeyValueStore, getTimestampedWindowStore": works(kip=258),
            "getVersionedKeyValueStore": works(kip=889),
            "getTimestampedKeyValueStoreWithHeaders, getTimestampedWindowStoreWithHeaders": works(kip=1271),
            "getSessionStoreWithHeaders": works(kip=1271),
            "producedTopicNames": works(kip=594),
            "advanceWallClockTime": refused(kip=470),
            "metrics": differs('By node and name: `driver.metrics()[node]["late-record-drop-total"]`; no rates'),
        },
        kip=247,
    ),
    ClassAnswers(
        "TestInputTopic", "TestInputTopic", "Pipes records in.",
        {
            "pipeInput": works(),
            "of a value with its time: pipeInput": differs("A keyword: `pipe_input(value, timestamp=...)`", ""),
            "pipeKeyValueList, pipeValueList, pipeRecordList, advanceTime": works(),
        },
        kip=470,
    ),
    ClassAnswers(
        "TestOutputTopic", "TestOutputTopic", "Reads records.",
        {
            "readRecord, readKeyValue, readValue, getQueueSize, isEmpty": works(),
            "readRecordsToList, readKeyValuesToList, readValuesToList": works(),
            "readKeyValuesToMap": differs("Keys that a `dict` cannot have become tuples"),
        },
        kip=470,
    ),
    ClassAnswers(
        "test.TestRecord", "TestRecord", "A record to pipe in, or one that was read.",
        {
            "new": differs("`TestRecord(key, value, timestamp_ms, headers=...)`: it always has a time"),
            "new(ConsumerRecord|ProducerRecord)": refused("There is no client whose records these could be"),
            "key, value, getKey, getValue": differs("Attributes", ""),
            "timestamp, getRecordTime": differs("The attribute `timestamp_ms`", "timestamp_ms"),
            "headers, getHeaders": differs("Pairs of a name and bytes: the attribute `headers`", "headers"),
            "equalsIgnorePartition": differs("`replace(one, partition=0) == replace(other, partition=0)`", ""),
        },
        kip=470,
    ),
    ClassAnswers("processor.api.MockProcessorContext", None, "A context for tests.", {"*": _MOCK}, kip=478),
    ClassAnswers(
        "processor.api.MockProcessorContext$CapturedForward", None, "What was forwarded.", {"*": _MOCK}, kip=478
    ),
    ClassAnswers(
        "processor.api.MockProcessorContext$CapturedPunctuator", None, "What was scheduled.", {"*": _MOCK}, kip=478
    ),
    ClassAnswers("processor.MockProcessorContext", None, "The same in earlier releases.", {"*": _MOCK}, kip=267),
    ClassAnswers(
        "processor.MockProcessorContext$CapturedForward", None, "The same in earlier releases.", {"*": _MOCK}, kip=267
    ),
    ClassAnswers(
        "processor.MockProcessorContext$CapturedPunctuator", None, "The same in earlier releases.", {"*": _MOCK},
        kip=267,
    ),
)  # fmt: skip
