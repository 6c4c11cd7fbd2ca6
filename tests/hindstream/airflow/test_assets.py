"""What Airflow is told of the topics of a warehouse. (`test_scheduler` has consumers.)"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

import pendulum
import pytest
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.timetables import interval, trigger
from airflow.timetables.base import TimeRestriction
from hypothesis import assume, given
from hypothesis import strategies as st

from hindstream.airflow.assets import (
    PARTITION_FORMAT,
    partition_key,
    partition_of,
    published_topics,
    tell_sources,
    topic_asset,
)
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


def test_sources_become_inlets_once() -> None:
    """What has an effect in Airflow: `test_parent`, `test_schedules`."""
    named = topic_asset("orders", warehouse="/lake/warehouse")
    for inlets in ([], [named]):
        operator: Any = SimpleNamespace(inlets=inlets)
        tell_sources(operator, JOB, make_settings(Path("/lake")))
        assert operator.inlets == [named]
        assert named.uri == "file:///lake/warehouse/topics/orders"


def test_the_keys_of_partitions_are_those_that_airflows_mappers_read() -> None:
    """As in `docs/airflow.md`: a DAG of months waits for all days of each."""
    temporal, window = (pytest.importorskip(f"airflow.partition_mappers.{name}") for name in ("temporal", "window"))
    months = pytest.importorskip("airflow.partition_mappers.base").RollupMapper(
        upstream_mapper=temporal.StartOfMonthMapper(), window=window.MonthWindow()
    )
    days = {f"{datetime(2013, 1, day, tzinfo=UTC):{PARTITION_FORMAT}}" for day in range(1, 32)}
    assert {months.to_downstream(day) for day in days} == {"2013-01"}
    assert months.to_upstream("2013-01") == days


ZONES = sorted(available_timezones())
QUARTERS = [timedelta(minutes=15 * number) for number in range(-16, 17)]


@cache
def changes(name: str, year: int) -> list[datetime]:
    """When the clocks of a zone change in a year, to the hour."""
    zone, begin = ZoneInfo(name), datetime(year, 1, 1, tzinfo=UTC)
    hours = [begin + timedelta(hours=hour) for hour in range(366 * 24)]
    offsets = [hour.astimezone(zone).utcoffset() for hour in hours]
    return [hours[i] for i in range(1, len(hours)) if offsets[i] != offsets[i - 1]]


@given(st.sampled_from(ZONES), st.integers(1970, 2036), st.data())
def test_no_two_slices_have_the_same_partition(name: str, year: int, data: st.DataObject) -> None:
    assume(found := changes(name, year))
    change = data.draw(st.sampled_from(found))
    keys = {partition_key(change + quarter, ZoneInfo(name)) for quarter in QUARTERS}
    assert len(keys) == len(QUARTERS)


@given(
    st.sampled_from(ZONES),
    st.integers(1970, 2036),
    st.sampled_from(["0 0 * * *", "30 1 * * *", "0 2 * * *", "0 */6 * * *", "0 0 * * 0", "0 0 1 * *"]),
    st.data(),
)
def test_keys_of_days_and_longer_are_those_of_airflows_own_timetable(
    name: str, year: int, cron: str, data: st.DataObject
) -> None:
    """Also where midnight comes twice, as in Havana."""
    assume(found := changes(name, year))
    begin = pendulum.instance(data.draw(st.sampled_from(found)) - timedelta(days=3))
    slices, last = interval.CronDataIntervalTimetable(cron, timezone=name), None
    airflows = trigger.CronPartitionTimetable(cron, timezone=name)
    restriction = TimeRestriction(earliest=begin, latest=None, catchup=True)
    for _ in range(5):
        run = slices.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
        assert run is not None
        last = run.data_interval
        assert partition_key(last.start, ZoneInfo(name)) == airflows._format_key(last.start)


def test_of_an_hour_that_comes_twice_the_first_has_its_offset(caplog: pytest.LogCaptureFixture) -> None:
    """Airflow's mappers read the other one."""
    hours = [datetime(2024, 10, 27, hour, tzinfo=UTC) for hour in range(3)]
    keys = [partition_key(hour, ZoneInfo("Europe/Berlin")) for hour in hours]
    assert keys == ["2024-10-27T02:00:00+0200", "2024-10-27T02:00:00", "2024-10-27T03:00:00"]
    assert "give the DAG a start_date in UTC" in caplog.text
    mapper = pytest.importorskip("airflow.partition_mappers.temporal").StartOfHourMapper(timezone="Europe/Berlin")
    assert mapper.to_partition_date(mapper.to_downstream(keys[1])).astimezone(UTC) == hours[1]
    with pytest.raises(ValueError, match="unconverted data remains"):
        mapper.to_downstream(keys[0])


@pytest.mark.parametrize("zone", ["Europe/Berlin", ZoneInfo("Europe/Berlin"), None])
def test_the_time_zone_of_a_partition_is_that_of_the_schedule(zone: Any) -> None:
    """A timetable may have another one than the ``start_date`` of its DAG."""
    schedule: Any = timedelta(days=1) if zone is None else CronDataIntervalTimetable("@daily", timezone=zone)
    dag = DAG("orders", schedule=schedule, start_date=datetime(2024, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")))
    ends = {f"data_interval_{end}": datetime(2024, 6, day, 22, tzinfo=UTC) for end, day in (("start", 1), ("end", 2))}
    context: Any = {"dag": dag, "dag_run": SimpleNamespace(run_type="scheduled"), **ends}
    assert partition_of(context) == ("2024-06-02T07:00:00" if zone is None else "2024-06-02T00:00:00")
