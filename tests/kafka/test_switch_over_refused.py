"""A switch-over that is stopped anywhere and goes on, and what is refused; without an application, by its offsets."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import typer
from confluent_kafka import Consumer, TopicPartition

from hindstream.cli.live.switch import BEHIND, Switch, print_lag, print_outputs
from hindstream.cli.versions.diff import DIFFERENT
from hindstream.kafka.cluster import Cluster
from hindstream.kafka.live_outputs import OutputsAsked
from hindstream.runs import open_warehouse
from hindstream.spark.kafka.archive import archive_topics
from hindstream.spark.kafka.switch_over import SwitchedOver, switch_over
from hindstream.spark.phases.pipeline import run_slice
from statelib.columns.windowed_type import windowed_struct
from statelib.commits import CommitLog, read_hold
from statelib.comparison.times import Interval
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.job.job import load_job
from statelib.job.switch_over import load_switch_over
from statelib.job.user_code import load_attribute
from statelib.serdes import StringSerde
from statelib.serdes.windowed import TimeWindowedSerde
from statelib.settings.settings import load_settings
from tests.kafka.cluster import Message
from tests.kafka.delays import PARTITIONS, Delays, write_jobs
from tests.kafka.maven import build
from tests.kafka.test_switch_over import settings_in

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.kafka.broker import Broker

pytestmark = [pytest.mark.slow, pytest.mark.spark]


class Bed:
    """An application that has stopped somewhere, as far as its group tells, and the job that takes its place."""

    def __init__(self, broker: Broker, prefix: str, folder: Path, spark: SparkSession) -> None:
        for jar in sorted((build() / "spark-jars").iterdir()):
            spark.sql(f"ADD JAR '{jar}'")
        self.delays, self.prefix = Delays(broker, folder, prefix), prefix
        self.delays.create_topics()
        self.settings = settings_in(folder, broker).model_copy(update={"engine": "local"})
        write_jobs(folder / "jobs", prefix)
        file = f"{folder}/jobs/delays_2.py"
        self.job, self.switch, self.topics = (
            load_job(file),
            load_switch_over(file),
            load_attribute(f"{file}:topics", ""),
        )
        self.cluster, self.log = Cluster(self.settings), CommitLog(open_warehouse(self.settings), self.job.name)

    def feed(self) -> dict[int, int]:
        """Some input; where it ends."""
        with self.delays.feed() as feed:
            feed.wait(100)
        return self.delays.broker.cluster.end_offsets(f"{self.prefix}delays")

    def stop_at(self, offsets: dict[int, int]) -> None:
        """Has the old application stop there."""
        self.cluster.set_group_offsets(self.switch.old, self.places(offsets))

    def places(self, offsets: dict[int, int]) -> dict[tuple[str, int], int]:
        return {(f"{self.prefix}delays", partition): offset for partition, offset in offsets.items()}

    def archive(self) -> None:
        list(archive_topics(self.topics, self.settings))

    def run(self, *, state_dir: Path | None = None, **more: bool) -> SwitchedOver:
        return switch_over(self.job, self.switch, self.settings, state_dir=state_dir, **more)

    @property
    def new_offsets(self) -> dict[tuple[str, int], int]:
        return self.cluster.group_offsets(self.switch.new.application_id)


@pytest.mark.long
def test_it_ends_where_the_application_has_stopped_wherever_it_is_killed(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = Bed(broker, f"s{unique[-20:]}-", tmp_path, spark)
    ends = bed.feed()
    stop = {partition: end * 2 // 3 for partition, end in ends.items()}
    bed.stop_at(stop)
    bed.archive()

    def killed_at(wanted: str, nth: int = 1) -> None:
        seen = []

        def stop_here(name: str) -> None:
            seen.append(name)
            if seen.count(wanted) == nth:
                raise KeyboardInterrupt

        with observed(stop_here), pytest.raises(KeyboardInterrupt):
            bed.run(state_dir=tmp_path / "local")

    for name in ("commit.created", "hold.before-create", "hold.created", "directory.before-rename", "directory.placed"):
        killed_at(name)
        assert bed.new_offsets == {}
    for method in ("create_topic", "set_group_offsets"):
        with monkeypatch.context() as patched:
            patched.setattr(Cluster, method, _killed)
            with pytest.raises(KeyboardInterrupt):
                bed.run()
        assert bed.new_offsets == {}
        assert read_hold(open_warehouse(bed.settings), bed.job.name) is not None
    killed_at("hold.before-release")
    assert bed.new_offsets == bed.places(stop), "the offsets are the last"
    assert sorted(path.name for path in (tmp_path / "local").iterdir()) == [bed.switch.new.application_id]
    done = bed.run()
    assert (done.handed_over, done.offsets) == (None, bed.places(stop))
    head = bed.log.head()
    assert head is not None
    assert head.source_offsets() == {f"{bed.prefix}delays": stop}
    assert read_hold(open_warehouse(bed.settings), bed.job.name) is None


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.long
def test_what_is_refused(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = Bed(broker, f"s{unique[-20:]}-", tmp_path, spark)
    with pytest.raises(ConfigurationError, match="the group has committed nothing"):
        bed.run()
    ends = bed.feed()
    bed.archive()
    further = bed.feed()
    bed.stop_at(further)
    with pytest.raises(ConfigurationError, match="and the archive is at .* Next: archive the rest"):
        bed.run()
    published = replace(bed.job, kafka_sinks=(bed.switch.outputs[0][0],))
    with pytest.raises(ConfigurationError, match="the job publishes to a topic that the applications write"):
        switch_over(published, bed.switch, bed.settings)
    with pytest.raises(ConfigurationError, match="the switch-over is of another job"):
        switch_over(load_job(f"{tmp_path}/jobs/delays_1.py"), bed.switch, bed.settings)
    changelog = bed.switch.new.changelog("count-store")
    broker.cluster.create_topic(changelog, PARTITIONS)
    bed.stop_at(ends)
    with pytest.raises(ConfigurationError, match="there is a changelog of the new application already"):
        bed.run()
    broker.cluster.delete_topic(changelog)

    set_offsets = Cluster.set_group_offsets

    def moved(self: Cluster, *_: object, **__: object) -> None:
        set_offsets(self, bed.switch.old, bed.places(further))

    bed.archive()
    with monkeypatch.context() as patched:
        create = Cluster.create_topic
        patched.setattr(Cluster, "create_topic", lambda *of: (create(*of), moved(of[0])))
        with pytest.raises(RetryableError, match="the application has been at work meanwhile"):
            bed.run()
    assert bed.new_offsets == {}
    done = bed.run()  # from where it has stopped now, over what it had handed over of before
    assert done.offsets == bed.places(further)
    assert done.handed_over is not None

    bed.stop_at(ends)
    with pytest.raises(ConfigurationError, match="the group of the new application has offsets already"):
        bed.run()
    with pytest.raises(ConfigurationError, match="the job has come to offset .* has stopped at"):
        bed.run(replace=True)
    bed.stop_at(bed_end := bed.feed())
    bed.archive()
    assert bed.run(replace=True).offsets == bed.places(bed_end)


def test_what_both_have_written(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = Bed(broker, f"s{unique[-20:]}-", tmp_path, spark)
    bed.feed()
    bed.archive()
    run_slice(bed.job, bed.settings)
    command = Switch(bed.job, bed.switch, bed.settings)
    ends = bed.feed()
    shadow = bed.switch.require_shadow().application_id
    for group, offset in ((bed.switch.old, 1), (shadow, 0)):
        bed.cluster.set_group_offsets(group, bed.places({n: end - offset for n, end in ends.items()}))
    print_lag(command, 0)
    assert f"{shadow} has caught up: it is 0 offsets behind at most." in capsys.readouterr().out
    bed.cluster.set_group_offsets(shadow, bed.places(dict.fromkeys(ends, 2)))
    with pytest.raises(typer.Exit) as end:
        print_lag(command, 5, "json")
    assert end.value.exit_code == BEHIND
    told = json.loads(capsys.readouterr().out)
    lags = {of["partition"]: of["lag"] for of in told["shadow"]["partitions"]}
    assert (told["has_caught_up"], told["until_ms"], lags) == (False, None, {n: end - 2 for n, end in ends.items()})

    with pytest.raises(RetryableError, match="there is nothing to compare yet: .* nobody knows to what time"):
        print_outputs(command, OutputsAsked())
    windows = [TimeWindowedSerde(StringSerde(), 60_000).serialize(_window(n)) for n in range(3)]
    for of, values in (("", (1, 2, 3)), ("shadow-", (1, 5, None))):
        messages = [
            Message(key[0].as_py(), value.to_bytes(8), 60_000 * n + 1)
            for n, (key, value) in enumerate(zip(windows, values, strict=True))
            if value is not None
        ]
        for kind in ("counts", "sums"):
            broker.cluster.produce(f"{bed.prefix}{of}delay-{kind}", messages[: None if kind == "counts" else 1])
    asked = OutputsAsked(within=Interval(60_000, 180_000))
    with pytest.raises(typer.Exit) as end:
        print_outputs(command, asked)
    assert end.value.exit_code == DIFFERENT
    said = capsys.readouterr().out
    assert f"100.0 % of {bed.prefix}delay-counts = {bed.prefix}shadow-delay-counts differ (2 of 2), all" in said
    assert "changed 1, only in A 1, only in B 0" in said
    assert f"{bed.prefix}delay-sums = {bed.prefix}shadow-delay-sums is equal (0 compared)." in said
    broker.cluster.produce(f"{bed.prefix}delay-sums", [Message(windows[2][0].as_py(), b"\x01", 170_000, partition=1)])
    with pytest.raises(InputError, match="a record's value cannot be decoded: .*Next: correct how the output is decl"):
        print_outputs(command, asked)


def _window(n: int) -> pa.StructArray:
    start = 60_000 * n
    rows = [{"key": "airport", "window_start": start, "window_end": start + 60_000}]
    return pa.array(rows, windowed_struct(pa.string()))


def test_offsets_that_are_being_committed_are_waited_for(broker: Broker, unique: str) -> None:
    """An application was killed after its transaction had been decided, and before its offsets were moved."""
    topic = broker.cluster.create_topic(unique)
    cluster = Cluster(load_settings({"kafka": broker.settings}, environ={}))
    cluster.set_group_offsets(unique, {(topic, 0): 3})
    producer, place = broker.cluster.transactional_producer(), TopicPartition(topic, 0, 7)
    with closing(Consumer({**broker.settings, "group.id": unique})) as consumer:
        producer.begin_transaction()
        producer.produce(topic, b"output")
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata())
    assert cluster.committed(unique)[topic, 0].offset == 3
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(cluster.committed, unique, stable=True)
        with pytest.raises(TimeoutError):
            waiting.result(1)
        producer.commit_transaction(30)
        assert waiting.result(30)[topic, 0].offset == 7
