"""What Airflow is told of the topics of a warehouse. (`test_scheduler` has consumers.)"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.airflow.assets import PARTITION_FORMAT, published_topics, source_assets, topic_asset
from hindstream.airflow.operators import _of_earlier_try
from hindstream.runs import open_warehouse
from hindstream.spark.phases import pipeline, plan
from statelib.commits import CommitLog, NothingToDo
from statelib.commits.layout import topic_path
from statelib.job.job import load_job
from statelib.storage import Storage
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from statelib.settings.settings import Settings

pytestmark = pytest.mark.airflow

JOB = load_job(f"{JOB_FILE}:job")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, list[str]]:
    """A job that has replayed its first day, then the second; and these runs."""
    settings = make_settings(tmp_path_factory.mktemp("assets"), engine="local")
    archive_orders(settings, orders())
    runs = []
    for until_ms in (DAY_MS, 2 * DAY_MS):
        done = pipeline.run_slice(JOB, settings, until_ms)
        assert not isinstance(done, NothingToDo)
        runs.append(done.plan.run_id)
    return settings, runs


def test_each_sink_that_a_run_has_published(ran: tuple[Settings, list[str]]) -> None:
    settings, runs = ran
    log = CommitLog(open_warehouse(settings), "orders")
    ends = [None, "1970-01-02T00:00:00.000Z", "1970-01-03T00:00:00.000Z"]
    for commit, run_id in enumerate(runs, start=1):
        (told,) = published_topics(JOB, settings, run_id)
        files = [sink.file for sink in log.read(commit).sinks]
        assert told.asset == topic_asset("orders-by-country", warehouse=settings.warehouse)
        first, last = told.extra.pop("time_range")
        assert datetime.fromisoformat(first).timestamp() * 1000 == min(f.min_timestamp_ms or 0 for f in files)
        assert datetime.fromisoformat(last).timestamp() * 1000 == max(f.max_timestamp_ms or 0 for f in files)
        assert told.extra == {
            "job": "orders",
            "commit": commit,
            "run_id": run_id,
            "topic": "orders-by-country",
            "records": sum(file.rows for file in files),
            "slice": ends[commit - 1 : commit + 1],
            "audit": {"passed": 9, "warnings": 0},
        }


def test_a_run_that_was_not_committed_has_nothing_to_tell(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, engine="local")
    archive_orders(settings, orders())
    planned = plan.run(JOB, settings)
    assert not isinstance(planned, NothingToDo)
    assert published_topics(JOB, settings, planned.run_id) == []


@pytest.mark.parametrize(("before", "day"), [(True, 2), (False, 2), (True, 3)])
def test_a_retry_tells_of_what_the_try_before_it_has_committed(
    ran: tuple[Settings, list[str]], *, before: bool, day: int
) -> None:
    """One that began before the commit has it from an earlier try; one that began later has nothing to tell.

    Neither has one that is about the next day, on which nothing happened: it has waited for the commit of another run.
    """
    settings, runs = ran
    settings = settings.model_copy(update={"until": day * DAY_MS})
    made = datetime.fromtimestamp(CommitLog(open_warehouse(settings), "orders").read(2).created_at_ms / 1000, UTC)
    began = made + timedelta(seconds=-1 if before else 1)
    context: Any = {"dag_run": SimpleNamespace(start_date=began)}
    assert _of_earlier_try(context, JOB, settings) == (runs[1] if before and day == 2 else None)


@pytest.mark.parametrize(
    "root", ["lake/w", "lake/w/", "{here}/lake/w", "file://{here}/lake/w", "s3://lake/w", "s3://lake/w/", "~/w"]
)
def test_an_asset_is_where_the_topic_is(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    root = root.format(here=tmp_path)
    uri = Storage(root, {"region": "eu-central-1", "skip_signature": "true"}).uri(topic_path("orders"))
    assert topic_asset("orders", warehouse=root).uri == (uri if "://" in uri else f"file://{uri}")


def test_the_inlets_of_a_run_are_its_sources() -> None:
    (asset,) = source_assets(JOB, make_settings(Path("/lake")))
    assert asset.uri == "file:///lake/warehouse/topics/orders"


def test_the_keys_of_partitions_are_those_that_airflows_mappers_read() -> None:
    """As in `docs/airflow.md`: a DAG of months waits for all days of each."""
    temporal, window = (pytest.importorskip(f"airflow.partition_mappers.{name}") for name in ("temporal", "window"))
    months = pytest.importorskip("airflow.partition_mappers.base").RollupMapper(
        upstream_mapper=temporal.StartOfMonthMapper(), window=window.MonthWindow()
    )
    days = {f"{datetime(2013, 1, day, tzinfo=UTC):{PARTITION_FORMAT}}" for day in range(1, 32)}
    assert {months.to_downstream(day) for day in days} == {"2013-01"}
    assert months.to_upstream("2013-01") == days
