"""``airflow backfill create`` under a real scheduler: forwards, backwards, and each way to reprocess."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

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
    "{job}:job", dag_id="{dag_id}", task_per="run", schedule="@daily", end_date=datetime(1970, 1, 4, tzinfo=UTC),
    start_date=datetime(1970, 1, 1, tzinfo=UTC), **{given!r}
)
"""
DRIVER = "postgresql+psycopg2"
DAG_IDS = ("forwards", "backwards", "together")
DAYS = ["1970-01-01", "1970-01-02", "1970-01-03"]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """With DAGs which end in the past: nothing but backfills runs."""
    folder = tmp_path_factory.mktemp("backfills")
    (folder / "airflow" / "dags").mkdir(parents=True)
    for dag_id in DAG_IDS:
        settings = make_settings(folder / dag_id)
        archive_orders(settings, orders())
        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
        text = DAG.format(job=JOB_FILE, dag_id=dag_id, given=given)
        (folder / "airflow" / "dags" / f"{dag_id}.py").write_text(text)
    with (
        postgres() as port,
        standalone(folder, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"{DRIVER}://{USER}@127.0.0.1:{port}/postgres") as one,
    ):
        one.wait(lambda: all(one.states(dag_id) for dag_id in DAG_IDS))
        yield one


def backfill(airflow: Standalone, dag_id: str, *options: str, active: int = 3) -> None:
    """Asks for the three days, and waits until their runs have ended."""
    command = [AIRFLOW, "backfill", "create", "--dag-id", dag_id, "--from-date", DAYS[0], "--to-date", DAYS[-1]]
    command += ["--max-active-runs", str(active), *options]

    def asked() -> bool:
        done = subprocess.run(command, env=airflow.environ, check=False, capture_output=True, text=True)
        assert done.returncode == 0 or "Another backfill is running" in done.stderr, done.stdout + done.stderr
        return done.returncode == 0

    def ended() -> bool:
        found = of_days(airflow, dag_id)
        return len(found) == len(DAYS) and set(found.values()) <= {"success", "failed"}

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
