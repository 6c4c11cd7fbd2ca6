"""The broker of the test bed, and examples of what can be done with it."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from statelib.topics.partitioner import partition_for
from tests.kafka.cluster import Message, Record
from tests.kafka.group_offsets import GroupOffset
from tests.kafka.streams_app import StreamsApp

if TYPE_CHECKING:
    from tests.kafka.broker import Broker
    from tests.kafka.cluster import Cluster

pytestmark = pytest.mark.slow


def test_a_topic_gives_back_what_was_produced(cluster: Cluster, unique: str) -> None:
    topic = cluster.create_topic(unique, partitions=3)
    messages = [
        Message(b"a", b"1", 1_000, partition=2, headers=(("h", b"x"), ("h", None))),
        Message(b"a", None, 500, partition=2),
        Message(None, b"3", 7, partition=0),
        Message(b"", b"", 1, partition=0),
    ]
    cluster.produce(topic, messages)
    assert cluster.read(topic) == [
        Record(0, 0, 7, None, b"3"),
        Record(0, 1, 1, b"", b""),
        Record(2, 0, 1_000, b"a", b"1", (("h", b"x"), ("h", None))),
        Record(2, 1, 500, b"a", None),
    ]
    assert cluster.begin_offsets(topic) == {0: 0, 1: 0, 2: 0}
    assert cluster.end_offsets(topic) == {0: 2, 1: 0, 2: 2}


def test_a_key_has_the_partition_that_java_gives_it(cluster: Cluster, unique: str) -> None:
    topic = cluster.create_topic(unique, partitions=5)
    keys = [b"key-%d" % number for number in range(100)]
    cluster.produce(topic, [Message(key, b"", 1) for key in keys])
    expected = dict(zip(keys, partition_for(pa.array(keys, pa.binary()), 5).tolist(), strict=True))
    assert {record.key: record.partition for record in cluster.read(topic)} == expected


def test_a_time_that_the_client_would_replace_is_refused(cluster: Cluster, unique: str) -> None:
    topic = cluster.create_topic(unique)
    with pytest.raises(ValueError, match="time of day"):
        cluster.produce(topic, [Message(b"a", b"", 0)])


def test_an_aborted_transaction_is_there_for_who_does_not_mind(cluster: Cluster, unique: str) -> None:
    topic = cluster.create_topic(unique)
    cluster.produce_in_transaction(topic, [Message(b"a", b"1", 1), Message(b"b", b"2", 2)])
    cluster.produce_in_transaction(topic, [Message(b"a", b"dropped", 3)], abort=True)
    cluster.produce(topic, [Message(b"c", b"3", 4)])
    # Offsets 2 and 4 are the transactions' markers.
    committed = [Record(0, 0, 1, b"a", b"1"), Record(0, 1, 2, b"b", b"2"), Record(0, 5, 4, b"c", b"3")]
    assert cluster.read(topic) == committed
    all_records = [*committed[:2], Record(0, 3, 3, b"a", b"dropped"), committed[2]]
    assert cluster.read(topic, read_committed=False) == all_records


def test_records_go_when_retention_has_passed_them(cluster: Cluster, unique: str) -> None:
    topic = cluster.create_topic(unique, partitions=2)
    cluster.produce(topic, [Message(b"k", b"%d" % number, 1, partition=number % 2) for number in range(8)])
    cluster.delete_records(topic, {1: 3})
    assert cluster.begin_offsets(topic) == {0: 0, 1: 3}
    assert [record.value for record in cluster.read(topic)] == [b"0", b"2", b"4", b"6", b"7"]


def test_compaction_keeps_the_last_record_of_a_key(broker: Broker, unique: str) -> None:
    cluster = broker.cluster
    topic = cluster.create_topic(unique, partitions=2, config={"cleanup.policy": "compact"})
    for partition in (0, 1):
        cluster.produce(
            topic, [Message(b"k%d" % (number % 3), b"%d" % number, number + 1, partition) for number in range(9)]
        )
    broker.compact(topic)
    left = [Record(partition, n, n + 1, b"k%d" % (n - 6), b"%d" % n) for partition in (0, 1) for n in (6, 7, 8)]
    assert cluster.read(topic, read_committed=False) == left  # and nothing of what made it compact
    assert cluster.config(topic)["segment.ms"] == "604800000"

    cluster.produce(topic, [Message(b"k0", None, 20, partition=0)])
    broker.compact(topic)
    assert [record.key for record in cluster.read(topic)] == [b"k1", b"k2", b"k0", b"k0", b"k1", b"k2"]


def test_a_topic_that_is_not_compacted_is_refused(broker: Broker, unique: str) -> None:
    topic = broker.cluster.create_topic(unique)
    with pytest.raises(ValueError, match=r"cleanup\.policy"):
        broker.compact(topic)


def test_a_group_has_offsets_with_metadata(cluster: Cluster, unique: str) -> None:
    topic = cluster.create_topic(unique, partitions=2)
    consumer = Consumer(cluster.settings | {"group.id": unique, "enable.auto.commit": False})
    long_text = "é" * 100
    for offset, metadata in ((5, "replaced"), (6, long_text)):
        consumer.commit(offsets=[TopicPartition(topic, 1, offset, metadata=metadata)], asynchronous=False)
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    # confluent_kafka sends the end of its C string too.
    assert cluster.group_offsets(unique) == {(topic, 0): GroupOffset(3), (topic, 1): GroupOffset(6, long_text + "\0")}
    assert cluster.group_offsets(f"{unique}-other") == {}


def test_a_secured_broker_lets_in_who_knows_the_password(secured_broker: Broker, unique: str) -> None:
    cluster = secured_broker.cluster
    topic = cluster.create_topic(unique)
    cluster.produce(topic, [Message(b"a", b"1", 1)])
    assert cluster.read(topic) == [Record(0, 0, 1, b"a", b"1")]
    silent = logging.getLogger(unique)
    silent.setLevel(logging.CRITICAL)
    for wrong in ({"sasl.password": "wrong"}, {"security.protocol": "PLAINTEXT"}):
        with pytest.raises(KafkaException):
            AdminClient(cluster.settings | wrong, logger=silent).list_topics(timeout=1)


def test_java_gets_into_a_secured_broker_too(secured_broker: Broker, unique: str, tmp_path: Path) -> None:
    for topic in ("visits", "sessions"):
        secured_broker.cluster.create_topic(f"{unique}-{topic}")
    secured_broker.cluster.produce(f"{unique}-visits", [Message(b"a", b"", 1)])
    with StreamsApp("sessions", secured_broker, unique, tmp_path / "state", topic_prefix=f"{unique}-") as app:
        app.catch_up()
        assert app.dump("sessions-store") == [{"key": "a", "value": 1, "start_ms": 1, "end_ms": 1}]


_OWNER = """
import sys, time
from pathlib import Path
from tests.kafka.broker import Broker
broker = Broker(Path(sys.argv[1]))
broker.start()
broker.cluster.create_topic("kept", partitions=3)
broker.stop()
broker.start()
print(broker.cluster.topics()["kept"], broker._running().process.pid, flush=True)
time.sleep(600)
"""


def test_a_broker_keeps_its_topics_and_ends_with_its_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER, tmp_path], stdout=subprocess.PIPE, text=True)
    with owner:
        partitions, pid = owner.stdout.readline().rsplit(maxsplit=1)
        owner.send_signal(signal.SIGKILL)
    assert partitions == "3"
    deadline = time.monotonic() + 30
    while _is_alive(int(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    """A zombie is not: init has yet to look."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
