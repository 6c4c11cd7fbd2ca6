"""A topic passes from a job to the fork that was promoted over it, and back: readers of Kafka get what serves."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hindstream.cli.main import app
from hindstream.kafka import publish as publish_module
from hindstream.kafka.publish import check_can_pass, publish_to_kafka
from statelib import Job, JsonSerde, KafkaTopic, StringSerde, TimeWindowedSerde
from statelib.commits import rollback
from statelib.commits.archives import open_archive
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.promotion import go_back, promote
from statelib.commits.versions.sink_history import sink_history
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, FencedError
from statelib.repair.corrections import RETRACTS
from statelib.serdes import FixedWidthSerde
from statelib.settings.settings import load_settings
from tests.commits.versions.test_fork import Killed, at, kill
from tests.conftest import ROOT
from tests.effort import one_in
from tests.repair.histories import EVENT, HOUR, NAME, as_fork, events, forked, names, topology
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.commits.versions.promotion import Promotion
    from tests.kafka.cluster import Cluster, Record

PASS = ["pass.before-fence", "pass.fenced", "pass.compared", "pass.sent", "pass.passed"]
TOTALS = pa.struct([("events", pa.int64()), ("total", pa.int64())])

pytestmark = pytest.mark.thorough


def job_of(prefix: str, least: int = 20) -> Job:
    """A job that publishes the stream of a table, and a stream of records."""
    sinks = (
        KafkaTopic(f"{prefix}-totals", StringSerde(), JsonSerde(TOTALS), "so-far"),
        KafkaTopic(f"{prefix}-large", StringSerde(), JsonSerde(EVENT), "large"),
    )
    return Job("job", topology(least), kafka_sinks=sinks)


def settings_of(warehouse: str, servers: str, **more: object) -> Any:
    return load_settings({"warehouse": warehouse, "kafka": {"bootstrap.servers": servers}, **more}, environ={})


@dataclass
class World:
    """A job that counts what is at least 20, and a fork of it that counts what is at least 60."""

    directory: Path
    cluster: Cluster
    prefix: str
    job: Pipeline
    new: Pipeline

    @property
    def warehouse(self) -> Any:
        return self.job.warehouse

    def declared(self, name: str, least: int = 20) -> Job:
        job = job_of(self.prefix, least)
        return job if name == "job" else job.as_fork(name)

    def settings(self, **more: object) -> Any:
        return settings_of(self.warehouse.uri(""), self.cluster.settings["bootstrap.servers"], **more)

    def publish(self, name: str, **more: object) -> tuple[Any, ...]:
        return publish_to_kafka(self.declared(name), self.warehouse, self.settings(**more))

    def promote(self, name: str = "new", **more: bool) -> Promotion:
        return promote(self.warehouse, name, "job", now_ms=7, **more)

    def back(self) -> Promotion:
        return go_back(self.warehouse, "job", now_ms=8)

    def records(self, topic: str) -> list[Record]:
        name = f"{self.prefix}-{topic}"
        self.cluster.await_transactions(name)
        return self.cluster.read(name)

    def seen(self) -> dict[str, Any]:
        """What readers of Kafka have who read committed records from the beginning."""
        large: Counter[Any] = Counter()
        taken_back: list[tuple[Any, int, str]] = []
        for record in self.records("large"):
            wrong = [value.decode() for header, value in record.headers if header == RETRACTS]
            if wrong:
                assert record.value is None
                taken_back.append((record.key, record.timestamp_ms, wrong[0]))
            else:
                large[record.key, record.timestamp_ms, _content(record.value)] += 1
        for key, timestamp_ms, place in taken_back:
            large[key, timestamp_ms, self._named(place)] -= 1
        assert min(large.values()) >= 0
        return {"totals": self.seen_totals(), "large": +large}

    def seen_totals(self) -> dict[Any, str]:
        newest = {record.key: record.value for record in self.records("totals")}
        return {key: _content(value) for key, value in newest.items() if value is not None}

    def _named(self, place: str) -> str:
        topic, _, at = place.partition("/")
        partition, _, offset = at.partition("@")
        if topic.startswith(self.prefix):  # a record of Kafka's
            at_place = {(record.partition, record.offset): record.value for record in self.records("large")}
            return _content(at_place[int(partition), int(offset)])
        (row,) = (
            open_archive(self.warehouse, topic)
            .reader(int(partition), int(offset), int(offset) + 1)
            .read_all()
            .to_pylist()
        )
        return json.dumps(row["value"], sort_keys=True)

    def has(self, name: str, suffix: str = "") -> dict[str, Any]:
        """What readers of the archives have."""
        history = sink_history(self.warehouse, name)
        rows = {
            sink: [
                row
                for part in history[sink + suffix]
                for row in open_archive(self.warehouse, part.topic)
                .reader(part.partition, part.first_offset, part.end_offset)
                .read_all()
                .to_pylist()
            ]
            for sink in ("so-far", "large")
        }
        totals = {row["key"].encode(): row["value"] for row in rows["so-far"]}
        large = [
            (row["key"].encode(), round(row["timestamp"].timestamp() * 1000), json.dumps(row["value"], sort_keys=True))
            for row in rows["large"]
        ]
        return {
            "totals": {key: json.dumps(value, sort_keys=True) for key, value in totals.items()},
            "large": Counter(large),
        }


def _content(value: bytes | None) -> str:
    return json.dumps(json.loads(value or b"null"), sort_keys=True)


def later(rows: list[tuple[str, Mapping[str, Any], int]]) -> list[tuple[str, Mapping[str, Any], int]]:
    """Kafka's client cannot send a timestamp of 0."""
    return [(key, value, time + HOUR) for key, value, time in rows]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job has come to hour 30 and is published; the fork stands on hour 10, and has come to hour 30 too."""
    folder = tmp_path_factory.mktemp("replayed")
    job = Pipeline(folder / "job", topology())
    job.archive("events", later(events(1)), (pa.string(), EVENT), 2)
    job.archive("names", later(names(1)), (pa.string(), NAME), 2)
    job.run(10 * HOUR)
    new = forked(job, folder / "new", "new", 1, topology(60))
    for one in (job, new):
        one.run(30 * HOUR)
    return folder


@pytest.fixture
def world(replayed: Path, tmp_path: Path, cluster: Cluster, unique: str) -> World:
    """Both jobs in a folder of the test's own, and their topics."""
    shutil.copytree(replayed, tmp_path, dirs_exist_ok=True)
    job = Pipeline(tmp_path / "job", topology())
    made = World(tmp_path, cluster, unique, job, as_fork(job, tmp_path / "new", "new", topology(60)))
    for topic in job_of(unique).kafka_sinks:
        cluster.create_topic(topic.name, partitions=3)
    return made


