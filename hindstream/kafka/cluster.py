"""What a Kafka cluster says of its topics and groups, and what is changed there."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from hindstream.kafka.consumer import QUIET, messages
from hindstream.kafka.errors import REFUSED, kafka_errors
from hindstream.kafka.offset_metadata import metadata_of, partition_time_ms
from hindstream.kafka.properties import client_properties
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, RetryableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from confluent_kafka import Message

    from statelib.settings.settings import Settings

_POLL_SECONDS = 0.05
_SECONDS = 60.0
_MOVING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
    }
)
"""A partition's leader is being chosen, or the broker that is asked has not heard of it yet."""

_HAS_MEMBERS = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.STALE_MEMBER_EPOCH})
"""Offsets are taken of a group's members only, while it has some."""

_NOT_KEPT = "-" * 32_000
"""What no broker keeps with an offset: ``offset.metadata.max.bytes`` is 4096, and far less is ever noted."""

_OF_THE_TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG.value

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic of a cluster at some time.

    Attributes:
        name: Its name.
        origin: What tells it from all others: the ids of its cluster and its own.
        begins: By partition, the first offset that Kafka has not deleted.
        ends: By partition, the offset before which all transactions have ended.
    """

    name: str
    origin: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed for a partition.

    Attributes:
        offset: Where it goes on.
        partition_time_ms: The stream time that a Kafka Streams application has noted with it; None: none.
    """

    offset: int
    partition_time_ms: int | None


