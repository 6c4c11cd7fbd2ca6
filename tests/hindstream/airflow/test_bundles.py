"""DAG bundles under a real scheduler: a run takes the job of its bundle's version, if the bundle has versions."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import open_warehouse
from statelib.commits.archives import open_archive
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import Standalone, standalone
from tests.hindstream.spark.orders import DAY_MS, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.long]

DAG = """
import time
from pathlib import Path
from airflow.sdk import DAG, task
from hindstream.airflow import replay_task_group

with DAG("{dag_id}", schedule=None):

    @task
    def wait():
        while Path({wait!r}).exists():
            time.sleep(0.1)

    wait() >> replay_task_group("jobs/versions.py:job", until="{{{{ dag_run.conf['until'] }}}}", **{given!r})
"""
JOB = """
import pyarrow as pa
from hindstream import Job, StreamsBuilder
from beside import BESIDE

HERE = {version}
builder = StreamsBuilder("versions")
(
    builder.stream("orders")
    .map_values({{
        "here": lambda columns: pa.array([HERE] * columns.num_rows, pa.int64()),
        "beside": lambda columns: pa.array([BESIDE] * columns.num_rows, pa.int64()),
    }})
    .to("versions")
)
job = Job("versions", builder.build())
"""
BUNDLES = {"with_versions": "git", "without_versions": "folder"}
"""DAGs, and the bundle of each."""


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    environ = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout.strip()


def write_job(bundle: Path, version: int) -> None:
    (bundle / "jobs").mkdir(exist_ok=True)
    (bundle / "jobs" / "versions.py").write_text(JOB.format(version=version))
    (bundle / "jobs" / "beside.py").write_text(f"BESIDE = {version}\n")


def write_bundles(folder: Path) -> str:
    """Two bundles with the same DAG and job; the setting by which Airflow knows them."""
    for dag_id, kind in BUNDLES.items():
        settings = make_settings(folder / dag_id)
        archive_orders(settings, orders(200))
        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
        bundle = folder / kind
        (bundle / "team").mkdir(parents=True)
        dag_file = DAG.format(dag_id=dag_id, wait=str(folder / "wait"), given=given | {"task_per": "run"})
        (bundle / "team" / f"{dag_id}.py").write_text(dag_file)
        write_job(bundle, 1)
    git(folder / "git", "init", "--quiet", "--initial-branch", "main")
    commit(folder / "git")
    in_git = {"repo_url": str(folder / "git"), "tracking_ref": "main", "refresh_interval": 1}
    in_folder = {"path": str(folder / "folder")}
    classes = {"git": "airflow.providers.git.bundles.git.GitDagBundle"}
    classes["folder"] = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundles = {"git": in_git, "folder": in_folder}
    return json.dumps([{"name": kind, "classpath": classes[kind], "kwargs": bundles[kind]} for kind in bundles])


@contextmanager
def airflow_with_bundles(folder: Path) -> Iterator[Standalone]:
    """An Airflow that has read both DAGs, and soon sees what is committed."""
    (folder / "airflow").mkdir()
    others = {
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": write_bundles(folder),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(folder / "checkouts"),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "2",
    }
    with standalone(folder, **others) as airflow:
        airflow.wait(lambda: all(airflow.states(dag_id) for dag_id in BUNDLES))
        airflow.wait(airflow.takes_token)  # else the task that waits, which has no retries, may find no API
        yield airflow


def commit(repository: Path) -> str:
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "Change the job")
    return git(repository, "rev-parse", "HEAD")


def bundle_version(airflow: Standalone, dag_id: str) -> str | None:
    """With which a run would be made now."""
    database = airflow.folder / "airflow" / "airflow.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute("select bundle_version from dag where dag_id = ?", [dag_id]).fetchone()[0]


def trigger(airflow: Standalone, dag_id: str, until_ms: int) -> None:
    command = [AIRFLOW, "dags", "trigger", dag_id, "--conf", json.dumps({"until": until_ms})]
    command += ["--run-id", f"until-{until_ms}"]
    subprocess.run(command, env=airflow.environ, check=True, capture_output=True)


def clear(airflow: Standalone, dag_id: str, run_id: str, *, with_newest: bool) -> None:
    """As the buttons do; the run has begun again when this is through."""
    airflow.wait(airflow.takes_token)
    body = {"dry_run": False, "run_on_latest_version": with_newest}
    request = urllib.request.Request(f"{airflow.environ['AIRFLOW']}/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear")
    request.data = json.dumps(body).encode()
    request.add_header("Content-Type", "application/json")
    request.add_header("Authorization", f"Bearer {airflow.environ['TOKEN']}")
    urllib.request.urlopen(request).close()


def versions(folder: Path) -> list[tuple[int, int]]:
    """What made the records of the sink: the job's file, and the one beside it, a pair for each part of the history."""
    archive = open_archive(open_warehouse(make_settings(folder)), "versions")
    rows = archive.reader(0).read_all().sort_by("offset")["value"].to_pylist()
    return list(dict.fromkeys((row["here"], row["beside"]) for row in rows))


def test_a_run_takes_the_job_of_its_version(tmp_path: Path) -> None:
    """Both files of the job change while a run waits: what it replays then, and what the next one does."""
    (tmp_path / "wait").touch()
    with airflow_with_bundles(tmp_path) as airflow:
        for dag_id in BUNDLES:
            trigger(airflow, dag_id, DAY_MS)
        airflow.wait(lambda: all(airflow.states(dag_id).get("wait") == "running" for dag_id in BUNDLES))
        for kind in BUNDLES.values():
            write_job(tmp_path / kind, 2)
        newest = commit(tmp_path / "git")
        airflow.wait(lambda: bundle_version(airflow, "with_versions") == newest)
        (tmp_path / "wait").unlink()
        for dag_id in BUNDLES:
            assert airflow.ended(dag_id)["dag_run"] == "success", airflow.log.read_text()
        assert versions(tmp_path / "with_versions") == [(1, 1)]
        assert versions(tmp_path / "without_versions") == [(2, 2)]
        trigger(airflow, "with_versions", 2 * DAY_MS)
        airflow.all_ended("with_versions", 2)
    assert versions(tmp_path / "with_versions") == [(1, 1), (2, 2)]


def test_a_mended_job_is_taken_if_that_is_asked_for(tmp_path: Path) -> None:
    with airflow_with_bundles(tmp_path) as airflow:
        (tmp_path / "git" / "jobs" / "versions.py").write_text("raise ValueError('broken')\n")
        broken = commit(tmp_path / "git")
        airflow.wait(lambda: bundle_version(airflow, "with_versions") == broken)
        trigger(airflow, "with_versions", DAY_MS)
        assert airflow.ended("with_versions")["dag_run"] == "failed"
        write_job(tmp_path / "git", 3)
        mended = commit(tmp_path / "git")
        airflow.wait(lambda: bundle_version(airflow, "with_versions") == mended)
        states = []
        for with_newest in (False, True):
            clear(airflow, "with_versions", f"until-{DAY_MS}", with_newest=with_newest)
            states.append(airflow.ended("with_versions")["dag_run"])
    assert states == ["failed", "success"]
    assert versions(tmp_path / "with_versions") == [(3, 3)]
