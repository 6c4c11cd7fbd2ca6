"""A whole job over a store that speaks S3, each slice on a host of its own, and nothing tells the credentials."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import pipeline
from statelib.commits import CommitLog, published_through
from statelib.settings.settings import Settings, load_settings
from tests import command
from tests.hindstream.spark.orders import (
    DAY_MS,
    JOB_FILE,
    archive_orders,
    check_published,
    make_settings,
    orders,
    published,
)
from tests.storage.s3 import S3Server

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import SparkSession

    from statelib.job.job import Job

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SLICES = ("1970-01-02T00:00:00Z", "1970-01-03T12:00:00Z", None)


@dataclass
class Replayed:
    """Slices that ``hindstream run`` has replayed, each with an empty state directory.

    Attributes:
        folder: Holds all that has been written here: state, logs, Spark's event logs.
        settings: Without credentials, which are in the environment.
        runs: What the commands printed.
    """

    folder: Path
    settings: Settings
    runs: list[subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def in_environment(s3: S3Server):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3.credentials.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def replayed(s3: S3Server, in_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    folder = tmp_path_factory.mktemp("hosts")
    settings = load_settings({"warehouse": "s3://warehouse/whole/job", "storage_options": s3.settings}, environ={})
    archive_orders(settings, orders())
    (folder / "events").mkdir()
    environ = {
        "HINDSTREAM_WAREHOUSE": settings.warehouse,
        "HINDSTREAM_STORAGE_OPTIONS": json.dumps(s3.settings),
        "HINDSTREAM_SPARK_MASTER": "local[2]",
        "HINDSTREAM_SPARK_CONF": json.dumps({
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (folder / "events").as_uri(),
        }),
        **s3.credentials,
    }  # fmt: skip
    runs = []
    for number, until in enumerate(SLICES):
        slice_end = ["--until", until] if until else []
        state = folder / f"host{number}"
        runs.append(
            command.hindstream(
                "run", f"{JOB_FILE}:job", *slice_end, cwd=folder, HINDSTREAM_STATE_DIR=str(state), **environ
            )
        )
        assert runs[-1].returncode == 0, runs[-1].stderr
    for arguments in (["settings"], ["status", f"{JOB_FILE}:job"]):
        runs.append(command.hindstream(*arguments, cwd=folder, **environ))
        assert runs[-1].returncode == 0, runs[-1].stderr
    return Replayed(folder, settings, runs)


@pytest.mark.long
def test_the_answer_is_that_of_a_local_disk(replayed: Replayed, tmp_path: Path, spark: SparkSession, orders_job: Job):
    local = make_settings(tmp_path)
    archive_orders(local, orders())
    for until in (DAY_MS, 2 * DAY_MS + DAY_MS // 2, None):
        pipeline.run_slice(orders_job, local, until)
    check_published(replayed.settings, orders())
    assert published(replayed.settings) == published(local)
    here, there = (
        CommitLog(open_warehouse(settings), orders_job.name).head() for settings in (local, replayed.settings)
    )
    assert here is not None
    assert there is not None
    assert there.commit == here.commit == len(SLICES)
    assert {k: task.position for k, task in there.tasks.items()} == {k: t.position for k, t in here.tasks.items()}
    assert [(s.topic, s.file.sha256) for s in there.sinks] == [(s.topic, s.file.sha256) for s in here.sinks]
    assert published_through(open_warehouse(replayed.settings), orders_job.name) == len(SLICES)


def test_nothing_tells_the_credentials(replayed: Replayed, s3: S3Server):
    warehouse = open_warehouse(replayed.settings)
    texts = {path.relative_to(replayed.folder).as_posix(): path.read_bytes()
             for path in replayed.folder.rglob("*") if path.is_file()}  # fmt: skip
    texts |= {entry.path: warehouse.get(entry.path) for entry in warehouse.list()}
    for number, run in enumerate(replayed.runs):
        texts |= {f"output {number}": run.stdout.encode(), f"errors {number}": run.stderr.encode()}
    assert any(name.startswith("events/") and b"spark.eventLog.dir" in text for name, text in texts.items())
    assert any(name.endswith("spark.log") for name in texts)
    assert sum(name.endswith(".html") for name in texts) > len(SLICES)
    assert s3.endpoint.encode() in texts[f"output {len(SLICES)}"]  # the settings are shown, with the store's options
    told = [name for name, text in texts.items() for value in s3.credentials.values() if value.encode() in text]
    assert told == []