def test_there_and_back(world: World) -> None:
    world.publish("job")
    assert [sent.left_to for sent in world.publish("new")] == ["job", "job"]
    assert world.seen() == world.has("job")
    before = len(world.records("large"))
    world.promote()
    totals, large = world.publish("new")
    assert world.seen() == world.has("new") != world.has("job")
    assert totals.records == totals.corrections == len(world.has("job")["totals"])
    assert large.corrections == len(world.records("large")) - before < len(world.job.output("large"))
    assert world.publish("new") == (replace(totals, records=0, corrections=0), replace(large, records=0, corrections=0))
    for one in (world.job, world.new):
        one.run(40 * HOUR)
    assert [sent.left_to for sent in world.publish("job")] == ["new", "new"]
    totals, large = world.publish("new")
    assert (totals.corrections, large.corrections) == (0, 0) != (totals.records, large.records)
    assert world.seen() == world.has("new")
    world.back()
    world.publish("job")
    assert world.seen() == world.has("job") != world.has("new")
    world.job.run()
    world.publish("job")
    assert world.seen() == world.has("job")
    world.promote(allow_behind=True)
    world.publish("new")
    assert world.seen() == world.has("new")


@pytest.mark.long
def test_what_the_job_has_not_published_yet_is_published_by_the_fork(world: World) -> None:
    world.publish("job")
    world.job.run(40 * HOUR)
    world.new.run(40 * HOUR)
    world.promote()
    world.publish("new")
    assert world.seen() == world.has("new")


@pytest.mark.long
def test_a_fork_that_has_written_nothing_yet(world: World) -> None:
    world.publish("job")
    fresh = forked(world.job, world.directory / "fresh", "fresh", 1, topology(60))
    world.promote("fresh", allow_behind=True)
    world.publish("fresh")
    assert world.seen() == world.has("fresh")
    fresh.run()
    world.publish("fresh")
    assert world.seen() == world.has("fresh")


@pytest.mark.long
def test_a_fork_from_the_beginning_and_one_of_the_fork(world: World) -> None:
    world.publish("job")
    fork_from_beginning(world.warehouse, "job", "anew")
    anew = as_fork(world.job, world.directory / "anew", "anew", topology(40))
    anew.run(30 * HOUR)
    newest = forked(anew, world.directory / "newest", "newest", 1, topology(50))
    newest.run(40 * HOUR)
    for name in ("anew", "newest"):
        world.promote(name)
        world.publish(name)
        assert world.seen() == world.has(name)
    world.back()
    world.publish("anew")
    assert world.seen() == world.has("anew")


