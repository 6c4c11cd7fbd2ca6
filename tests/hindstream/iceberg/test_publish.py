"""Sinks published to tables of a catalog: each record once, whatever is rolled back, promoted, killed or repaired."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.table.snapshots import Operation
from pyiceberg.utils.config import Config
from typer.testing import CliRunner

from hindstream.cli.main import app
from hindstream.iceberg.publish import PublishedToIceberg, publish_to_iceberg
from hindstream.spark.phases import pipeline
from hindstream.spark.phases import publish as phase
from statelib import IcebergTable, Job, StreamsBuilder
from statelib.commits import NothingToDo, rollback
from statelib.commits.layout import CommitLog
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork
from statelib.commits.versions.sink_history import sink_history
from statelib.comparison.matches import Resources
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.job.job import load_job
from statelib.repair.repair import repair
from statelib.settings.settings import load_settings
from statelib.topics.archive import TopicArchive, topic_schema
from tests.commits.versions.test_fork import Killed, at, kill
from tests.conftest import ROOT
from tests.effort import every_other
from tests.hindstream.spark.orders import JOB_FILE, archive_orders, make_settings, orders, published
from tests.hindstream.spark.orders_job import SINK
from tests.ingest.iceberg import catalog_in, commit_files, data_files
from tests.repair.histories import HOUR, archive, as_fork, forked, topology
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.storage import Storage
    from tests.hindstream.iceberg.world import World

STEPS = ["iceberg.before-create", "iceberg.created", "iceberg.before-commit", "iceberg.committed"]


def test_each_record_once(world: World) -> None:
    first = world.publish()
    assert world.seen() == world.has()
    assert [done.added for done in first] == [len(rows) for rows in world.has().values()]
    assert [(done.added, done.removed) for done in world.publish()] == [(0, 0), (0, 0)]
    world.job.run(40 * HOUR)
    world.publish()
    assert world.seen() == world.has()


def test_a_rollback_takes_rows_out(world: World) -> None:
    world.publish()
    rollback(world.warehouse, "job", 1, now_ms=9)
    assert all(done.removed > 0 == done.added for done in world.publish())
    assert world.seen() == world.has()
    world.job.run(40 * HOUR)
    world.publish()
    assert world.seen() == world.has()


def test_rolled_back_and_replayed_before_the_next_publication(world: World) -> None:
    """The records that came to the same offsets need not be the same."""
    world.publish()
    rollback(world.warehouse, "job", 1, now_ms=9)
    world.job.run(40 * HOUR)
    assert all(done.removed > 0 < done.added for done in world.publish())
    assert world.seen() == world.has()


def test_there_and_back(world: World) -> None:
    world.publish()
    assert [done.left_to for done in world.publish("new")] == ["job", "job"]
    world.promote()
    assert [done.left_to for done in world.publish("job")] == ["new", "new"]
    assert world.seen() == world.has("job")
    world.publish("new")
    assert world.seen() == world.has("new") != world.has("job")
    for one in (world.job, world.new):
        one.run(40 * HOUR)
    world.publish("new")
    assert world.seen() == world.has("new")
    world.back()
    world.publish("job")
    assert world.seen() == world.has("job")


def test_what_a_fork_shares_with_its_job_stays(world: World) -> None:
    world.publish()
    world.promote()
    for sink, done in zip(("so-far", "large"), world.publish("new"), strict=True):
        shared = sum(part.end_offset for part in sink_history(world.warehouse, "new")[sink] if part.topic == sink)
        assert (done.removed, done.added) == (
            len(world.has("job")[sink]) - shared,
            len(world.has("new")[sink]) - shared,
        )
        assert shared > 0


@pytest.mark.long
def test_a_fork_that_was_dropped_and_made_anew(world: World) -> None:
    world.publish()
    world.promote()
    world.publish("new")
    world.back()
    drop_fork(world.warehouse, "new", now_ms=9)
    world.publish("job")
    assert world.seen() == world.has("job")
    fork(world.warehouse, "job", "new", 2, now_ms=10)
    as_fork(world.job, world.directory / "again", "new", topology(60)).run(40 * HOUR)
    world.promote()
    world.publish("new")
    assert world.seen() == world.has("new")


@pytest.mark.long
def test_a_fork_that_has_written_nothing_yet(world: World) -> None:
    world.publish()
    forked(world.job, world.directory / "fresh", "fresh", 1, topology(60))
    world.promote("fresh", allow_behind=True)
    world.publish("fresh")
    assert world.seen() == world.has("fresh")


def publish_all(world: World) -> None:
    """Rows come, go and come."""
    world.publish()
    rollback(world.warehouse, "job", 1, now_ms=9)
    world.job.run(40 * HOUR)
    world.publish()


def test_every_step_is_killed_at(world: World) -> None:
    steps: list[str] = []
    with observed(steps.append):
        publish_all(world)
    assert {step for step in steps if step.startswith("iceberg.")} == set(STEPS)
    code = [module.read_text() for module in (ROOT / "hindstream" / "iceberg").glob("*.py")]
    assert {name for text in code for name in re.findall(r'\bstep\("([^"]+)"\)', text)} == set(STEPS)


@pytest.mark.parametrize("step", every_other(STEPS))
def test_killed_at_a_step_and_published_again(world: World, step: str) -> None:
    for publish in (world.publish, lambda: publish_all(world)):
        with at(step, kill), suppress(Killed):
            publish()
    world.publish()
    assert world.seen() == world.has()
    assert [(done.added, done.removed) for done in world.publish()] == [(0, 0), (0, 0)]


@pytest.mark.parametrize("step", every_other(STEPS, first=1))
def test_of_two_at_once_one_publishes(world: World, step: str) -> None:
    with at(step, world.publish):
        world.publish()
    assert world.seen() == world.has()


def test_readers_move_while_the_job_publishes(world: World) -> None:
    world.publish()
    world.job.run(40 * HOUR)
    world.new.run(40 * HOUR)

    def overtake() -> None:
        world.promote()
        world.publish("new")

    with at("iceberg.before-commit", overtake):
        assert world.publish("job")[0] == PublishedToIceberg("lake.shop.so_far", left_to="new")
    assert world.seen() == world.has("new")


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long) for seed in range(12)])
def test_whatever_the_history(world: World, seed: int) -> None:
    """Both jobs run, publish and are killed in any order, while readers are moved and the job is rolled back."""
    chance = random.Random(seed)
    cuts, serves = dict.fromkeys(("job", "new"), 30), "job"
    for _ in range(12):
        name = chance.choice(("job", "new"))
        what = chance.choice(["run", "publish", "publish", "killed", "move", "rollback"])
        if what == "run":
            cuts[name] += 3
            (world.job if name == "job" else world.new).run(cuts[name] * HOUR)
        elif what == "move" and serves == "job":
            world.promote(allow_behind=True)
            serves = "new"
        elif what == "move":
            world.back()
            serves = "job"
        elif what == "rollback" and serves == "job":
            with suppress(ConfigurationError):  # it is there already
                rollback(world.warehouse, "job", 1, now_ms=9)
        elif what == "killed":
            with at(chance.choice(STEPS), kill), suppress(Killed):
                world.publish(name)
        elif what == "publish":
            world.publish(name)
            if name == serves:
                assert world.seen() == world.has(name)
    world.publish(serves)
    assert world.seen() == world.has(serves)


@pytest.mark.long
def test_files_that_others_merge(world: World) -> None:
    """The rows are where they were put, whoever has them; the snapshots before may be gone."""
    world.publish()
    table = world.catalog.load_table("shop.large")
    rows = table.scan().to_arrow()
    files = data_files(table)
    commit_files(table, Operation.REPLACE, files, [rows.filter(pc.field("partition") == n) for n in (0, 1)])
    table.refresh()
    old = [one.snapshot_id for one in table.snapshots() if one.snapshot_id != table.current_snapshot().snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert world.publish()[1].added == 0
    world.job.run(40 * HOUR)
    world.publish()
    assert world.seen() == world.has()
    rollback(world.warehouse, "job", 1, now_ms=9)
    world.publish()
    assert world.seen() == world.has()


def test_a_table_that_is_set_back_catches_up(world: World) -> None:
    world.publish()
    world.job.run(40 * HOUR)
    table = world.catalog.load_table("shop.large")
    before = table.current_snapshot().snapshot_id
    world.publish()
    world.catalog.load_table("shop.large").manage_snapshots().set_current_snapshot(before).commit()
    world.publish()
    assert world.seen() == world.has()


def test_rows_of_others_are_refused(world: World) -> None:
    table = world.catalog.create_table("shop.so_far", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1]}))
    with pytest.raises(ConfigurationError) as error:
        world.publish()
    assert error.value.what == "the table holds rows that are not of this job"
    assert error.value.place["table"] == "lake.shop.so_far"


def test_jobs_of_others_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.publish()
    first = CommitLog(world.warehouse, "job").read(1)
    later = first.model_copy(update={"created_at_ms": first.created_at_ms + 1})
    with monkeypatch.context() as patched:
        patched.setattr(CommitLog, "read_if_present", lambda *_: later)
        with pytest.raises(ConfigurationError, match="a job job of another warehouse, or before this one"):
            world.publish()
    two = Pipeline(world.directory / "two", topology(), "two")
    archive(two, seed=2)
    two.run(10 * HOUR)
    with pytest.raises(ConfigurationError, match="the job job publishes to the table"):
        publish_to_iceberg(replace(world.declared(), name="two"), two.warehouse)


NARROW = pa.struct([("n", pa.int32()), ("in", pa.struct([("x", pa.float32())]))])


@pytest.fixture
def passing(world: World) -> tuple[Storage, Job]:
    """A job that passes its records on, published once."""
    builder = StreamsBuilder("job")
    builder.stream("in").to("out")
    pipeline = Pipeline(world.directory / "passing", builder.build(), "passing")
    pipeline.archive("in", [("a", {"n": 1, "in": {"x": 1.5}}, 1), ("b", None, 2)], (pa.string(), NARROW), 1)
    pipeline.run()
    job = Job("passing", builder.build(), iceberg_sinks=(IcebergTable("lake.shop.out"),))
    publish_to_iceberg(job, pipeline.warehouse)
    return pipeline.warehouse, job


def add_row(warehouse: Storage, type_: pa.DataType, value: dict[str, object]) -> None:
    """One record more in the sink, as a later version of the job would write it."""
    sink = TopicArchive.ensure(warehouse.uri("topics/out"), topic_schema(pa.string(), type_), 1)
    rows = {"offset": [2], "key": ["c"], "value": pa.array([value], type_), "timestamp": pa.array([3], pa.int64())}
    with sink.writer(0, attempt="later") as writer:
        writer.write(pa.table(rows))
    sink.commit(writer.close(), app_id="passing", app_version=2)


def test_fields_come_and_widen(world: World, passing: tuple[Storage, Job]) -> None:
    warehouse, job = passing
    inner = pa.struct([("x", pa.float64()), ("y", pa.string())])
    wide = pa.struct([("n", pa.int64()), ("in", inner), ("z", pa.bool_())])
    row = {"n": 1 << 40, "in": {"x": 0.1, "y": "y"}, "z": True}
    add_row(warehouse, wide, row)
    publish_to_iceberg(job, warehouse)
    rows = world.catalog.load_table("shop.out").scan().to_arrow().sort_by("offset")["value"].to_pylist()
    assert rows == [{"n": 1, "in": {"x": 1.5, "y": None}, "z": None}, None, row]


def test_a_field_that_iceberg_cannot_widen(passing: tuple[Storage, Job]) -> None:
    warehouse, job = passing
    add_row(warehouse, pa.struct([("n", pa.float64())]), {"n": 0.5})
    with pytest.raises(ConfigurationError, match=r"a field has changed as Iceberg does not allow: .*value\.n"):
        publish_to_iceberg(job, warehouse)


def test_a_namespace_that_is_not_there(world: World) -> None:
    job = Job("job", topology(), iceberg_sinks=(IcebergTable("lake.gold.large"),))
    with pytest.raises(ConfigurationError) as error:
        publish_to_iceberg(job, world.warehouse)
    assert error.value.what == "the catalog has no namespace gold"
    assert error.value.next_step == "make it: pyiceberg --catalog lake create namespace gold"


def test_a_catalog_that_is_not_configured(world: World) -> None:
    job = Job("job", topology(), iceberg_sinks=(IcebergTable("elsewhere.gold.large"),))
    with pytest.raises(ConfigurationError, match="the Iceberg table cannot be published to: .*PYICEBERG_CATALOG__"):
        publish_to_iceberg(job, world.warehouse)


def test_secrets_are_not_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "s3cretpassword"
    monkeypatch.setenv("PYICEBERG_CATALOG__DB__URI", f"sqlite:////nowhere/at/all/{secret}.db")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    job = Job("job", topology(), iceberg_sinks=(IcebergTable("db.gold.large"),))
    with pytest.raises((ConfigurationError, RetryableError)) as error:
        publish_to_iceberg(job, world.warehouse)
    assert secret not in str(error.value)


@pytest.mark.parametrize("name", ["large", "shop.large", "lake..large", ""])
def test_names_of_tables(name: str) -> None:
    with pytest.raises(ConfigurationError, match="this is no Iceberg table of a catalog"):
        IcebergTable(name)


def test_a_sink_that_there_is_not() -> None:
    with pytest.raises(
        ConfigurationError, match="an Iceberg table is declared for a topic that the job does not write"
    ):
        Job("job", topology(), iceberg_sinks=(IcebergTable("lake.shop.other"),))


def test_the_phase_publishes(world: World, caplog: pytest.LogCaptureFixture) -> None:
    settings = load_settings({"warehouse": world.warehouse.uri("")}, environ={})
    with caplog.at_level("INFO"):
        phase.run(world.declared(), settings)
        rollback(world.warehouse, "job", 1, now_ms=9)
        phase.run(world.declared(), settings)
        phase.run(world.declared("new"), settings)
    assert world.seen() == world.has()
    told = [record.getMessage() for record in caplog.records if "shop.large" in record.getMessage()]
    assert told[0].endswith("rows added to the Iceberg table lake.shop.large")
    assert told[-1] == "new: the Iceberg table lake.shop.large is left to job"


def test_promoted_by_the_command(world: World) -> None:
    world.publish()
    file = world.directory / "jobs.py"
    file.write_text(
        "from statelib import Job\nfrom tests.hindstream.iceberg.world import TABLES\n"
        "from tests.repair.histories import topology\njob = Job('job', topology(60), iceberg_sinks=TABLES)\n"
    )
    command = ["promote", "new", "--over", "job", "--publish", f"{file}:job", "--warehouse", world.warehouse.uri("")]
    told = CliRunner().invoke(app, command, catch_exceptions=False, obj={}).stdout.splitlines()
    assert world.seen() == world.has("new")
    assert [line.partition(":")[0] for line in told[-2:]] == [
        "new publishes the Iceberg table lake.shop.so_far",
        "new publishes the Iceberg table lake.shop.large",
    ]


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_was_killed_at_the_catalog_publishes_though_nothing_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A retry, such as Airflow's, has no slice left to replay. The table must not wait for the next one."""
    catalog = catalog_in(tmp_path / "lake", monkeypatch)
    settings = make_settings(tmp_path, engine="local")
    archive_orders(settings, orders())
    job = replace(load_job(f"{JOB_FILE}:job"), iceberg_sinks=(IcebergTable("lake.shop.orders", archive=SINK),))
    with suppress(Killed), at(step, kill):
        pipeline.run_slice(job, settings)
    assert isinstance(pipeline.run_slice(job, settings), NothingToDo)
    assert catalog.load_table("shop.orders").scan().to_arrow().num_rows == len(published(settings)) > 0


@pytest.mark.parametrize("how", ["rolled back", "repaired"])
def test_what_no_slice_has_changed_is_published_though_nothing_is_new(world: World, tmp_path: Path, how: str) -> None:
    """Neither of them publishes to tables itself, and no slice may come for long."""
    world.publish()
    if how == "rolled back":
        rollback(world.warehouse, "job", 1, now_ms=9)
        least, until_ms = 20, 10 * HOUR
    else:
        repair(world.warehouse, "job", "new", Resources(tmp_path), attempt="a", now_ms=9)
        least, until_ms = 60, 30 * HOUR
    assert world.seen() != world.has()
    settings = load_settings({"warehouse": world.warehouse.uri(""), "until": until_ms}, environ={})
    job = Job("job", topology(least), iceberg_sinks=world.declared().iceberg_sinks)
    assert isinstance(pipeline.run_slice(job, settings), NothingToDo)
    assert world.seen() == world.has()
