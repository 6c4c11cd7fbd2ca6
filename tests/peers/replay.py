"""Does a recording again, and compares: what was sent, and what reached processors, ``peek`` and ``foreach``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import unified_diff
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

from statelib import TopologyTestDriver
from statelib.errors.kinds import ConfigurationError, HindstreamError
from tests.operators.flow import Fed, Flow
from tests.peers.building import REFUSED, Building
from tests.peers.functions import FailsInJava, hashable
from tests.peers.recording import NotExpressed, Recording, Row, plain, row, type_of, type_of_serde

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from statelib.operators.processors.definition import Headers
    from statelib.settings.semantics import Semantics
    from statelib.topology import Topology

_INTERNAL = re.compile(r"-repartition$|subscription-(registration|response)(-\d+)?-topic$", re.IGNORECASE)
_OWN = re.compile(r"^dummy-topology-test-driver-app-id--?\d+-")  # of a topic that was declared as an internal one
_NAME = re.compile(r"^Topolog(y: .*|ies):\n")
_CLASS_OF_EXTRACTOR = re.compile(r"\(extractor class: .*\)")
_INTERNALS = "org.apache.kafka.streams.kstream.internals"
NOT_OF_THE_DSL = {
    f"{_INTERNALS}.AbstractStreamTest#testShouldBeExtensible": "a stream of the test's own, with nodes of its own",
    f"{_INTERNALS}.KTableAggregateTest#testNoEqualsAndNotSameObject": "keys of a class without equals()",
}
"""Tests of which a recording does not show that they cannot be done here, and why."""
_MOST_SHOWN = 1_200


_Types = dict[str, tuple[pa.DataType, pa.DataType]]
Outputs = dict[str, list[Row]]


@dataclass(frozen=True)
class Outcome:
    """What became of a recording.

    Attributes:
        test: The test, ``class#method``.
        kind: ``agrees``; ``described``: there are no records, and the topology's text agrees; ``differs``;
            ``not expressed``: it cannot be done here.
        compared: How many records were compared.
        reason: What differs, or why it cannot be done.
    """

    test: str
    kind: Literal["agrees", "described", "differs", "not expressed"]
    compared: int = 0
    reason: str = ""


def outcome(text: str | bytes, *, by_slices: bool = False) -> Outcome:
    """Does a recording again.

    Args:
        text: The recording.
        by_slices: Whether it is also run as a job, with files, each record in a slice of its own. (Circles always are.)
    """
    test = _test(text)
    if test in NOT_OF_THE_DSL:
        return Outcome(test, "not expressed", reason=NOT_OF_THE_DSL[test])
    try:
        recording = Recording.of(text)
        compared = _compared(recording, by_slices=by_slices)
    except NotExpressed as reason:
        return Outcome(test, "not expressed", reason=str(reason))
    except Exception as error:  # noqa: BLE001 - told with the others
        for what, why in REFUSED.items():
            if isinstance(error, ConfigurationError) and what in error.what:
                return Outcome(test, "not expressed", reason=why)
        return Outcome(test, "differs", reason=f"{type(error).__name__}: {error}"[:_MOST_SHOWN])
    return Outcome(test, "agrees" if recording.piped else "described", compared)


class Different(Exception):
    """It is not the same here."""


def _test(text: str | bytes) -> str:
    found = re.search(rb'"test":\s*"((?:[^"\\]|\\.)*)"', text if isinstance(text, bytes) else text.encode())
    return found[1].decode() if found else "?"


def _compared(recording: Recording, *, by_slices: bool) -> int:
    if recording.settings.get("upgrade.from", "null") != "null":
        raise NotExpressed("an upgrade from an older version (upgrade.from)")
    if int(recording.settings.get("max.task.idle.ms", 0)) > 0:
        raise NotExpressed("records that wait for those of other topics (max.task.idle.ms)")
    building = Building(recording)
    topology = building.topology()
    text, expected = topology.describe(), recording.describe
    if expected is not None and not building.is_optimised_later and _comparable(text) != _comparable(expected):
        there, here = (_comparable(one).splitlines() for one in (expected, text))
        raise Different("\n".join(["described", *unified_diff(there, here, "Kafka Streams", "here", lineterm="", n=1)]))
    if not recording.piped:
        return 0
    if _goes_on(recording):
        return _run(recording, _setting_aside)
    is_circle = any(stage[0].returning for stage in topology.stages)
    ways = [_in_slices] if by_slices or is_circle else []
    if not is_circle:
        ways += [_each_alone, _in_one_batch]
    return min(_run(recording, way) for way in ways)


def _goes_on(recording: Recording) -> bool:
    """Whether functions fail, but the application goes on behind them (``processing.exception.handler``)."""
    calls = [call for function in recording.functions.values() for call in function["calls"]]
    failing = any("threw" in call or {"threw"} & {*chain.from_iterable(call.get("do", ()))} for call in calls)
    return failing and not any("threw" in event for event in recording.piped)


def _run(recording: Recording, way: Callable[[Topology, _Types, Sequence[_Fed], Semantics], Outputs]) -> int:
    """Runs it in one way; how many records were compared."""
    building = Building(recording)
    topology = building.topology()
    feeds, fails = _fed(recording)
    if fails.startswith("java.lang.ClassCastException"):
        raise NotExpressed("a function that fails to cast what it gets")
    if any(fed.topic not in topology.source_topics for fed in feeds):
        raise NotExpressed("records from outside in a topic that the topology writes itself")
    try:
        outputs = way(topology, dict(_types(recording, topology)), feeds, recording.semantics)
    except HindstreamError as error:
        if not fails or FailsInJava.__name__ not in str(error):
            raise
        return 1
    if fails:
        raise Different(f"it fails in Kafka Streams: {fails}")
    return sum(_same(*one, way.__name__) for one in _pairs(recording, building, outputs))


def _each_alone(topology: Topology, types: _Types, feeds: Sequence[_Fed], semantics: Semantics) -> Outputs:
    """In memory, each record in a batch of its own."""
    return _in_batches(topology, types, [[fed] for fed in feeds], semantics)


def _in_one_batch(topology: Topology, types: _Types, feeds: Sequence[_Fed], semantics: Semantics) -> Outputs:
    """In memory, all records in one batch."""
    return _in_batches(topology, types, [feeds], semantics)


def _in_batches(topology: Topology, types: _Types, batches: Sequence[Sequence[_Fed]], semantics: Semantics) -> Outputs:
    headers = [fed.headers for batch in batches for fed in batch]
    flow = Flow(topology, types, semantics, headers_of=headers.__getitem__)
    outputs: Outputs = {}
    for batch in batches:
        for topic, rows in flow.process([Fed(*fed[:4]) for fed in batch]).items():
            outputs.setdefault(topic, []).extend(
                (hashable(one.key), hashable(one.value), one.timestamp, of)
                for one, of in zip(rows, flow.headers[topic], strict=True)
            )
    return outputs


def _in_slices(topology: Topology, types: _Types, feeds: Sequence[_Fed], semantics: Semantics) -> Outputs:
    """As a job, with files and stores on disk, each record in a slice of its own."""
    return _driven(TopologyTestDriver(topology, semantics=semantics), topology, types, feeds)


def _setting_aside(topology: Topology, types: _Types, feeds: Sequence[_Fed], semantics: Semantics) -> Outputs:
    """The same, and goes on where a function fails."""
    driver = TopologyTestDriver(topology, semantics=semantics, on_processing_error="quarantine")
    return _driven(driver, topology, types, feeds)


def _driven(driver: TopologyTestDriver, topology: Topology, types: _Types, feeds: Sequence[_Fed]) -> Outputs:
    with driver:
        inputs = {topic: driver.create_input_topic(topic, *of) for topic, of in types.items()}
        for fed in feeds:
            inputs[fed.topic].pipe_input(fed.key, fed.value, fed.timestamp, headers=fed.headers)
            driver.replay()
        return {
            topic: [
                (hashable(one.key), hashable(one.value), one.timestamp_ms, tuple(one.headers))
                for one in driver.create_output_topic(topic).read_records_to_list()
            ]
            for topic in topology.sink_topics
        }


def _pairs(
    recording: Recording, building: Building, outputs: Outputs
) -> Iterator[tuple[str, Sequence[Any], Sequence[Any]]]:
    """What is compared: its name, as it was in Kafka Streams, and as it is here."""
    sent = {_OWN.sub("", topic): rows for topic, rows in recording.sent.items() if not _INTERNAL.search(topic)}
    for topic in sorted({*sent, *outputs}):
        yield f"the topic {topic}", sent.get(topic, []), outputs.get(topic, [])
    for number, script in building.scripts.items():
        yield f"what reaches the processor {number}", script.expected, script.seen
        yield f"the callbacks of the processor {number}", [], script.left()
    for number, table in building.tables.items():
        called = [tuple(map(plain, call["of"])) for call in recording.functions[str(number)]["calls"]]
        yield f"what the function {number} sees", called, table.seen


def _same(name: str, expected: Sequence[Any], found: Sequence[Any], how: str) -> int:
    if list(expected) != list(found):
        raise Different(f"{name} ({how})\nin Kafka Streams: {list(expected)}\nhere:             {list(found)}")
    return len(expected)


def _comparable(text: str) -> str:
    return _CLASS_OF_EXTRACTOR.sub("(extractor class)", _NAME.sub("", text)).strip()


class _Fed(NamedTuple):
    topic: str
    key: Any
    value: Any
    timestamp: int
    headers: Headers


def _fed(recording: Recording) -> tuple[list[_Fed], str]:
    """The records, up to the one with which it fails in Java, and how it fails."""
    feeds = []
    for event in recording.piped:
        if "record" in event:
            feeds.append(_Fed(event["pipe"], *row(event["record"])))
        if "threw" in event and "record" in event:  # else it has not reached the topology
            return feeds, event["cause"]
    return feeds, ""


def _types(recording: Recording, topology: Topology) -> Iterator[tuple[str, tuple[pa.DataType, pa.DataType]]]:
    """Those of the keys and values of each topic that is read."""
    serdes = {}
    for call in recording.calls:
        if call["method"] in {"stream", "table", "globalTable"} and "threw" not in call:
            topic, *rest = call["with"]
            consumed: dict[str, Any] = next(
                (one["fields"] for one in rest if one and one.get("class") == "Consumed"), {}
            )
            for one in [topic] if isinstance(topic, str) else topic.get("list", []):
                serdes[one] = (consumed.get("keySerde"), consumed.get("valueSerde"))
    defaults = [recording.settings.get(f"default.{part}.serde") for part in ("key", "value")]
    for topic in topology.source_topics:
        records = [event["record"] for event in recording.piped if event["pipe"] == topic and "record" in event]
        of = serdes.get(topic, (None, None))
        key, value = (
            type_of([record[n] for record in records]) or type_of_serde(of[n] or defaults[n]) or pa.string()
            for n in (0, 1)
        )
        yield topic, (key, value)
