"""Reads a partition of a topic by librdkafka, record by record."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from hindstream.kafka.errors import kafka_errors
from statelib.changelog.export import RECORDS
from statelib.topics.parquet.schema import HEADERS, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from confluent_kafka import Message

_COPIED = pa.schema([
    ("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32()), ("offset", pa.int64()),
    ("timestamp", TIMESTAMP), ("headers", HEADERS),
])  # fmt: skip

QUIET = {"log_level": 2}
"""librdkafka's own log has only what is critical: what goes wrong is in its errors too."""

_SECONDS = 60.0
_BATCH_RECORDS = 50_000
_READING = {
    "group.id": "hindstream",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,  # the end is told after a fetch or two that find nothing, which last half a second else
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",  # the broker may delete what is being read
}


def messages(
    properties: Mapping[str, str], topic: str, partition: int, start: int = OFFSET_BEGINNING
) -> Iterator[Message]:
    """All committed records of a partition, from offset ``start`` on, up to where no transaction is open.

    Raises:
        KafkaException: The cluster refuses, or does not answer.
    """
    with closing(Consumer({**properties, **QUIET, **_READING})) as consumer:
        consumer.assign([TopicPartition(topic, partition, start)])
        while True:
            message = consumer.poll(_SECONDS)
            if message is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - its name
            if (error := message.error()) is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                return
            elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # the client wants a group, and looks for its coordinator; nothing is ever asked of that
            else:
                raise KafkaException(error)


def range_batches(found: Iterable[Message], partition: int, end: int) -> Iterator[pa.RecordBatch]:
    """The records before offset ``end``, in the columns of Spark's Kafka source that a copy looks at.

    Their timestamps may be such as Spark has none for: they are in milliseconds.
    """
    rows: list[dict[str, Any]] = []
    for message in found:
        offset = message.offset() or 0
        if offset >= end:
            break
        rows.append({**_row(message), "partition": partition, "offset": offset})
        rows[-1]["headers"] = rows[-1]["headers"] or None
        if len(rows) == _BATCH_RECORDS:
            yield pa.RecordBatch.from_pylist(rows, _COPIED)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, _COPIED)


@dataclass(frozen=True, slots=True)
class ChangelogReader:
    """Reads a changelog topic of a live application; travels to where that is done.

    Attributes:
        properties: Of librdkafka.
        topic: The changelog.
    """

    properties: Mapping[str, str]
    topic: str

    def __call__(self, partition: int, end: int) -> Iterator[pa.RecordBatch]:
        """A partition's records before an offset, as `hindstream.import_changelog` takes them.

        Raises:
            ConfigurationError: The cluster refuses.
            RetryableError: It does not answer.
        """
        if end == 0:
            return
        place = {"cluster": self.properties["bootstrap.servers"], "topic": self.topic, "partition": partition}
        rows: list[dict[str, Any]] = []
        with kafka_errors(**place):
            for message in messages(self.properties, self.topic, partition):
                if (message.offset() or 0) >= end:
                    break
                rows.append(_row(message))
                if len(rows) == _BATCH_RECORDS:
                    yield pa.RecordBatch.from_pylist(rows, RECORDS)
                    rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, RECORDS)


def _row(message: Message) -> dict[str, Any]:
    headers: Any = message.headers() or []
    return {
        "key": message.key(),
        "value": message.value(),
        "timestamp": message.timestamp()[1],
        "headers": [{"key": name, "value": value} for name, value in headers],
    }
