"""What `docs/airflow.md` leads to: its files and commands, on a real Airflow, a Spark cluster and a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.docs.bucket import BUCKETS, MOST_HELD, answer, orders, recomputed, upload
from tests.docs.typed import follow
from tests.hindstream.airflow.standalone import Standalone, standalone
from tests.hindstream.lineage.receiver import receiver
from tests.hindstream.spark.submission.submitter import OPTIONS
from tests.postgres import USER, has_postgres, postgres
from tests.spark_cluster import SparkCluster, spark_cluster
from tests.storage.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hindstream.lineage.specified import Event

pytestmark = [
    pytest.mark.spark,
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(3600),  # six drivers of Spark are started one after the other
    pytest.mark.skipif(not has_postgres(), reason="there is no PostgreSQL, which Airflow wants for so much at once"),
]

PAGE = ROOT / "docs" / "airflow.md"
DAG_ID = "replay_orders"
MONTHS = ["2024-01-01", "2024-02-01", "2024-03-01"]


def replaced(folder: Path, s3: S3Server, cluster: SparkCluster) -> dict[str, str]:
    """What stands in the places of the page's own names."""
    host, _, port = cluster.url.rpartition(":")
    return {
        "https://minio.example.com": s3.endpoint,
        "spark://spark-master --conn-port 7077": f"{host} --conn-port {port}",
        '"rest-port": 6066': f'"rest-port": {cluster.rest_port}',
        "/srv/jobs/orders.py": str(folder / "jobs" / "orders.py"),
        "/var/lib/hindstream": str(folder / "state"),
        'spark_submit={"executor_memory": "4g"}': f"spark_submit={OPTIONS!r}",
    }


def backfill_ended(airflow: Standalone) -> bool:
    found = [state for _, kind, state in airflow.runs(DAG_ID) if kind == "backfill"]
    return len(found) == len(MONTHS) and set(found) <= {"success", "failed"}


def test_its_steps_lead_to_a_backfill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s3").mkdir()
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    with s3_server(tmp_path / "s3", *BUCKETS) as s3, receiver(monkeypatch) as events, postgres() as database:
        others = {
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "2",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{USER}@127.0.0.1:{database}/postgres",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": os.environ["OPENLINEAGE__TRANSPORT"],
        }
        monkeypatch.delenv("OPENLINEAGE__TRANSPORT")
        for name, value in s3.credentials.items():
            monkeypatch.setenv(name, value)  # the hosts of the cluster have them too
        upload(s3, tmp_path / "connect", orders(range(1_500)))
        hosts = spark_cluster(tmp_path, "127.0.0.2", "127.0.0.3", has_rest=True, cores=3)
        with hosts as cluster, standalone(tmp_path, **others) as airflow:
            airflow.wait(airflow.takes_token)
            situations = {
                "Airflow has read the DAG": lambda: airflow.wait(lambda: airflow.states(DAG_ID)),
                "the backfill has ended": lambda: airflow.wait(lambda: backfill_ended(airflow)),
            }
            of_this = replaced(tmp_path, s3, cluster)
            follow(PAGE, home, airflow.environ, replaced=of_this, situations=situations)
            runs = airflow.all_ended(DAG_ID, len(MONTHS) + 1)
        assert [(day, state) for day, kind, state in runs if kind == "backfill"] == [
            (month, "success") for month in MONTHS
        ], airflow.log.read_text()
        assert [state for _, kind, state in runs if kind == "scheduled"] == ["success"]
        found = answer(s3)
    expected = recomputed(orders(range(1_500)))
    assert found.items() <= expected.items()
    assert 0 < len(expected) - len(found) <= MOST_HELD
    check_lineage(events)


def check_lineage(events: list[Event]) -> None:
    """Each run has told its beginning and its end, below a task of Airflow's; its audit has told the checks.

    Drivers in the cluster tell them too. A phase that is repeated tells its end again.
    """
    told = [event for event in events if event["job"]["name"] == "orders-by-day"]
    runs = {event["run"]["runId"] for event in told if event["eventType"] == "COMPLETE"}
    assert len(runs) == len(MONTHS), runs
    assert runs <= {event["run"]["runId"] for event in told if event["eventType"] == "START"}
    above = {event["run"]["facets"]["parent"]["job"]["name"] for event in told}
    assert above == {f"{DAG_ID}.{phase}" for phase in ("plan", "replay", "audit", "commit", "publish")}
    audits = [event for event in events if event["job"]["name"] == "orders-by-day.audit"]
    ended = [event for event in audits if event["eventType"] == "COMPLETE"]
    assert {event["run"]["facets"]["parent"]["run"]["runId"] for event in ended} == runs
    for event in ended:
        checked = {data["name"].rpartition("/")[2]: data["inputFacets"] for data in event["inputs"]}
        assert checked.keys() == {"orders", "orders-by-day"}
        for facets in checked.values():
            assertions = facets["dataQualityAssertions"]["assertions"]
            assert [one for one in assertions if not one["success"]] == [] != assertions
