"""Topics of a real broker, archived by Spark's Kafka source."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.kafka.properties import CREDENTIALS, variable_of
from hindstream.lineage import emission
from hindstream.spark.kafka import archive as archive_module
from hindstream.spark.kafka.archive import archive_topics
from statelib.errors.kinds import ConfigurationError, FencedError, InputError
from statelib.job.kafka_topic import KafkaTopic
from statelib.serdes import StringSerde
from statelib.serdes.json import JsonSerde
from statelib.settings.settings import load_settings
from statelib.topics.archive import TopicArchive
from statelib.topics.kafka_copy import KafkaCopy
from tests.conftest import ROOT
from tests.hindstream.lineage.receiver import receiver
from tests.kafka.cluster import Message
from tests.kafka.maven import build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hindstream.spark.kafka.archive import Copied
    from statelib.settings.settings import Settings
    from tests.kafka.broker import Broker
    from tests.kafka.cluster import Cluster

pytestmark = pytest.mark.spark

KILLED = """
import json, os, signal, sys
from hindstream.spark.kafka import archive
from statelib.settings.settings import load_settings
from tests.kafka.test_archive import topic_of

real = archive.set_aside

def killed(*arguments, **more):
    if sys.argv[1] == "after set_aside":
        real(*arguments, **more)
    os.kill(os.getpid(), signal.SIGKILL)

archive.set_aside = killed
given = {**json.loads(sys.argv[3]), "on_bad_record": "quarantine"}
list(archive.archive_topics([topic_of(sys.argv[2])], load_settings(given, environ={})))
"""
"""A driver that is killed at a step."""

VALUE = pa.struct([("n", pa.int64())])


@pytest.fixture(scope="module", autouse=True)
def connector(spark: SparkSession) -> None:
    """Spark's Kafka connector, as Maven has fetched it; `test_cli` has it fetched by Spark."""
    for jar in connector_jars():
        spark.sql(f"ADD JAR '{jar}'")


def connector_jars() -> list[str]:
    return sorted(map(str, (build() / "spark-jars").iterdir()))


@pytest.fixture
def settings(tmp_path: Path, cluster: Cluster) -> Settings:
    return with_settings(tmp_path, cluster)


def with_settings(tmp_path: Path, cluster: Cluster, **more: object) -> Settings:
    given = {
        "warehouse": str(tmp_path / "warehouse"),
        "state_dir": str(tmp_path / "state"),
        "spark_master": "local[2,4]",
        "spark_conf": {"spark.jars": ",".join(connector_jars())},
        "kafka": cluster.settings,
    }
    return load_settings(given | more, environ={})


def topic_of(name: str) -> KafkaTopic:
    return KafkaTopic(name, key=StringSerde(), value=JsonSerde(VALUE))


def numbered(n: int, **more: object) -> Message:
    return Message(f"key {n % 5}".encode(), b'{"n": %d}' % n, 1_000 + n, **more)


def copy(topic: KafkaTopic, settings: Settings) -> Copied:
    (copied,) = archive_topics([topic], settings)
    return copied


def archived(settings: Settings, name: str) -> list[dict[str, object]]:
    found = TopicArchive.open(f"{settings.warehouse}/topics/{name}")
    return [{"partition": p} | row for p in range(found.partitions) for row in found.reader(p).read_all().to_pylist()]


@pytest.mark.long
def test_openlineage_is_told_of_new_records(cluster: Cluster, tmp_path: Path, unique: str, monkeypatch) -> None:
    name = cluster.create_topic(unique)
    cluster.produce(name, [numbered(1)])
    settings = with_settings(tmp_path, cluster, openlineage=True)
    monkeypatch.setattr(emission, "_of_process", {})
    with receiver(monkeypatch) as events:
        copy(topic_of(name), settings)
        copy(topic_of(name), settings)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    (source,), (archive,) = events[1]["inputs"], events[1]["outputs"]
    assert (source["namespace"], source["name"]) == (f"kafka://{cluster.settings['bootstrap.servers']}", name)
    assert [field["name"] for field in archive["facets"]["schema"]["fields"]][2:4] == ["key", "value.n"]