@pytest.mark.parametrize("reads_topic", [False, True])
def test_windowed_keys(world: World, *, reads_topic: bool) -> None:
    """By the positions, and by the topic itself."""
    serde = TimeWindowedSerde.of(StringSerde(), timedelta(hours=1))
    name = world.cluster.create_topic(f"{world.prefix}-hours", partitions=3)
    job = replace(job_of(world.prefix), kafka_sinks=(KafkaTopic(name, serde, FixedWidthSerde(pa.int64()), "by-hour"),))
    publish_to_kafka(job, world.warehouse, world.settings())
    if reads_topic:
        world.cluster.delete_topic(f"job-{name}-published")
    world.promote()
    publish_to_kafka(job.as_fork("new"), world.warehouse, world.settings(publish="changed"))
    world.cluster.await_transactions(name)
    newest = {record.key: record.value for record in world.cluster.read(name)}
    rows: dict[bytes, int] = {}
    for part in sink_history(world.warehouse, "new")["by-hour"]:
        archive = open_archive(world.warehouse, part.topic)
        for batch in archive.reader(part.partition, part.first_offset, part.end_offset):
            rows |= zip(serde.serialize(batch["key"]).to_pylist(), batch["value"].to_pylist(), strict=True)
    assert {key: int.from_bytes(value) for key, value in newest.items() if value is not None} == rows
    assert any(value is None for value in newest.values())


@pytest.mark.long
def test_nothing_was_ever_published(world: World) -> None:
    world.promote()
    assert [sent.left_to for sent in world.publish("job")] == ["new", "new"]
    world.publish("new")
    assert world.seen() == world.has("new")
    world.new.run(40 * HOUR)
    world.back()
    world.publish("job")
    assert world.seen() == world.has("job")


def test_promoted_and_back_without_a_publication_changes_nothing(world: World) -> None:
    world.publish("job")
    world.promote()
    world.back()
    assert [sent.records for sent in world.publish("job")] == [0, 0]
    assert world.seen() == world.has("job")


def test_a_job_that_publishes_while_the_topic_passes_is_fenced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.publish("job")
    world.job.run(40 * HOUR)
    world.new.run(40 * HOUR)
    real, name = publish_module.produce, f"{world.prefix}-totals"

    def overtaken(producer: Any, topic: str, *rest: Any) -> None:
        if topic == name:
            monkeypatch.setattr(publish_module, "produce", real)
            world.promote()
            world.publish("new")
        real(producer, topic, *rest)

    monkeypatch.setattr(publish_module, "produce", overtaken)
    with pytest.raises(FencedError, match="another process has taken over"):
        world.publish("job", parallel_transfers=1)
    assert world.seen() == world.has("new")


@pytest.mark.parametrize("step", one_in(8, PASS))
def test_of_two_that_pass_a_topic_on_the_newer_one_counts(world: World, step: str) -> None:
    """Readers are moved back while the topic passes to the fork."""
    world.publish("job")
    world.promote()

    def back() -> None:
        world.back()
        world.publish("job")

    with at(step, back), pytest.raises(FencedError):
        world.publish("new")
    assert world.seen() == world.has("job")
    assert [sent.left_to for sent in world.publish("new")] == ["job", "job"]


KILLED = """
import os, signal, sys
from pathlib import Path
from hindstream.kafka.publish import publish_to_kafka
from statelib.errors.fault_points import observed
from statelib.storage import Storage
from tests.kafka.test_passing import job_of, settings_of

prefix, warehouse, servers, name, when, number = sys.argv[1:]
seen = 0

def observe(step):
    global seen
    seen += step == when
    if seen == int(number):
        os.kill(os.getpid(), signal.SIGKILL)

job = job_of(prefix) if name == "job" else job_of(prefix).as_fork(name)
with observed(observe):
    publish_to_kafka(job, Storage(warehouse), settings_of(warehouse, servers))
"""


KILLS = [
    ("pass.sent", 1, "again"),
    ("pass.fenced", 1, "again"),
    ("pass.passed", 1, "again"),
    ("pass.compared", 1, "again"),
    ("pass.sent", 1, "back"),
    ("pass.before-fence", 1, "again"),
    ("pass.passed", 1, "back"),
    ("pass.fenced", 1, "back"),
    ("pass.sent", 2, "again"),
]


