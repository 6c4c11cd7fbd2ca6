"""What a topic of Kafka has, and what a job would have put there, as sides of a comparison.

The topic is read once, into files of Arrow's in a scratch folder. Keys and values are compared as the topic's serdes
read them, those of the job as they would be read if they had been published: bytes may be spelled otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hindstream.kafka.consumer import range_batches
from statelib.comparison.sides import PARTITION_BITS, Side
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.repair.corrections import RETRACTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from hindstream.kafka.cluster import Cluster, TopicState
    from statelib.comparison.matches import Way
    from statelib.comparison.sides import Stretch
    from statelib.job.kafka_topic import KafkaTopic

_COMPACTED = "compact"


def side_of_topic(topic: KafkaTopic, state: TopicState, cluster: Cluster, way: Way, scratch: Path) -> Side:
    """All committed records of a topic.

    Args:
        topic: The topic, with its serdes.
        state: What the cluster says of it.
        cluster: The cluster.
        way: How it is to be compared: of a ``set`` every record that was ever there counts.
        scratch: A folder for its records.

    Raises:
        ConfigurationError: Kafka has deleted records that count; or some take others back, and nobody can tell which.
        InputError: A record cannot be decoded.
    """
    if way == "set":
        _check_complete(topic, state, cluster)
    parts = [_copied(topic, state, cluster, partition, way, scratch) for partition in sorted(state.ends)]
    offsets = {part.partition: part.offsets for part in parts}

    def place_of(place: int) -> dict[str, object]:
        partition, index = place >> PARTITION_BITS, place & ((1 << PARTITION_BITS) - 1)
        return {"topic": topic.name, "partition": partition, "offset": int(offsets[partition][index])}

    own = tuple(part for part in parts if part.end)
    return Side(topic.key.arrow_type, topic.value.arrow_type, own, place_of=place_of)


def as_published(side: Side, topic: KafkaTopic) -> Side:
    """The rows of a side as they would be read from the topic."""
    stretches = tuple(_AsPublished(stretch, topic) for stretch in (*side.shared, *side.own))
    return replace(side, key=topic.key.arrow_type, value=topic.value.arrow_type, own=stretches, shared=())


@dataclass(frozen=True, slots=True)
class _AsPublished:
    """Rows, there and back; see `Stretch`."""

    rows: Stretch
    topic: KafkaTopic

    @property
    def partition(self) -> int:
        return self.rows.partition

    @property
    def start(self) -> int:
        return self.rows.start

    @property
    def end(self) -> int | None:
        return self.rows.end

    def read(self, start: int, end: int | None) -> Iterator[pa.RecordBatch]:
        for batch in self.rows.read(start, end):
            yield _decoded(
                self.topic,
                self.topic.key.serialize(batch.column("key")),
                self.topic.value.serialize(batch.column("value")),
                batch,
            )


@dataclass(frozen=True, slots=True)
class _Copy:
    """The records of a partition in a file; see `Stretch`."""

    partition: int
    offsets: NDArray[np.int64]
    file: Path

    @property
    def start(self) -> int:
        return 0

    @property
    def end(self) -> int:
        return len(self.offsets)

    def read(self, start: int, end: int | None) -> Iterator[pa.RecordBatch]:
        wanted = self.end if end is None else end
        at = 0
        with pa.OSFile(str(self.file)) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                first, last = max(start - at, 0), min(wanted - at, len(batch))
                if first < last:
                    yield batch.slice(first, last - first)
                at += len(batch)
                if at >= wanted:
                    return


def _copied(topic: KafkaTopic, state: TopicState, cluster: Cluster, partition: int, way: Way, scratch: Path) -> _Copy:
    file = scratch / f"topic-{partition}"
    offsets: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    writer = None
    with pa.OSFile(str(file), "wb") as sink:
        for batch in range_batches(cluster.messages(topic.name, partition), partition, state.ends[partition]):
            rows = _decoded(topic, batch.column("key"), batch.column("value"), batch)
            if way == "set":
                _check_takes_nothing_back(topic, rows)
            writer = writer or pa.ipc.new_stream(sink, rows.schema)
            writer.write_batch(rows)
            offsets.append(batch.column("offset").to_numpy())
        if writer is not None:
            writer.close()
    return _Copy(partition, np.concatenate(offsets), file)


def _decoded(topic: KafkaTopic, keys: pa.Array, values: pa.Array, batch: pa.RecordBatch) -> pa.RecordBatch:
    read = []
    for serde, data in ((topic.key, keys), (topic.value, values)):
        try:
            read.append(serde.deserialize(data))
        except InputError as error:
            row = error.place.get("row")
            names = [name for name in ("partition", "offset") if name in batch.schema.names]  # of Kafka's records
            place = {name: batch.column(name)[row].as_py() for name in names}
            step = "give the topic the serdes of whoever wrote it"
            raise InputError(error.what, topic=topic.name, **place, next_step=step) from None
    columns = {"key": read[0], "value": read[1]}
    return pa.RecordBatch.from_pydict({**columns, **{name: batch.column(name) for name in ("timestamp", "headers")}})


def _check_complete(topic: KafkaTopic, state: TopicState, cluster: Cluster) -> None:
    if any(state.begins.values()) or _COMPACTED in cluster.topic_config(topic.name)["cleanup.policy"]:
        what = "Kafka has deleted records of the topic, or may: what readers had cannot be compared record by record"
        raise ConfigurationError(what, topic=topic.name, next_step=_ELSEWHERE)


def _check_takes_nothing_back(topic: KafkaTopic, rows: pa.RecordBatch) -> None:
    if rows.column("headers").null_count == len(rows):
        return
    if any(header["key"] == RETRACTS for of in rows.column("headers").to_pylist() for header in of or ()):
        what = "records of the topic take others back, and which ones the topic alone does not tell"
        raise ConfigurationError(what, topic=topic.name, next_step=_ELSEWHERE)


_ELSEWHERE = "publish to a topic of another name: KafkaTopic(NAME, archive=SINK)"