def test_all_that_a_record_has(cluster: Cluster, settings: Settings, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=2)
    cluster.produce(name, [
        Message(b"a", b'{"n": 1}', 1_000, partition=0, headers=(("h", b"1"), ("h", None), ("", b""))),
        Message(None, b'{"n": 2}', 900, partition=1),
        Message(b"a", None, 1_100, partition=0),
        Message("ü".encode(), b'{"n": null}', 1_200, partition=1),
    ])  # fmt: skip
    copied = copy(topic_of(name), settings)
    assert [(p.begin, p.position, p.read, p.absent, p.lost) for p in copied.partitions] == [(0, 2, 2, 0, 0)] * 2
    rows = [
        (r["partition"], r["offset"], int(r["timestamp"].timestamp() * 1000), r["key"], r["value"], r["headers"])
        for r in archived(settings, name)
    ]
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}, {"key": "", "value": b""}]
    assert rows == [
        (0, 0, 1_000, "a", {"n": 1}, headers),
        (0, 1, 1_100, "a", None, None),
        (1, 0, 900, None, {"n": 2}, None),
        (1, 1, 1_200, "ü", {"n": None}, None),
    ]


FAR = 1_700_000_000_000_000_000  # nanoseconds


def with_far_times(cluster: Cluster, unique: str) -> str:
    """A topic with a record in the year 53872825, and one in 55840, among others."""
    name = cluster.create_topic(unique, partitions=2)
    cluster.set_config(name, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    cluster.produce(name, [Message(b"k", b'{"n": %d}' % n, time, partition=0) for n, time in enumerate(
        [1_000, 1_700_000_000_000_000, 1_001, FAR, 1_002])])  # fmt: skip
    cluster.produce(name, [Message(b"k", b'{"n": 9}', 1_000, partition=1)])
    return name


def test_a_time_that_no_topic_can_hold_is_named(cluster: Cluster, settings: Settings, unique: str) -> None:
    name = with_far_times(cluster, unique)
    with pytest.raises(InputError, match=r"cannot be archived: timestamp: .*looks like nanoseconds") as raised:
        copy(topic_of(name), settings)
    assert raised.value.place == {"topic": name, "partition": 0, "offset": 3}


def test_a_time_that_no_topic_can_hold_is_set_apart(cluster: Cluster, tmp_path: Path, unique: str) -> None:
    name, settings = with_far_times(cluster, unique), with_settings(tmp_path, cluster, on_bad_record="quarantine")
    copied = copy(topic_of(name), settings)
    assert [(p.position, p.read, p.quarantined, p.absent) for p in copied.partitions] == [(5, 4, 1, 0), (1, 1, 0, 0)]
    found = TopicArchive.open(f"{settings.warehouse}/topics/{name}")
    times = found.reader(0).read_all()["timestamp"].cast(pa.int64()).to_pylist()
    assert times == [1_000, 1_700_000_000_000_000, 1_001, 1_002]
    aside = TopicArchive.open(f"{settings.warehouse}/topics/{name}-quarantine").reader(0).read_all()
    assert aside["offset"].to_pylist() == [3]
    assert aside["value"].combine_chunks().field("timestamp").to_pylist() == [FAR]
    cluster.produce(name, [Message(b"k", b'{"n": 5}', 1_003, partition=0)])
    assert [p.read for p in copy(topic_of(name), settings).partitions] == [5, 1]


def test_a_record_from_the_future_ends_no_copy(
    cluster: Cluster, tmp_path: Path, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = cluster.create_topic(unique, partitions=1)
    cluster.set_config(name, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    cluster.produce(name, [Message(b"k", b'{"n": 1}', time, partition=0) for time in (1_000, 4_102_444_800_000, 1_001)])
    (held,) = copy(topic_of(name), with_settings(tmp_path, cluster, until=2_000)).partitions
    assert held.read == 1
    assert f"{name}, partition 0, offset 1 is stamped 2100-01-01T00:00:00.000Z: the slice ends before it" in caplog.text
    told_apart = with_settings(tmp_path, cluster, until=2_000, max_future="1d")
    assert [found.read for found in copy(topic_of(name), told_apart).partitions] == [3]


def test_a_copy_goes_on_where_the_last_one_ended(cluster: Cluster, settings: Settings, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=3)
    cluster.produce(name, [numbered(n) for n in range(50)])
    first = copy(topic_of(name), settings)
    assert sum(found.read for found in first.partitions) == 50
    again = copy(topic_of(name), settings)
    assert again.ranges == {}
    assert again.partitions == first.partitions
    cluster.produce(name, [numbered(n) for n in range(50, 80)])
    copy(topic_of(name), settings)
    assert sorted(row["value"]["n"] for row in archived(settings, name)) == list(range(80))
    assert [(r.partition, r.offset) for r in cluster.read(name)] == [
        (row["partition"], row["offset"]) for row in archived(settings, name)
    ]


def test_offsets_without_records_are_accounted_for(cluster: Cluster, settings: Settings, unique: str) -> None:
    name = cluster.create_topic(unique)
    cluster.produce_in_transaction(name, [numbered(n) for n in range(3)])
    cluster.produce_in_transaction(name, [numbered(n) for n in range(100, 103)], abort=True)
    cluster.produce_in_transaction(name, [numbered(n) for n in range(3, 5)])
    copied = copy(topic_of(name), settings)
    (found,) = copied.partitions
    assert (found.position, found.read, found.absent, found.lost) == (11, 5, 6, 0)
    assert [row["offset"] for row in archived(settings, name)] == [0, 1, 2, 8, 9]
    assert copy(topic_of(name), settings).ranges == {}


def test_an_open_transaction_is_not_passed(cluster: Cluster, settings: Settings, unique: str) -> None:
    name = cluster.create_topic(unique)
    cluster.produce(name, [numbered(0)])
    producer = cluster.transactional_producer()
    producer.begin_transaction()
    producer.produce(name, key=b"k", value=b'{"n": 1}', timestamp=2_000)
    producer.flush()
    cluster.produce(name, [numbered(2)])
    assert copy(topic_of(name), settings).partitions[0].position == 1
    producer.commit_transaction()
    copy(topic_of(name), settings)
    assert [row["value"]["n"] for row in archived(settings, name)] == [0, 1, 2]


def test_deleted_records_stop_the_copy_unless_allowed(
    cluster: Cluster, settings: Settings, tmp_path: Path, unique: str
) -> None:
    name = cluster.create_topic(unique)
    cluster.produce(name, [numbered(n) for n in range(10)])
    cluster.delete_records(name, {0: 3})
    copied = copy(topic_of(name), settings)
    assert copied.partitions[0].lost == 0, "what was gone when the archive began was never asked for"
    assert (copied.partitions[0].begin, copied.partitions[0].read) == (3, 7)
    cluster.produce(name, [numbered(n) for n in range(10, 20)])
    cluster.delete_records(name, {0: 14})
    with pytest.raises(InputError, match="Kafka has deleted 4 offsets in 1 partition before") as caught:
        copy(topic_of(name), settings)
    assert caught.value.place == {"topic": name, "partition": 0, "offset": 10}
    skipping = with_settings(tmp_path, cluster, on_lost_record="skip")
    (found,) = copy(topic_of(name), skipping).partitions
    assert (found.begin, found.position, found.read, found.absent, found.lost) == (3, 20, 13, 0, 4)
    assert copy(topic_of(name), settings).ranges == {}, "they are not lost twice"


@pytest.mark.parametrize("policy", ["fail", "skip"])
def test_what_was_read_in_time_is_not_lost(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: str, policy: str
) -> None:
    """Kafka deletes it between the reading and the commit, with the markers of its transactions."""
    name = cluster.create_topic(unique)
    for n in range(3):
        cluster.produce_in_transaction(name, [numbered(n)])
    real = archive_module._TopicArchiver._read

    def then_deleted(self, ranges):
        read = real(self, ranges)
        cluster.delete_records(name, cluster.end_offsets(name))
        return read

    monkeypatch.setattr(archive_module._TopicArchiver, "_read", then_deleted)
    (found,) = copy(topic_of(name), with_settings(tmp_path, cluster, on_lost_record=policy)).partitions
    assert (found.position, found.read) == (6, 3)
    assert (found.absent, found.lost) == ((3, 0) if policy == "fail" else (0, 3))


def test_undecodable_records(cluster: Cluster, settings: Settings, tmp_path: Path, unique: str) -> None:
    name = cluster.create_topic(unique)
    bad = [Message(b"k", b"no JSON", 5, headers=(("h", b"x"),)), Message(b"\xff", b'{"n": 1}', 6)]
    cluster.produce(name, [numbered(0), *bad, numbered(3)])
    with pytest.raises(InputError, match="a record cannot be decoded: value: ") as caught:
        copy(topic_of(name), settings)
    assert caught.value.place == {"topic": name, "partition": 0, "offset": 1}
    assert archived(settings, name) == []
    setting_aside = with_settings(tmp_path, cluster, on_bad_record="quarantine")
    (found,) = copy(topic_of(name), setting_aside).partitions
    assert (found.position, found.read, found.quarantined, found.absent) == (4, 2, 2, 0)
    assert [row["offset"] for row in archived(settings, name)] == [0, 3]
    first, second = archived(settings, f"{name}-quarantine")
    assert (first["offset"], first["key"], first["value"]["value"]) == (1, b"k", b"no JSON")
    assert first["headers"] == [{"key": "h", "value": b"x"}]
    assert first["value"]["reason"].startswith("value: ")
    assert (second["offset"], second["key"], second["value"]["reason"]) == (2, b"\xff", "key: not UTF-8 at byte 0")
    cluster.produce(name, [bad[0], numbered(5)])
    (found,) = copy(topic_of(name), setting_aside).partitions
    assert (found.position, found.read, found.quarantined, found.absent) == (6, 3, 3, 0)


@pytest.mark.parametrize("home", [archive_module, KafkaCopy])
def test_of_two_drivers_one_wins(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: str, home: object
) -> None:
    """The other one comes before undecodable records are set aside, or before the rest is added."""
    name = cluster.create_topic(unique)
    settings = with_settings(tmp_path, cluster, on_bad_record="quarantine")
    cluster.produce(name, [numbered(0), Message(b"k", b"no JSON", 1_001), numbered(2)])
    step = "set_aside" if home is archive_module else "advance"
    real = getattr(home, step)

    def overtaken(*arguments, **more):
        monkeypatch.setattr(home, step, real)
        cluster.produce(name, [numbered(3)])
        copy(topic_of(name), settings)
        real(*arguments, **more)

    monkeypatch.setattr(home, step, overtaken)
    with pytest.raises(FencedError):
        copy(topic_of(name), settings)
    assert [row["value"]["n"] for row in archived(settings, name)] == [0, 2, 3]
    assert [row["offset"] for row in archived(settings, f"{name}-quarantine")] == [1]
    assert len(files_of(settings, name)) == len(files_of(settings, f"{name}-quarantine")) == 1, "the loser's are gone"


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param("before set_aside", marks=pytest.mark.long), "after set_aside"])
def test_killed_at_any_step_it_goes_on(
    cluster: Cluster, settings: Settings, tmp_path: Path, unique: str, step: str
) -> None:
    name = cluster.create_topic(unique)
    bad = [Message(b"k", b"no JSON", 5_000 + n) for n in range(2)]
    cluster.produce(name, [numbered(0), bad[0], numbered(2)])
    command = [sys.executable, "-c", KILLED, step, name, settings.model_dump_json()]
    killed = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    cluster.produce(name, [numbered(3), bad[1], numbered(5)])
    (found,) = copy(topic_of(name), with_settings(tmp_path, cluster, on_bad_record="quarantine")).partitions
    assert (found.position, found.read, found.quarantined, found.absent) == (6, 4, 2, 0)
    assert [row["offset"] for row in archived(settings, name)] == [0, 2, 3, 5]
    assert [row["offset"] for row in archived(settings, f"{name}-quarantine")] == [1, 4]
    held = TopicArchive.open(f"{settings.warehouse}/topics/{name}").files(0)
    assert files_of(settings, name) == sorted(file.path for file in held), "nothing is left of the one that was killed"


def files_of(settings: Settings, name: str) -> list[str]:
    root = Path(settings.warehouse) / "topics" / name
    return sorted(str(file.relative_to(root)) for file in root.glob("partition=*/*"))


def test_until_a_time(cluster: Cluster, tmp_path: Path, unique: str) -> None:
    name = cluster.create_topic(unique)
    cluster.produce(name, [numbered(n) for n in range(10)])
    (found,) = copy(topic_of(name), with_settings(tmp_path, cluster, until=1_004)).partitions
    assert found.position == 4
    (found,) = copy(topic_of(name), with_settings(tmp_path, cluster, until=99_000)).partitions
    assert found.position == 10


def test_another_topic_of_the_name_is_refused(cluster: Cluster, settings: Settings, unique: str) -> None:
    one, other = cluster.create_topic(f"{unique}-1"), cluster.create_topic(f"{unique}-2")
    cluster.produce(one, [numbered(0)])
    cluster.produce(other, [numbered(0), numbered(1)])
    copy(KafkaTopic(one, archive="both"), settings)
    with pytest.raises(ConfigurationError, match="copies another topic"):
        copy(KafkaTopic(other, archive="both"), settings)


def test_a_topic_that_is_not_there(settings: Settings, unique: str) -> None:
    with pytest.raises(ConfigurationError, match="Kafka refuses: .*Unknown topic"):
        copy(topic_of(unique), settings)


def test_a_cluster_with_passwords_and_certificates(
    secured_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    name = secured_broker.cluster.create_topic(unique)
    secured_broker.cluster.produce(name, [numbered(0)])
    known = {name: value for name, value in secured_broker.settings.items() if name not in CREDENTIALS}
    settings = with_settings(tmp_path, secured_broker.cluster, kafka=known)
    for credential in ("sasl.username", "sasl.password"):
        monkeypatch.setenv(variable_of(credential), secured_broker.settings[credential])
    assert copy(topic_of(name), settings).partitions[0].read == 1
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", "wrong")
    with pytest.raises(ConfigurationError, match="Kafka refuses") as caught:
        copy(topic_of(name), settings)
    assert "wrong" not in str(caught.value)
