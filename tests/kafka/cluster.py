"""What tests do with a Kafka cluster: topics, records, transactions, offsets."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.kafka import group_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Headers = tuple[tuple[str, bytes | None], ...]

_SECONDS = 30
"""For whatever a broker on this machine is asked; far more than it needs."""


@dataclass(frozen=True)
class Message:
    """A record to be.

    Attributes:
        key: May be null.
        value: Null: a tombstone.
        timestamp_ms: At least 1: the client takes 0 for "now".
        partition: None: by the key's hash, as Java's producer has it.
        headers: In order; a name may come twice.
    """

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    partition: int | None = None
    headers: Headers = ()


@dataclass(frozen=True, order=True)
class Record:
    """A record in a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Cluster:
    """A client of a broker.

    Args:
        settings: Those of librdkafka that say where the broker is and how to get in.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)

    def close(self) -> None:
        """Lets go of the connections; the next call makes new ones."""
        for client in ("_admin", "_producer"):
            self.__dict__.pop(client, None)

    # topics

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Creates a topic; its name, once the broker knows it: the controller answers before."""
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        self._admin.create_topics([topic], operation_timeout=_SECONDS)[name].result(_SECONDS)
        self._await_topic(name, partitions)
        return name

    def delete_topic(self, name: str) -> None:
        """Deletes a topic; returns when it is gone for the broker too."""
        self._admin.delete_topics([name], operation_timeout=_SECONDS)[name].result(_SECONDS)
        self._await_topic(name, None)

    def _await_topic(self, name: str, partitions: int | None) -> None:
        deadline = time.monotonic() + _SECONDS
        while self.topics().get(name) != partitions:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the broker has {self.topics().get(name)} partitions of {name}, not {partitions}")
            time.sleep(0.02)

    def topics(self) -> dict[str, int]:
        """All topics, and how many partitions each has."""
        found = self._admin.list_topics(timeout=_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def config(self, topic: str) -> dict[str, str]:
        """The whole configuration of a topic, with defaults."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._admin.describe_configs([resource])[resource].result(_SECONDS)
        return {name: entry.value for name, entry in entries.items()}

    def set_config(self, topic: str, config: Mapping[str, str | None]) -> None:
        """Changes a topic's configuration; None: back to the default."""
        set_, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
        entries = [
            ConfigEntry(name, value, incremental_operation=delete if value is None else set_)
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(_SECONDS)

    # records

    def produce(self, topic: str, messages: Iterable[Message]) -> None:
        """Appends records, each partition's in this order; returns when the broker has them."""
        self._send(self._producer, topic, messages)

    def produce_in_transaction(self, topic: str, messages: Iterable[Message], *, abort: bool = False) -> None:
        """Appends records in one transaction, which is committed or aborted, and waits for its end."""
        producer = self.transactional_producer()
        producer.begin_transaction()
        self._send(producer, topic, messages)
        if abort:
            producer.abort_transaction(_SECONDS)
        else:
            producer.commit_transaction(_SECONDS)
        self.await_transactions(topic)

    def transactional_producer(self) -> Producer:
        """A producer that is ready for a transaction, for what `produce_in_transaction` does not do."""
        producer = Producer(self._producer_settings | {"transactional.id": uuid.uuid4().hex})
        producer.init_transactions(_SECONDS)
        return producer

    def await_transactions(self, topic: str) -> None:
        """Waits until no transaction is open in a topic: a broker says that one has ended before it notes it there."""
        deadline = time.monotonic() + _SECONDS
        while self._offsets(topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED) != self.end_offsets(topic):
            if time.monotonic() > deadline:
                raise TimeoutError(f"a transaction has been open in {topic} for {_SECONDS} s")
            time.sleep(0.01)

    def read(self, topic: str, *, read_committed: bool = True) -> list[Record]:
        """All records that a topic has now, by partition and offset."""
        begins = self.begin_offsets(topic)
        settings = {
            "group.id": "never-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # half a second else, at the end
            "isolation.level": "read_committed" if read_committed else "read_uncommitted",
        }
        consumer = Consumer(self.settings | settings)
        try:
            consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in begins.items()])
            return sorted(_to_the_end(consumer, set(begins)), key=lambda record: (record.partition, record.offset))
        finally:
            consumer.close()

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Removes each partition's records before an offset, as retention does."""
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
        for deleted in self._admin.delete_records(wanted).values():
            deleted.result(_SECONDS)

    # offsets

    def begin_offsets(self, topic: str) -> dict[int, int]:
        """Of each partition the first offset that is left."""
        return self._offsets(topic, OffsetSpec.earliest())

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Of each partition the offset that the next record gets."""
        return self._offsets(topic, OffsetSpec.latest())

    def group_offsets(self, group: str) -> dict[tuple[str, int], group_offsets.GroupOffset]:
        """What a group has committed, by topic and partition."""
        self.await_transactions(group_offsets.TOPIC)
        return group_offsets.latest(self.read(group_offsets.TOPIC), group)

    def _offsets(
        self, topic: str, spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[int, int]:
        wanted = {TopicPartition(topic, partition): spec for partition in range(self.topics()[topic])}
        futures = self._admin.list_offsets(wanted, isolation_level=isolation)
        return {at.partition: future.result(_SECONDS).offset for at, future in futures.items()}

    def _send(self, producer: Producer, topic: str, messages: Iterable[Message]) -> None:
        errors: list[KafkaError] = []
        for message in messages:
            if message.timestamp_ms < 1:
                raise ValueError(f"the client would replace this timestamp by the time of day: {message}")
            place = {} if message.partition is None else {"partition": message.partition}
            producer.produce(
                topic,
                key=message.key,
                value=message.value,
                timestamp=message.timestamp_ms,
                headers=list(message.headers),
                on_delivery=lambda error, _: errors.append(error) if error else None,
                **place,
            )
            producer.poll(0)
        if producer.flush(_SECONDS) or errors:
            raise KafkaException(errors[0] if errors else KafkaError(KafkaError._MSG_TIMED_OUT))

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(self.settings)

    @cached_property
    def _producer(self) -> Producer:
        return Producer(self._producer_settings)

    @property
    def _producer_settings(self) -> dict[str, str | bool]:
        return self.settings | {"partitioner": "murmur2_random", "enable.idempotence": True}


def _to_the_end(consumer: Consumer, open_: set[int]) -> Iterable[Record]:
    while open_:
        message = consumer.poll(_SECONDS)
        if message is None:
            raise TimeoutError(f"nothing within {_SECONDS} s from partitions {sorted(open_)}")
        error = message.error()
        if error is None:
            headers = tuple(message.headers() or ())
            _, timestamp_ms = message.timestamp()
            yield Record(message.partition(), message.offset(), timestamp_ms, message.key(), message.value(), headers)
        elif error.code() == KafkaError._PARTITION_EOF:
            open_.discard(message.partition())
        else:
            raise KafkaException(error)