class Cluster:
    """A cluster's administration.

    Args:
        settings: See `client_properties`.

    Attributes:
        properties: Of librdkafka, for clients that send or read.

    Raises:
        ConfigurationError: A property cannot be. (There is no connection before the first question.)
    """

    def __init__(self, settings: Settings) -> None:
        self.properties: Mapping[str, str] = client_properties(settings)
        self._heard: list[KafkaError] = []
        with self.errors():
            listening: dict[str, Any] = {**self.properties, **QUIET, "error_cb": self._heard.append}
            self._admin = AdminClient(listening)

    def errors(self, **place: object) -> AbstractContextManager[None]:
        """Turns errors of the client into Hindstream's, which say where: see `kafka_errors`."""
        return kafka_errors(cluster=self._servers, **place)

    @property
    def _servers(self) -> str:
        return self.properties["bootstrap.servers"]

    def topic(self, name: str) -> TopicState:
        """What the cluster says of a topic.

        Raises:
            ConfigurationError: There is no such topic, or it may not be read.
            RetryableError: The cluster did not answer.
        """
        with self.errors(topic=name):
            cluster = self._answer(self._admin.describe_cluster()).cluster_id
            topic = self._answer(self._admin.describe_topics(TopicCollection([name]))[name])
        partitions = [partition.id for partition in topic.partitions]
        return TopicState(
            name,
            origin=f"{cluster}/{topic.topic_id}",
            begins=self._offsets(name, partitions, OffsetSpec.earliest()),
            ends=self._offsets(name, partitions, OffsetSpec.latest()),
        )

    def topic_names(self) -> set[str]:
        """All topics that the client may see. Raises as `topic` does."""
        with self.errors():
            described = self._admin.describe_cluster()
            self._answer(described)  # tells a refusal sooner than the list does
            return set(self._admin.list_topics(timeout=_SECONDS).topics)

    def begins(self, name: str, partitions: list[int]) -> dict[int, int]:
        """By partition, the first offset that Kafka has not deleted. Raises as `topic` does."""
        return self._offsets(name, partitions, OffsetSpec.earliest())

    def offsets_from(self, name: str, partitions: list[int], timestamp_ms: int) -> dict[int, int | None]:
        """By partition, the first offset whose record has this timestamp or a later one; None: there is none."""
        found = self._offsets(name, partitions, OffsetSpec.for_timestamp(timestamp_ms))
        return {partition: None if offset < 0 else offset for partition, offset in found.items()}

    def topic_config(self, name: str) -> dict[str, str]:
        """A topic's configuration. Raises as `topic` does."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        with self.errors(topic=name):
            entries = self._answer(self._admin.describe_configs([resource])[resource])
        return {entry.name: entry.value for entry in entries.values()}

    def set_topic_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Changes some of a topic's configuration, and leaves the rest; returns when the cluster shows it.

        A controller changes it, and brokers hear of that a little later.

        Args:
            name: The topic.
            config: By name the value; None: the topic has none of its own.

        Raises:
            ConfigurationError: There is no such topic, or it may not be changed.
            RetryableError: The cluster did not answer, or does not show the change.
        """
        resource = ConfigResource(ResourceType.TOPIC, name)
        for key, value in config.items():
            how = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
            resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=how))
        with self.errors(topic=name):
            self._answer(self._admin.incremental_alter_configs([resource])[resource])
            last_try = time.monotonic() + _SECONDS
            while not self._has_config(name, config):
                if time.monotonic() > last_try:
                    raise RetryableError(
                        f"the cluster does not show the changed configuration {dict(config)}",
                        topic=name,
                        next_step="run the same command again",
                    )
                self._admin.poll(_POLL_SECONDS)

    def _has_config(self, name: str, config: Mapping[str, str | None]) -> bool:
        resource = ConfigResource(ResourceType.TOPIC, name)
        found = self._answer(self._admin.describe_configs([resource])[resource])
        own = {entry.name: entry.value for entry in found.values() if entry.source == _OF_THE_TOPIC}
        return all(own.get(key) == value for key, value in config.items())

    def ensure_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Creates a topic, with the cluster's replication, if there is none of the name.

        Raises:
            ConfigurationError: It has other partitions or another configuration; or it may not be created.
            RetryableError: The cluster did not answer.
        """
        if self._create(name, partitions, config):
            return
        found = {key: value for key, value in self.topic_config(name).items() if key in config}
        held = len(self.topic(name).ends)
        if held != partitions or found != config:
            what = f"the topic has {counted(held, 'partition')} and {found}, not {partitions} and {dict(config)}"
            step = "change it, or delete it if it holds nothing that matters"
            raise ConfigurationError(what, topic=name, cluster=self._servers, next_step=step)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Creates a topic, with the cluster's replication.

        Raises:
            ConfigurationError: There is one of the name; or it may not be created.
            RetryableError: The cluster did not answer.
        """
        if not self._create(name, partitions, config):
            step = "look whose it is; --replace deletes it, with all that it holds"
            raise ConfigurationError("there is such a topic already", topic=name, cluster=self._servers, next_step=step)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic, if it is there; returns when it is gone. Raises as `topic` does."""
        with self.errors(topic=name):
            try:
                self._answer(self._admin.delete_topics([name])[name])
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
            while name in self._admin.list_topics(timeout=_SECONDS).topics:
                self._admin.poll(_POLL_SECONDS)

    def last_value(self, name: str, partition: int, key: bytes) -> bytes | None:
        """The value of a partition's last committed record with a key; None: there is none. Raises as `topic` does."""
        last: Any = None
        for message in self.messages(name, partition):
            if message.key() == key:
                last = message.value()
        return None if last is None else bytes(last)

    def messages_from(self, name: str, partition: int, start: int) -> Iterator[Message]:
        """The committed records of a partition from an offset on, at which there is one. Raises as `topic` does."""
        with self.errors(topic=name, partition=partition):
            yield from messages(self.properties, name, partition, start)

    def messages(self, name: str, partition: int) -> Iterator[Message]:
        """All committed records of a partition, up to where no transaction is open. Raises as `topic` does."""
        if self._offsets(name, [partition], OffsetSpec.latest())[partition] == 0:
            return
        start = self.begins(name, [partition])[partition]  # the client would wait half a second before it asks
        with self.errors(topic=name, partition=partition):
            yield from messages(self.properties, name, partition, start)

    def check_stopped(self, group: str, *, assumed: bool = False, topic: str | None = None) -> bool:
        """Checks that no member of a group is at work.

        The client describes classic and consumer groups. One of the protocol ``streams`` (KIP-1071) is not there for
        it: see `_streams_group_is_at_work`.

        Args:
            group: The group.
            assumed: Whether it is taken to be at rest where nobody can tell.
            topic: One that is there, for a group that has committed nothing yet.

        Returns:
            Whether it is of the protocol ``streams``, and has committed something.

        Raises:
            ConfigurationError: One is, or nobody can tell.
            RetryableError: The cluster did not answer.
        """
        with self.errors(group=group):
            try:
                found = self._answer(self._admin.describe_consumer_groups([group])[group])
            except KafkaException as error:
                if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise
                found = None
        if found is not None and found.state != ConsumerGroupState.DEAD:
            if found.members or found.state != ConsumerGroupState.EMPTY:
                raise self._at_work(group, f"{found.state.name}, with {counted(len(found.members), 'member')}")
            return False
        offsets = self.group_offsets(group)
        at_work = self._streams_group_is_at_work(group, offsets or ({(topic, 0): 0} if topic else {}))
        if at_work:
            raise self._at_work(group, "of the protocol streams, and has members")
        if at_work is None and offsets and not assumed:
            what = "the group does not tell whether the application is running: it is of the protocol streams"
            step = "stop all its instances, and give --stopped"
            raise ConfigurationError(what, group=group, cluster=self._servers, next_step=step)
        return bool(offsets)

    def _at_work(self, group: str, how: str) -> ConfigurationError:
        step = "stop all its instances, and wait until the group is empty (session.timeout.ms)"
        what = f"the application is running: its group is {how}"
        return ConfigurationError(what, group=group, cluster=self._servers, next_step=step)

    def _streams_group_is_at_work(self, group: str, offsets: Mapping[tuple[str, int], int]) -> bool | None:
        """Whether a group that the client cannot describe has members; None: nobody can tell.

        The broker takes offsets of nobody for a group that has members, and it looks at that before it looks at what
        is to be noted with an offset. So it is given a note that it never keeps: this changes nothing.

        Args:
            group: The group.
            offsets: Some that it has, by topic and partition.
        """
        one_of_each = {name: (partition, offset) for (name, partition), offset in offsets.items()}
        asked = [TopicPartition(name, *place, _NOT_KEPT) for name, place in one_of_each.items()]
        with self.errors(group=group):
            codes = {place.error and place.error.code() for place in self._altered(group, asked)} if asked else set()
        if codes & _HAS_MEMBERS:
            return True
        return False if KafkaError.OFFSET_METADATA_TOO_LARGE in codes else None

    def set_group_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Sets where a group goes on, by topic and partition, and reads it back.

        Raises:
            ConfigurationError: The group is at work, or may not be changed.
            RetryableError: The cluster did not answer, or something else is read back.
        """
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        with self.errors(group=group):
            for place in self._altered(group, places):
                if place.error is not None and place.error.code() in _HAS_MEMBERS:
                    raise self._at_work(group, "not empty")
                if place.error is not None:
                    raise KafkaException(place.error)
        found = self.group_offsets(group)
        if any(found.get(place) != offset for place, offset in offsets.items()):
            raise RetryableError("other offsets are read back", group=group, next_step="run the same command again")

    def _altered(self, group: str, places: list[TopicPartition]) -> list[TopicPartition]:
        """Offsets that the broker was asked to take for a group, each with its error."""
        asked = ConsumerGroupTopicPartitions(group, places)
        return list(self._answer(self._admin.alter_consumer_group_offsets([asked])[group]).topic_partitions)

    def group_offsets(self, group: str) -> dict[tuple[str, int], int]:
        """Where a group goes on, by topic and partition. Raises as `topic` does."""
        return {place: committed.offset for place, committed in self.committed(group).items()}

    def committed(self, group: str, *, stable: bool = False) -> dict[tuple[str, int], Committed]:
        """What a group has committed, by topic and partition. Raises as `topic` does.

        Args:
            group: The group.
            stable: Whether to wait until no transaction with offsets of the group is open: one that was being
                committed when its application ended moves them a little later.
        """

        def found() -> list[TopicPartition]:
            asked = ConsumerGroupTopicPartitions(group)
            answers = self._admin.list_consumer_group_offsets([asked], require_stable=stable)
            places = self._answer(answers[group]).topic_partitions
            for place in places:
                if place.error is not None:
                    raise KafkaException(place.error)
            return list(places)

        with self.errors(group=group):
            places = self._patiently(found, frozenset({KafkaError.UNSTABLE_OFFSET_COMMIT}) if stable else frozenset())
        return {
            (place.topic, place.partition): Committed(place.offset, partition_time_ms(metadata_of(place)))
            for place in places
        }

    def _create(self, name: str, partitions: int, config: Mapping[str, str]) -> bool:
        """False: there is one of the name."""
        with self.errors(topic=name):
            try:
                self._answer(self._admin.create_topics([NewTopic(name, partitions, config=dict(config))])[name])
            except KafkaException as error:
                if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    return False
                raise
            described = partial(self._admin.describe_topics, TopicCollection([name]))
            self._patiently(lambda: self._answer(described()[name]), _MOVING | {KafkaError.UNKNOWN_TOPIC_OR_PART})
        self._offsets(name, list(range(partitions)), OffsetSpec.latest())
        return True

    def _offsets(self, name: str, partitions: list[int], which: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(name, partition): which for partition in partitions}

        def found() -> dict[int, int]:
            answers = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
            return {place.partition: self._answer(answer).offset for place, answer in answers.items()}

        with self.errors(topic=name):
            return self._patiently(found, _MOVING)

    def _patiently(self, ask: Callable[[], _Answer], passing: frozenset[int]) -> _Answer:
        """Asks again for as long as the answer is one of these errors, which leaders that are being chosen give."""
        last_try = time.monotonic() + _SECONDS
        while True:
            try:
                return ask()
            except KafkaException as error:
                if error.args[0].code() not in passing or time.monotonic() > last_try:
                    raise
            self._admin.poll(_POLL_SECONDS)

    def _answer(self, future: Future[_Answer]) -> _Answer:
        """Waits for an answer, but not where the cluster has told the client that it will not let it in.

        librdkafka tries again for as long as it may, and then says only that time is over.
        """
        while True:
            with suppress(TimeoutError):
                return future.result(_POLL_SECONDS)
            self._admin.poll(0)
            for error in self._heard:
                if error.code() in REFUSED:
                    raise KafkaException(error)
