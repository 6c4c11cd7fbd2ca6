"""In which bytes an application reads and writes the topics of its port, and under which names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.columns.windowed_type import SESSIONS, KeyWindows, is_windowed_struct
from statelib.described.live_format import is_plain
from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError
from statelib.serdes import BytesSerde, Serde, serde_for
from statelib.serdes.json import JsonSerde
from statelib.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from statelib.topology import Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.job.job import Job
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.topology import Topology

_STEP = "give the topic the application's serdes, as for hindstream archive: --topics FILE.py:NAME"


class Formats:
    """See the module's docstring.

    Strings, numbers and bytes are in Kafka's own bytes, and other values are JSON, unless somebody has declared a
    topic's serdes. Keys of windows are as Kafka's windowed serdes write them.

    Args:
        job: The job; its ``kafka_sinks`` declare some.
        declared: Those of topics, by the names of their archives.
    """

    def __init__(self, job: Job, declared: Sequence[KafkaTopic] = ()) -> None:
        self._topology = job.topology
        self._declared = {topic.archive_name: topic for topic in (*job.kafka_sinks, *declared)}
        self._sources = {node.topic: node for node in job.topology.nodes if isinstance(node, Source)}

    def name(self, topic: str) -> str:
        """What the application calls a topic of the job's."""
        return self._declared[topic].name if topic in self._declared else topic

    def source_bytes(self, topic: str, records: pa.Table) -> tuple[pa.Array, pa.Array]:
        """Keys and values of a source's records, as the application reads them.

        Raises:
            ConfigurationError: Nobody knows which bytes these are.
        """
        consumed = self._sources[topic].consumed
        parts = []
        for part, serde in (("key", consumed.key_serde), ("value", consumed.value_serde)):
            column = _whole(records[part])
            if serde is not None or pa.types.is_binary(column.type):  # the archive has the bytes
                parts.append(column)
                continue
            of = self._serde(topic, part, column.type)
            try:
                parts.append(of.serialize(column).cast(pa.binary()))
            except HindstreamError as error:
                raise ConfigurationError(error.what, topic=topic, part=part, next_step=_STEP) from error
        return parts[0], parts[1]

    def sink_format(self, topic: str, key: pa.DataType, value: pa.DataType) -> SinkFormat:
        """How the application writes a sink.

        Args:
            topic: The sink.
            key: The type of its keys here.
            value: That of its values.

        Raises:
            ConfigurationError: Nobody knows which bytes these are.
        """
        return SinkFormat(topic, self._serde(topic, "key", key), self._serde(topic, "value", value))

    def _serde(self, topic: str, part: str, of: pa.DataType) -> Serde:
        if topic in self._declared:
            found: Serde = getattr(self._declared[topic], part)
            return found
        if part == "key" and is_windowed_struct(of):
            return self._windowed(topic, of)
        return _default(topic, part, of)

    def _windowed(self, topic: str, of: pa.DataType) -> Serde:
        inner = _default(topic, "key", of.field("key").type)
        windows = _windows_of(self._topology, topic)
        if windows is None or windows.kind == "mixed":
            what = "the windows of the topic's keys are not known, so neither are their bytes"
            raise ConfigurationError(what, topic=topic, next_step=_STEP)
        if windows == SESSIONS:
            return SessionWindowedSerde(inner)
        return TimeWindowedSerde(inner, windows.size_ms or 0, windows.grid)


@dataclass(frozen=True, slots=True)
class SinkFormat:
    """The serdes of a sink.

    Attributes:
        topic: Its name in the job.
        key: Of keys.
        value: Of values.
    """

    topic: str
    key: Serde
    value: Serde

    def read(self, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> tuple[pa.Array, pa.Array]:
        """What the application has written.

        Raises:
            InputError: The serdes cannot read it.
        """
        found = []
        for part, serde, data in (("key", self.key, keys), ("value", self.value, values)):
            try:
                found.append(serde.deserialize(pa.array(data, pa.binary())))
            except InputError as error:
                shown = f"as {serde.arrow_type}"
                what = f"what the application writes cannot be read {shown}: {error.what}"
                raise InputError(what, topic=self.topic, part=part, next_step=_STEP) from None
        return found[0], found[1]


AS_BYTES = SinkFormat("", BytesSerde(), BytesSerde())
"""Of a topic that only the application writes."""


def _default(topic: str, part: str, of: pa.DataType) -> Serde:
    if is_plain(of) or pa.types.is_null(of):
        return BytesSerde() if pa.types.is_null(of) else serde_for(of)
    if pa.types.is_nested(of) and not is_windowed_struct(of):
        return JsonSerde(of)
    raise ConfigurationError(f"Kafka has no serde of its own for {of}", topic=topic, part=part, next_step=_STEP)


def _windows_of(topology: Topology, topic: str) -> KeyWindows | None:
    """The windows of a sink's keys: those of the nearest node above it that gives any."""
    by_name = {node.name: node for node in topology.nodes}
    writers = {node.topic: node for node in topology.nodes if isinstance(node, Sink) and node.internal}
    waiting = [node.name for node in topology.nodes if isinstance(node, Sink) and node.topic == topic]
    seen: set[str] = set()
    while waiting:
        node = by_name[waiting.pop(0)]
        if node.name in seen:
            continue
        seen.add(node.name)
        if isinstance(node, Processor) and (found := _windows(node.spec)) is not None:
            return found
        if isinstance(node, Source) and node.internal and node.topic in writers:
            waiting.append(writers[node.topic].name)
        waiting += node.parents
    return None


def _windows(spec: object) -> KeyWindows | None:
    of_keys = getattr(getattr(spec, "windows", None), "of_keys", None)
    return of_keys if isinstance(of_keys, KeyWindows) else None


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
