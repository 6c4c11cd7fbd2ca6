"""Records sent to a Kafka cluster by librdkafka: in transactions, or each once."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from statelib.errors.counted import counted
from statelib.errors.kinds import InputError, RetryableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from confluent_kafka import Message

_SECONDS = 60.0
_FLUSH_SECONDS = 300.0
_COMMON = {"linger.ms": 20, "log_level": 2}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record; without a timestamp it gets the time of day."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = field(default_factory=list)


def outgoing(
    keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None = None
) -> Iterator[Outgoing]:
    """Records of columns, as an archive or a changelog has them.

    Args:
        keys: Serialised: binary; null: without a key.
        values: The same; null: a tombstone.
        timestamps: int64 or timestamp[ms], ms since 1970; null: the time of day.
        headers: Lists of structs of ``key`` (string) and ``value`` (binary); null: none. None: no record has any.
    """
    listed = repeat(None, len(keys)) if headers is None else headers.to_pylist()
    pairs = ([(header["key"], header["value"]) for header in of or ()] for of in listed)
    columns = (keys.to_pylist(), values.to_pylist(), timestamps.cast(pa.int64()).to_pylist(), pairs)
    yield from starmap(Outgoing, zip(*columns, strict=True))


def record_of(message: Message) -> Outgoing:
    """What was read."""
    key: Any = message.key()
    value: Any = message.value()
    headers: Any = message.headers() or []
    return Outgoing(key, value, message.timestamp()[1], list(headers))


def produce(producer: Producer, topic: str, partition: int, record: Outgoing) -> None:
    """Hands a record to a producer, and waits where its queue is full.

    Raises:
        InputError: The client cannot send its timestamp.
        KafkaException: The producer can send nothing more.
    """
    more: dict[str, Any] = {}
    if record.timestamp_ms is not None:
        if record.timestamp_ms < 1:
            what = f"Kafka's client cannot send a timestamp of {record.timestamp_ms}: it takes 0 for now"
            raise InputError(what, topic=topic, partition=partition)
        more["timestamp"] = record.timestamp_ms
    while True:
        try:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=partition,
                headers=list(record.headers),
                **more,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


@contextmanager
def sending(properties: Mapping[str, str]) -> Iterator[Producer]:
    """A producer that sends each record once, and all before the context ends.

    Raises:
        KafkaException: The cluster has refused some.
        RetryableError: Some did not arrive in time.
    """
    failed: list[Any] = []

    def delivered(error: Any, message: Message) -> None:
        del message
        if error is not None:
            failed.append(error)

    configuration: dict[str, Any] = {**properties, **_COMMON, "enable.idempotence": True, "on_delivery": delivered}
    producer = Producer(configuration)
    try:
        yield producer
        left = producer.flush(_FLUSH_SECONDS)
    except SystemError as error:  # the client has called `delivered` while it was raising what has stopped it for good
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise
    if failed:
        raise KafkaException(failed[0])
    if left:
        raise RetryableError(
            f"{counted(left, 'record was', 'records were')} not sent in time", next_step="run the same command again"
        )


def transactional_producer(
    properties: Mapping[str, str], transactional_id: str, *, timeout_ms: int | None = None
) -> Producer:
    """A producer that is alone: what one before it has left open is over, and such a one can send nothing more.

    Args:
        properties: Of librdkafka.
        transactional_id: Its name, which it shares with those before it.
        timeout_ms: How long a transaction may take; None: the client's minute.

    Raises:
        KafkaException: The cluster refuses, or does not answer.
    """
    configuration: dict[str, Any] = {**properties, **_COMMON, "transactional.id": transactional_id}
    if timeout_ms is not None:
        configuration["transaction.timeout.ms"] = timeout_ms
    producer = Producer(configuration)
    producer.init_transactions(_SECONDS)
    return producer


@contextmanager
def transaction(producer: Producer) -> Iterator[None]:
    """Ends in a commit, or takes back what was sent: readers wait as long as a transaction is open.

    Raises:
        KafkaException: The cluster refuses, or does not answer.
    """
    producer.begin_transaction()
    try:
        yield
        producer.commit_transaction(_SECONDS)
    except BaseException as error:
        if isinstance(error, KafkaException) and error.args[0] == KafkaError._FATAL:  # noqa: SLF001 - its name
            producer.commit_transaction(_SECONDS)  # raises what has ended the producer: `produce` says only that it has
        with suppress(KafkaException):  # the next producer does it
            producer.abort_transaction(_SECONDS)
        raise
