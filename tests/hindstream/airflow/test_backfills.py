"""``airflow backfill create`` under a real scheduler: forwards, backwards, and each way to reprocess."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindstream.runs import open_warehouse
from statelib.commits import CommitLog
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import Standalone, standalone
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders, published
from tests.postgres import USER, has_postgres, postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not has_postgres(), reason="there is no PostgreSQL: SQLite is locked where a backfill is made"),
]

DAG = """
from datetime import UTC, datetime
from hindstream.airflow import replay_dag  # Airflow

dag = replay_dag(
    "{job}:job", dag_id="{dag_id}", schedule="@daily", end_date=datetime(1970, 1, 4, tzinfo=UTC),
    start_date=datetime(1970, 1, 1, tzinfo=UTC), **{given!r}
)
"""
IN_BERLIN = """
from datetime import datetime
from zoneinfo import ZoneInfo
from hindstream.airflow import replay_dag  # Airflow

berlin = ZoneInfo("Europe/Berlin")
dag = replay_dag(
    "{job}:job", dag_id="{dag_id}", schedule="@monthly", end_date=datetime(2024, 4, 2, tzinfo=berlin),
    start_date=datetime(2024, 2, 1, tzinfo=berlin), **{given!r}
)
"""
DRIVER = "postgresql+psycopg2"
DAG_IDS = ("forwards", "backwards", "together", "phases", "in-berlin")
MONTHS = [datetime(2024, month, 1, tzinfo=ZoneInfo("Europe/Berlin")) for month in (3, 4, 5)]
"""Clocks change on the last day of March."""
DAYS = ["1970-01-01", "1970-01-02", "1970-01-03"]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """With DAGs which end in the past: nothing but backfills runs."""
    folder = tmp_path_factory.mktemp("backfills")
    (folder / "airflow" / "dags").mkdir(parents=True)
    for dag_id in DAG_IDS:
        settings = make_settings(folder / dag_id)
        archive_orders(settings, of_months() if dag_id == "in-berlin" else orders())
        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
        given["task_per"] = "phase" if dag_id == "phases" else "run"
        text = (IN_BERLIN if dag_id == "in-berlin" else DAG).format(job=JOB_FILE, dag_id=dag_id, given=given)
        (folder / "airflow" / "dags" / f"{dag_id}.py").write_text(text)
    with (
        postgres() as port,
        standalone(folder, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"{DRIVER}://{USER}@127.0.0.1:{port}/postgres") as one,
    ):
        one.wait(lambda: all(one.states(dag_id) for dag_id in DAG_IDS))
        yield one


def of_months() -> pa.Table:
    """Orders of March and April in Berlin, from the second hour on."""
    table = orders(days=61)
    later = pa.scalar(MONTHS[0] - datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=1))
    return table.set_column(2, "timestamp", pc.add(table["timestamp"], later.cast(pa.duration("ms"))))


def backfill(
    airflow: Standalone, dag_id: str, *options: str, active: int = 3, first: str = DAYS[0], last: str = DAYS[-1]
) -> None:
    """Asks for the three days, or others, and waits until as many runs as there are have ended."""
    command = [AIRFLOW, "backfill", "create", "--dag-id", dag_id, "--from-date", first, "--to-date", last]
    command += ["--max-active-runs", str(active), *options]

    def asked() -> bool:
        done = subprocess.run(command, env=airflow.environ, check=False, capture_output=True, text=True)
        assert done.returncode == 0 or "Another backfill is running" in done.stderr, done.stdout + done.stderr
        return done.returncode == 0

    def ended() -> bool:
        found = of_days(airflow, dag_id)
        return len(found) >= (len(DAYS) if first == DAYS[0] else 1) and set(found.values()) <= {"success", "failed"}

    airflow.wait(asked)  # the one before counts as running for some time after its runs have ended
    airflow.wait(ended)


def of_days(airflow: Standalone, dag_id: str) -> dict[str, str]:
    return {day: state for day, kind, state in airflow.runs(dag_id) if kind == "backfill"}


def ends(airflow: Standalone, dag_id: str) -> list[int]:
    """Where the slices of the commits have ended, in days."""
    log = CommitLog(open_warehouse(make_settings(airflow.folder / dag_id)), "orders")
    found = [log.read(number).until_ms for number in range(1, log.head_number() + 1)]
    return [until // DAY_MS for until in found if until is not None]


def tasks(airflow: Standalone, dag_id: str) -> Counter[str]:
    """What the logs of all tries say, by the kind of sentence."""
    folder = airflow.folder / "airflow" / "logs" / f"dag_id={dag_id}"
    said = "\n".join(log.read_text() for log in folder.rglob("*.log"))
    sentences = ("from before this run's data interval", "has already replayed past this slice's end")
    return Counter({sentence: len(re.findall(sentence, said)) for sentence in sentences})


def test_forwards_three_at_a_time(airflow: Standalone) -> None:
    backfill(airflow, "forwards")
    assert of_days(airflow, "forwards") == dict.fromkeys(DAYS, "success")
    assert ends(airflow, "forwards") == [1, 2, 3]


def test_what_is_completed_is_not_replayed_again(airflow: Standalone) -> None:
    """They run again, have nothing to do, and say so."""
    before = published(make_settings(airflow.folder / "forwards"))
    backfill(airflow, "forwards", "--reprocess-behavior", "completed")
    airflow.wait(lambda: tasks(airflow, "forwards")["has already replayed past this slice's end"] >= len(DAYS) - 1)
    backfill(airflow, "forwards", "--reprocess-behavior", "none")
    assert of_days(airflow, "forwards") == dict.fromkeys(DAYS, "success")
    assert ends(airflow, "forwards") == [1, 2, 3]
    assert published(make_settings(airflow.folder / "forwards")) == before


def test_backwards_one_at_a_time_all_but_the_oldest_are_refused_and_run_when_asked_for_again(
    airflow: Standalone,
) -> None:
    backfill(airflow, "backwards", "--run-backwards", active=1)
    assert of_days(airflow, "backwards") == {DAYS[0]: "success", DAYS[1]: "failed", DAYS[2]: "failed"}
    assert tasks(airflow, "backwards")["from before this run's data interval"] > 0
    assert ends(airflow, "backwards") == [1]
    backfill(airflow, "backwards", "--reprocess-behavior", "failed")
    airflow.wait(lambda: set(of_days(airflow, "backwards").values()) == {"success"})
    assert ends(airflow, "backwards") == [1, 2, 3]
    of_both = [published(make_settings(airflow.folder / dag_id)) for dag_id in ("forwards", "backwards")]
    assert of_both[0] == of_both[1] != []


def test_backwards_together_they_wait_for_the_oldest(airflow: Standalone) -> None:
    backfill(airflow, "together", "--run-backwards")
    assert of_days(airflow, "together") == dict.fromkeys(DAYS, "success")
    assert ends(airflow, "together") == [1, 2, 3]
    before = published(make_settings(airflow.folder / "together"))
    done = tasks(airflow, "together")["has already replayed past this slice's end"]
    backfill(airflow, "together", "--run-backwards", "--reprocess-behavior", "completed")
    again = tasks(airflow, "together")
    airflow.wait(lambda: tasks(airflow, "together")["has already replayed past this slice's end"] >= done + 2)
    airflow.wait(lambda: set(of_days(airflow, "together").values()) == {"success"})
    assert again["from before this run's data interval"] == 0
    assert ends(airflow, "together") == [1, 2, 3]
    assert published(make_settings(airflow.folder / "together")) == before


def test_a_task_for_each_phase(airflow: Standalone) -> None:
    """Three runs at a time, of seven tasks each."""
    backfill(airflow, "phases")
    assert of_days(airflow, "phases") == dict.fromkeys(DAYS, "success")
    assert ends(airflow, "phases") == [1, 2, 3]
    of_both = [published(make_settings(airflow.folder / dag_id)) for dag_id in ("phases", "together")]
    assert of_both[0] == of_both[1] != []


def test_months_in_berlin_begin_before_those_in_utc(airflow: Standalone) -> None:
    """Dates without a time zone are in UTC: from the first of March on there is only April, whose run is refused."""
    backfill(airflow, "in-berlin", first="2024-03-01", last="2024-04-01")
    assert of_days(airflow, "in-berlin") == {"2024-03-31": "failed"}
    assert tasks(airflow, "in-berlin")["from before this run's data interval"] > 0
    backfill(airflow, "in-berlin", "--reprocess-behavior", "failed", first="2024-03-01T00:00+01:00", last="2024-04-01")
    airflow.wait(lambda: of_days(airflow, "in-berlin") == {"2024-02-29": "success", "2024-03-31": "success"})
    log = CommitLog(open_warehouse(make_settings(airflow.folder / "in-berlin")), "orders")
    assert [log.read(number).until_ms for number in (1, 2)] == [month.timestamp() * 1000 for month in MONTHS[1:]]