@pytest.mark.parametrize(("step", "number", "then"), one_in(8, KILLS))
def test_killed_at_a_step(world: World, step: str, number: int, then: str) -> None:
    """It is given again, or given up."""
    world.publish("job")
    world.promote()
    servers = world.cluster.settings["bootstrap.servers"]
    command = [sys.executable, "-c", KILLED, world.prefix, world.warehouse.uri(""), servers, "new", step, str(number)]
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    if then == "back":
        world.back()
    serves = "new" if then == "again" else "job"
    world.publish(serves)
    assert world.seen() == world.has(serves)
    sent = len(world.records("large")), len(world.records("totals"))
    world.publish(serves)
    assert (len(world.records("large")), len(world.records("totals"))) == sent


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long) for seed in range(12)])
def test_whatever_the_history(world: World, seed: int) -> None:
    """Both jobs run, publish and are killed in any order, while readers are moved between them."""
    chance = random.Random(seed)
    cuts = dict.fromkeys(("job", "new"), 30)
    serves = "job"
    for _ in range(14):
        name, what = chance.choice(("job", "new")), chance.choice(("run", "move", "kill", "publish", "publish"))
        if what == "run" and cuts[name] < 60:
            cuts[name] += 5
            getattr(world, name).run(cuts[name] * HOUR)
        elif what == "move":
            if serves == "job":
                world.promote(allow_behind=True)
            else:
                world.back()
            serves = "new" if serves == "job" else "job"
        elif what == "kill":
            with at(chance.choice(PASS), kill), suppress(Killed):
                world.publish(name)
        elif what == "publish":
            world.publish(name)
            if name == serves:
                assert world.seen() == world.has(name)
    world.publish(serves)
    assert world.seen() == world.has(serves)


def test_by_the_command(world: World) -> None:
    world.publish("job")
    file = world.directory / "jobs.py"
    file.write_text(f"from tests.kafka.test_passing import job_of\njob = job_of({world.prefix!r}, 60)\n")
    servers = world.cluster.settings["bootstrap.servers"]

    def called(*arguments: str) -> str:
        more = ["--warehouse", world.warehouse.uri(""), "--set", f"kafka.bootstrap.servers={servers}"]
        return CliRunner().invoke(app, ["promote", *arguments, *more], catch_exceptions=False, obj={}).stdout

    told = called("new", "--over", "job", "--publish", f"{file}:job").splitlines()
    assert told[-2:] == [
        f"new publishes Kafka's {world.prefix}-totals: sent 6 records that differ.",
        f"new publishes Kafka's {world.prefix}-large: sent 28 records that differ.",
    ]
    assert world.seen() == world.has("new")
    assert "hindstream publish FILE.py:NAME --fork new" in called("new", "--over", "job")
    told = called("--back", "--over", "job", "--publish", f"{file}:job", "--output", "json").splitlines()
    assert [json.loads(line)["corrections"] for line in told[1:]] == [6, 28]
    assert world.seen() == world.has("job")


def test_every_step_is_killed_at(world: World) -> None:
    world.publish("job")
    world.promote()
    steps: list[str] = []
    with observed(steps.append):
        world.publish("new")
    assert {step for step in steps if step.startswith("pass.")} == set(PASS)


def test_what_readers_have_and_nobody_knows_any_more_is_refused(world: World) -> None:
    world.publish("job")
    rollback(world.warehouse, "job", 1, now_ms=9)
    world.promote(allow_behind=True)
    with pytest.raises(ConfigurationError, match="were rolled back by commit 3, and Kafka cannot remove them"):
        world.publish("new")


@pytest.mark.long
def test_a_fork_that_was_dropped_before_the_topic_has_passed_back(world: World) -> None:
    world.publish("job")
    world.promote()
    world.publish("new")
    world.back()
    drop_fork(world.warehouse, "new", now_ms=9)
    with pytest.raises(ConfigurationError, match="readers have what new has published, and that fork has been dropped"):
        world.publish("job")
    fork(world.warehouse, "job", "new", 2, now_ms=10)
    as_fork(world.job, world.directory / "again", "new", topology(60)).run(40 * HOUR)
    with pytest.raises(ConfigurationError, match="that fork has been dropped"):
        world.publish("job")


def test_other_partitions_than_before_are_refused(world: World) -> None:
    world.publish("job")
    world.cluster.create_topic(f"job-{world.prefix}-odd-published", 5, {"cleanup.policy": "compact"})
    world.cluster.create_topic(f"{world.prefix}-odd")
    odd = KafkaTopic(f"{world.prefix}-odd", StringSerde(), JsonSerde(TOTALS), "so-far")
    job = replace(job_of(world.prefix), kafka_sinks=(odd,)).as_fork("new")
    with pytest.raises(
        ConfigurationError, match="its sink has 2 partitions, and the topic was published from one with 5"
    ):
        check_can_pass(job, world.warehouse, world.settings())
    check_can_pass(world.declared("new"), world.warehouse, world.settings())
