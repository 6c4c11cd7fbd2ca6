"""A Kafka broker of this process: KRaft mode, broker and controller in one, on loopback."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.kafka.certificates import write_certificate
from tests.kafka.cluster import Cluster
from tests.kafka.java import JavaProcess, attached

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

USER = "hindstream-tests"
PASSWORD = "not-a-secret-3vGx"

_HEAP_MB = 384
_START_SECONDS = 120
_STARTS = 3
_WAIT_SECONDS = 60

_SETTINGS = {
    # Records of the past: none is too old.
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "false",
    # There is one broker.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    # Nobody waits.
    "group.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "100",
    # Small: few internal partitions, threads and buffers.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "log.cleaner.dedupe.buffer.size": str(2 << 20),
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
}

_SILENT = logging.getLogger("tests.kafka.silent")
"""For a client that tries until the broker is ready, and would tell of each time."""
_SILENT.setLevel(logging.CRITICAL)

_ROLLING = {"segment.ms": "1", "min.cleanable.dirty.ratio": "0"}


class Broker:
    """A broker that can be started, stopped and started again on what it had.

    Args:
        folder: For its data and its log; exists.
        secured: Only with TLS (a certificate that it signs itself) and a password (SASL/PLAIN).
        users: Of a secured one: passwords of further users, who may do what ACLs allow; none: it has no ACLs.

    Attributes:
        cluster: A client of it.
    """

    def __init__(self, folder: Path, *, secured: bool = False, users: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._secured = secured
        self._users = dict(users or {})
        self._process: JavaProcess | None = None
        self._port = 0
        if secured:
            self._key, self.trusted = write_certificate(folder)

    @property
    def bootstrap_servers(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._port}"

    @property
    def settings(self) -> dict[str, str]:
        """What a client by librdkafka needs to get in."""
        settings = {"bootstrap.servers": self.bootstrap_servers}
        if self._secured:
            settings |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
            settings |= {"sasl.username": USER, "sasl.password": PASSWORD, "ssl.ca.location": str(self.trusted)}
        return settings

    @property
    def java_settings(self) -> dict[str, str]:
        """The same for Java; Spark's options are these with ``kafka.`` in front."""
        settings = {"bootstrap.servers": self.bootstrap_servers}
        if self._secured:
            settings |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": _jaas()}
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.trusted)}
        return settings

    def start(self) -> None:
        """Starts it, where it was if it has run before; returns when it answers."""
        is_first = self._port == 0
        for _ in range(_STARTS if is_first else 1):  # somebody else may take a port in between
            if is_first:
                self._port, self._controller_port = _free_ports()
                self.cluster = Cluster(self.settings)
            configuration = self.folder / "server.properties"
            configuration.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
            main = attached("hindstream.testbed.Broker", configuration, heap_mb=_HEAP_MB)
            self._process = JavaProcess(main, self.folder / "broker.log")
            if self._answers():
                return
            self.kill()
        raise RuntimeError(f"the broker does not start; {self._running().said()}")

    def stop(self) -> None:
        """Stops it in good order."""
        self.cluster.close()
        self._running().stop()

    def kill(self) -> None:
        """Ends it at once."""
        self.cluster.close()  # which would complain
        self._running().kill()

    def compact(self, topic: str) -> None:
        """Has the log cleaner compact all that a topic holds now.

        An active segment is never compacted, and ends only when something is appended. So a transaction is aborted in
        each partition: its record ends one segment and its marker the next, and the record is cleaned away too.
        """
        cluster = self.cluster
        if "compact" not in cluster.config(topic)["cleanup.policy"]:
            raise ValueError(f"{topic} is not compacted: its cleanup.policy says so")
        ends = cluster.end_offsets(topic)
        cluster.set_config(topic, _ROLLING)
        producer = cluster.transactional_producer()
        producer.begin_transaction()
        for partition in ends:
            producer.produce(topic, key=b"compact", value=b"", partition=partition)
        producer.flush()
        time.sleep(0.01)  # older than segment.ms when the marker comes
        producer.abort_transaction()
        wanted = {partition: end + 1 for partition, end in ends.items()}
        deadline = time.monotonic() + _WAIT_SECONDS
        while not _reached(wanted, self._cleaned(topic)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"compacted up to {self._cleaned(topic)}, not {wanted}; {self._running().said()}")
            time.sleep(0.05)
        cluster.set_config(topic, dict.fromkeys(_ROLLING))

    def _cleaned(self, topic: str) -> dict[int, int]:
        """Of each partition the offset that the cleaner has reached: its file has a version, a count, then rows."""
        try:
            rows = (self.folder / "data" / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
        except FileNotFoundError:
            return {}
        fields = [row.split() for row in rows]
        return {int(partition): int(offset) for name, partition, offset in fields if name == topic}

    def _properties(self) -> dict[str, str]:
        protocol = "SASL_SSL" if self._secured else "PLAINTEXT"
        controller = f"127.0.0.1:{self._controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"{protocol}://{self.bootstrap_servers},CONTROLLER://{controller}",
            "listener.security.protocol.map": f"{protocol}:{protocol},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": protocol,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.folder / "data"),
        }
        if self._secured:
            settings |= {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "listener.name.sasl_ssl.plain.sasl.jaas.config": _jaas({USER: PASSWORD, **self._users}),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._key),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.trusted),
            }
        if self._users:
            settings |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found": "false",
                "super.users": f"User:{USER};User:ANONYMOUS",  # the broker comes to its own controller without a name
            }
        return settings | _SETTINGS

    def _answers(self) -> bool:
        """Waits until it does; False if it has ended instead."""
        deadline = time.monotonic() + _START_SECONDS
        while self._running().is_alive and time.monotonic() < deadline:
            with suppress(KafkaException):
                if _listens(self._port):
                    self._await_coordinators()
                    return True
            time.sleep(0.05)
        return False

    def _await_coordinators(self) -> None:
        """Has the topics of transactions and groups made, which else delays whoever comes first, or fails for them."""
        consumer = Consumer(self.settings | {"group.id": "first"}, logger=_SILENT)
        try:
            consumer.committed([TopicPartition("any", 0)], _WAIT_SECONDS)
        finally:
            consumer.close()
        Producer(self.settings | {"transactional.id": "first"}, logger=_SILENT).init_transactions(_WAIT_SECONDS)

    def _running(self) -> JavaProcess:
        if self._process is None:
            raise RuntimeError("the broker has not been started")
        return self._process


def _jaas(users: Mapping[str, str] | None = None) -> str:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    known = "".join(f' user_{user}="{password}"' for user, password in (users or {}).items())
    return f'{login} required username="{USER}" password="{PASSWORD}"{known};'


def _reached(wanted: Mapping[int, int], offsets: Mapping[int, int]) -> bool:
    return all(offsets.get(partition, -1) >= offset for partition, offset in wanted.items())


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports() -> tuple[int, int]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(socket.socket()) for _ in range(2))
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
