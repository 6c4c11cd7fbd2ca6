"""Stores filled by a run, on Spark and in this process, and in a commit of their own; killed at each step."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hindstream.cli.mend.migrate import fill
from hindstream.runs import open_warehouse
from hindstream.spark.migration import fills
from hindstream.spark.phases import pipeline
from statelib import BufferConfig, Job, Materialized, StreamsBuilder, Suppressed, TimeWindows, count, open_state
from statelib.commits import CommitLog, NothingToDo
from statelib.commits.archives import open_archive
from statelib.commits.layout import topic_path
from statelib.commits.topologies.past_plans import past_plans
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.hindstream.spark.orders import make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings

MINUTE = 60_000
CUTS = (10 * MINUTE, 20 * MINUTE)
STORES = ("counts", "final-store")


class Killed(BaseException):
    """As if the process had ended here."""


def counting(grace_minutes: int) -> Job:
    """Calls by caller and minute, once they are final."""
    builder = StreamsBuilder("calls")
    windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(minutes=grace_minutes))
    (
        builder.stream("calls")
        .select_key("caller")
        .group_by_key()
        .windowed_by(windows)
        .aggregate({"calls": count()}, Materialized.as_("counts"))
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final"))
        .to_stream()
        .to("out")
    )
    return Job("calls", builder.build())


def replayed(folder: Path, grace_minutes: int, engine: str = "local") -> Settings:
    """A job that has replayed two slices."""
    settings = make_settings(folder, engine=engine)
    uri = open_warehouse(settings).uri(topic_path("calls"))
    value = pa.struct([("caller", pa.string())])
    archive = TopicArchive.ensure(uri, topic_schema(pa.string(), value), 2, topic="calls")
    table = pa.table(
        {
            "key": [f"k{n % 7}" for n in range(300)],
            "value": pa.array([{"caller": f"c{n % 5}"} for n in range(300)], value),
            "timestamp": pa.array(
                [max(n * 6_000 - n % 4 * 2 * MINUTE, 0) for n in range(300)], pa.timestamp("ms", "UTC")
            ),
        }
    )
    append_records(archive, table, attempt="a", app_id="test", app_version=1)
    for cut in CUTS:
        pipeline.run_slice(counting(grace_minutes), settings, cut)
    return settings


def held(settings: Settings) -> list[Any]:
    """What the stores hold."""
    found = []
    for store in STORES:
        with open_state(settings.warehouse, "calls", store, state_dir=settings.state_dir) as state:
            found.append(sorted(map(repr, state.read().to_pylist())))
    return found


def rows(settings: Settings) -> list[Any]:
    archive = open_archive(open_warehouse(settings), "out")
    columns = ["key", "value", "timestamp"]
    return [archive.reader(partition).read_all().select(columns).to_pylist() for partition in range(archive.partitions)]


def test_a_run_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    settings = replayed(tmp_path / "job", 1, "spark")
    whole = replayed(tmp_path / "always", 8)
    before, whole_before = rows(settings), rows(whole)
    result = pipeline.run_slice(counting(8), settings.model_copy(update={"fill_stores": STORES}))
    assert not isinstance(result, NothingToDo)
    assert result.staged.fill is not None
    past = past_plans(open_warehouse(settings), "calls", 2)
    assert result.staged.fill.records == 2 * sum(plan.records for plan in past)  # of the source, and repartitioned
    pipeline.run_slice(counting(8), whole)
    assert held(settings) == held(whole)
    assert [after[len(begun) :] for begun, after in zip(before, rows(settings), strict=True)] == [
        after[len(begun) :] for begun, after in zip(whole_before, rows(whole), strict=True)
    ]


def test_in_a_commit_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, always = replayed(tmp_path / "job", 1), replayed(tmp_path / "always", 8)
    before, was = rows(settings), held(settings)
    fill(counting(8), settings, STORES, yes=True)
    shown = capsys.readouterr().out
    assert "Store counts is filled from history: its grace_period_ms was 60000 and is 480000." in shown
    assert "calls: commit 3 has the filled stores." in shown
    assert "of history replayed in" in shown
    assert held(settings) == held(always) != was
    assert rows(settings) == before
    made, cost = fills.run(counting(8), settings, STORES)
    assert made.commit == 3  # a repeat changes nothing
    assert cost is not None


def test_a_store_that_was_reset_before(tmp_path: Path) -> None:
    """The topology is the one that made the state."""
    settings, always = replayed(tmp_path / "job", 1), replayed(tmp_path / "always", 8)
    pipeline.run_slice(counting(8), settings.model_copy(update={"reset_stores": STORES}), 25 * MINUTE)
    assert held(settings) != held(always)
    fills.run(counting(8), settings, STORES)
    pipeline.run_slice(counting(8), always, 25 * MINUTE)
    assert held(settings) == held(always)


@pytest.mark.long
@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path) -> None:
    expected = held(replayed(tmp_path / "always", 8))
    steps: list[str] = []
    undisturbed = replayed(tmp_path / "undisturbed", 1)
    with observed(steps.append):
        fills.run(counting(8), undisturbed, STORES)
    assert [name for name in steps if name.startswith("fill.")] == ["fill.planned", "fill.audited"]
    for step in (
        "plan.created",
        "fill.planned",
        "task.stores-filled",
        "stage.created",
        "fill.audited",
        "commit.created",
    ):
        assert step in steps
        settings = replayed(tmp_path / step, 1)

        def kill(name: str, at: str = step) -> None:
            if name == at:
                raise Killed

        with pytest.raises(Killed), observed(kill):
            fills.run(counting(8), settings, STORES)
        made, _ = fills.run(counting(8), settings, STORES)
        assert (made.commit, CommitLog(open_warehouse(settings), "calls").head_number()) == (3, 3), step
        assert held(settings) == expected, step


def test_before_the_first_commit(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, engine="local")
    open_warehouse(settings)
    with pytest.raises(ConfigurationError, match="the job has no commits"):
        fills.run(counting(8), settings, STORES)
