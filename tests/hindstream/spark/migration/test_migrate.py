"""A table's store migrated step by step, on Spark; killed at each step; taken back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.cli.mend.migrate import print_plan, print_verified, run
from hindstream.runs import open_warehouse
from hindstream.spark.migration import migrate
from hindstream.spark.phases import pipeline
from statelib import Job, Materialized, Stores, StreamsBuilder, open_state
from statelib.commits import CommitLog, read_hold
from statelib.commits.archives import open_archive
from statelib.commits.layout import topic_path
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.hindstream.spark.orders import make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings

MINUTE = 60_000
DAY = 86_400_000
CUT = 20 * MINUTE


class Killed(BaseException):
    """As if the process had ended here."""


def rates(retention_minutes: int | None) -> Job:
    builder = StreamsBuilder("rates")
    supplier = (
        "s"
        if retention_minutes is None
        else Stores.persistent_versioned_key_value_store("s", timedelta(minutes=retention_minutes))
    )
    builder.table("rate", Materialized.as_(supplier)).to_stream().to("out")
    return Job("rates", builder.build())


@pytest.fixture
def migrated_from(tmp_path: Path, spark: SparkSession) -> Settings:
    """A job whose first slice has been replayed with a plain store."""
    settings = make_settings(tmp_path).model_copy(update={"changelogs": ("s",)})
    uri = open_warehouse(settings).uri(topic_path("rate"))
    archive = TopicArchive.ensure(uri, topic_schema(pa.string(), pa.int64()), 2, topic="rate")
    records = pa.table(
        {
            "key": [f"k{i * i % 13}" for i in range(300)],
            "value": pa.array([None if i % 17 == 3 else i for i in range(300)], pa.int64()),
            "timestamp": pa.array([i * 6_000 for i in range(300)], pa.timestamp("ms", "UTC")),
        }
    )
    append_records(archive, records, attempt="a", app_id="test", app_version=1)
    pipeline.run_slice(rates(None), settings, CUT)
    return settings


def head_of(settings: Settings) -> int:
    return CommitLog(open_warehouse(settings), "rates").head_number()


def lag_of(settings: Settings) -> int | None:
    return open_archive(open_warehouse(settings), "rates-s-changelog").min_compaction_lag_ms


def records_out(settings: Settings) -> list[object]:
    archive = open_archive(open_warehouse(settings), "out")
    return [archive.reader(partition).read_all().to_pylist() for partition in range(archive.partitions)]


def falsify_changelog(settings: Settings) -> None:
    """As if somebody had restored the archive of the changelog from another job: each value is another one."""
    warehouse, topic = open_warehouse(settings), "rates-s-changelog"
    archive = open_archive(warehouse, topic)
    records = pa.concat_tables([archive.reader(p).read_all().select(["key", "value", "timestamp"]) for p in (0, 1)])
    rmtree(Path(settings.warehouse) / topic_path(topic))
    false = records.set_column(1, "value", pa.array([b"\0" * 8] * len(records)))
    archive = TopicArchive.ensure(warehouse.uri(topic_path(topic)), topic_schema(pa.binary(), pa.binary()), 2)
    append_records(archive, false, attempt="b", app_id="rates", app_version=1)


def stored(settings: Settings) -> dict[str, int]:
    with open_state(settings.warehouse, "rates", "s", state_dir=settings.state_dir) as store:
        return {row["key"]: row["value"] for row in store.read().to_pylist()}


@pytest.mark.spark
def test_the_procedure(migrated_from: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    settings, versioned = migrated_from, rates(5)
    print_plan(versioned, settings, ["s"])
    shown = capsys.readouterr().out
    assert "store s is migrated: it was a key-value store and is a versioned store" in shown
    assert "rebuilt from its changelog of" in shown
    lag = f"{DAY + 5 * MINUTE:,}"
    assert f"min.compaction.lag.ms of that changelog is set to {lag} before" in shown
    assert lag_of(settings) is None
    assert head_of(settings) == 1
    before = records_out(settings)
    made, found = migrate.run(versioned, settings, ["s"])
    assert (made.commit, head_of(settings), read_hold(open_warehouse(settings), "rates")) == (2, 2, None)
    assert records_out(settings) == before
    assert lag_of(settings) == DAY + 5 * MINUTE
    assert sum(part.comparison.equal for part in found) == 6
    print_verified(found, "rates", made.commit)
    assert "history from" in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="key-value store"):  # the former topology no longer fits
        pipeline.run_slice(rates(None), settings)
    result = pipeline.run_slice(versioned, settings)
    assert isinstance(result, pipeline.SliceResult)
    with pytest.raises(ConfigurationError, match="nothing to migrate of s"):
        migrate.run(versioned, settings, ["s"])
    assert read_hold(open_warehouse(settings), "rates") is None
    migrate.take_back(versioned, settings, ["s"])  # runs have followed: there is nothing to take back
    assert head_of(settings) == 3


@pytest.mark.spark
def test_a_store_gets_another_name(migrated_from: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """With a changelog, which is copied; taken back, and done again."""
    builder = StreamsBuilder("rates")
    builder.table("rate", Materialized.as_("rates-by-key")).to_stream().to("out")
    renamed, asked = Job("rates", builder.build()), ["s=rates-by-key"]
    settings = migrated_from.model_copy(update={"changelogs": ("rates-by-key",)})
    with pytest.raises(ConfigurationError, match=r"store s: it is called rates-by-key now.*--store s=rates-by-key"):
        pipeline.run_slice(renamed, settings)
    before = stored(settings)
    print_plan(renamed, settings, asked)
    shown = capsys.readouterr().out
    assert "Store s gets the name rates-by-key, entry by entry, and a copy of its changelog of" in shown
    made, found = migrate.run(renamed, settings, asked)
    assert sum(part.comparison.equal for part in found) >= len(before)  # entries, of which some are not a key's
    assert not any(part.comparison.differences for part in found)
    assert migrate.take_back(renamed, settings, asked).commit == made.commit + 1
    assert stored(settings) == before
    run(renamed, settings, asked, yes=True)
    with open_state(settings.warehouse, "rates", "rates-by-key", state_dir=settings.state_dir) as store:
        assert {row["key"]: row["value"] for row in store.read().to_pylist()} == before
    assert isinstance(pipeline.run_slice(renamed, settings), pipeline.SliceResult)
    warehouse = open_warehouse(settings)
    logged = [open_archive(warehouse, f"rates-{name}-changelog").rows for name in ("s", "rates-by-key")]
    assert 0 < logged[0] < logged[1]


@pytest.mark.spark
def test_killed_at_each_step_it_goes_on(migrated_from: Settings) -> None:
    settings, versioned = migrated_from, rates(5)
    steps = [
        "hold.created",
        "migrate.held",
        "migrate.cleaned",
        "migrate.before-lag",
        "migrate.lag-set",
        "migrate.planned",
        "migrate.audited",
        "commit.created",
        "migrate.published",
        "migrate.verified",
        "hold.before-release",
    ]
    for killed_at in steps:

        def kill(name: str, killed_at: str = killed_at) -> None:
            if name == killed_at:
                raise Killed

        with observed(kill), pytest.raises(Killed):
            migrate.run(versioned, settings, ["s"])
        with pytest.raises(ConfigurationError, match="held by migration-of-s"):
            pipeline.run_slice(versioned, settings)
    made, found = migrate.run(versioned, settings, ["s"])
    assert (made.commit, head_of(settings)) == (2, 2)
    assert sum(part.comparison.equal for part in found) == 6
    assert read_hold(open_warehouse(settings), "rates") is None


@pytest.mark.spark
def test_taken_back_the_job_goes_on_as_before(migrated_from: Settings) -> None:
    settings = migrated_from
    migrate.run(rates(5), settings, ["s"])
    assert migrate.take_back(rates(5), settings, ["s"]).rolled_back_to == 1
    result = pipeline.run_slice(rates(None), settings)
    assert isinstance(result, pipeline.SliceResult)
    assert result.commit.commit == 4


@pytest.mark.spark
def test_what_was_not_approved_is_not_done(migrated_from: Settings) -> None:
    settings = migrated_from
    approved = migrate.preview(rates(5), settings, ["s"]).evolution
    with pytest.raises(ConfigurationError, match="no longer what was approved"):
        migrate.hold(rates(6), settings, ["s"], approved=approved)
    assert read_hold(open_warehouse(settings), "rates") is None
    with pytest.raises(ConfigurationError, match="does not hold the job"):
        migrate.restore(rates(5), settings, ["s"])
    with pytest.raises(ConfigurationError, match="does not hold the job"):
        migrate.lag(rates(5), settings, ["s"])
    migrate.hold(rates(5), settings, ["s"], approved=approved)
    assert migrate.lag(rates(5), settings, ["s"]) == migrate.lag(rates(5), settings, ["s"]) == {"s": DAY + 5 * MINUTE}
    migrate.take_back(rates(5), settings, ["s"])
    assert (head_of(settings), read_hold(open_warehouse(settings), "rates")) == (1, None)


@pytest.mark.spark
def test_a_job_whose_latest_values_differ_stays_held(
    migrated_from: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = migrated_from
    before = stored(settings)
    falsify_changelog(settings)
    with pytest.raises(CorruptedDataError, match=r"latest values.*hindstream migrate rollback JOB --store s"):
        run(rates(5), settings, ["s"], yes=True)
    assert "history from" in capsys.readouterr().out
    assert stored(settings) != before
    with pytest.raises(ConfigurationError, match="held by migration-of-s"):
        pipeline.run_slice(rates(5), settings)
    assert migrate.take_back(rates(5), settings, ["s"]).rolled_back_to == 1
    assert stored(settings) == before
    assert read_hold(open_warehouse(settings), "rates") is None


@pytest.mark.spark
def test_an_open_run_is_waited_for(migrated_from: Settings) -> None:
    settings = migrated_from
    pipeline.plan.run(rates(None), settings)
    with pytest.raises(ConfigurationError, match="a run is open"):
        migrate.run(rates(5), settings, ["s"])
    assert read_hold(open_warehouse(settings), "rates") is None
