"""A switch-over that is stopped anywhere and goes on, and what is refused; without an application, by its offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hindstream.kafka.cluster import Cluster
from hindstream.runs import open_warehouse
from hindstream.spark.kafka.archive import archive_topics
from hindstream.spark.kafka.switch_over import SwitchedOver, switch_over
from statelib.commits import CommitLog, read_hold
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.job.job import load_job
from statelib.job.switch_over import load_switch_over
from statelib.job.user_code import load_attribute
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

    def run(self, **more: bool) -> SwitchedOver:
        return switch_over(self.job, self.switch, self.settings, **more)

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
            bed.run()

    for name in ("commit.created", "hold.before-create", "hold.created"):
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
    done = bed.run()
    assert (done.handed_over, done.offsets) == (None, bed.places(stop))
    head = bed.log.head()
    assert head is not None
    assert head.source_offsets() == {f"{bed.prefix}delays": stop}
    assert read_hold(open_warehouse(bed.settings), bed.job.name) is None


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


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
