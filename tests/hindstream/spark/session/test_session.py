"""How Spark is configured: what the settings become, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hindstream.spark.session import session
from statelib.settings.settings import load_settings


def options(submitted: bool = False, **settings: object) -> dict[str, str]:
    return session._options(load_settings(settings, environ={}), submitted=submitted)


@pytest.mark.parametrize(
    ("master", "conf", "expected"),
    [
        ("local[2]", {}, "local[2,4]"),
        ("local", {}, "local[1,4]"),
        ("local[3,7]", {}, "local[3,7]"),
        ("local[2]", {"spark.task.maxFailures": "2"}, "local[2,2]"),
        ("spark://host:7077", {}, "spark://host:7077"),
    ],
)
def test_a_local_master_retries_tasks(master: str, conf: dict[str, str], expected: str) -> None:
    assert options(spark_master=master, spark_conf=conf)["spark.master"] == expected


def test_local_spark_stays_on_the_loopback_and_a_cluster_does_not() -> None:
    assert options(spark_master="local[2]")["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in options(spark_master="spark://host:7077")


_A_WORKERS_SURROUNDINGS = """
import sys
import threading
import pyarrow as pa
from hindstream.spark.session.session import spark_session
from statelib.settings.settings import load_settings

spark = spark_session(load_settings({"spark_master": "local[1]"}, environ={}))
found = spark.sparkContext.parallelize([0], 1).map(lambda _: (sys.prefix, pa.default_memory_pool().backend_name))
print(found.collect() == [(sys.prefix, "system")])
"""


@pytest.mark.spark
def test_workers_run_the_drivers_python_wherever_path_leads_and_take_the_systems_memory(tmp_path: Path) -> None:
    java = shutil.which("java")
    assert java is not None
    java_home = str(Path(java).resolve().parent.parent)
    environ = {"PATH": os.defpath, "JAVA_HOME": java_home, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", _A_WORKERS_SURROUNDINGS],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr


def test_a_cluster_may_have_its_python_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    cluster = "spark://host:7077"
    assert options(spark_master=cluster)["spark.pyspark.python"] == "/opt/python"
    conf = {"spark.pyspark.python": "/opt/another"}
    assert options(spark_master=cluster, spark_conf=conf)["spark.pyspark.python"] == "/opt/another"
    assert options(spark_master="local[2]")["spark.pyspark.python"] == sys.executable


def test_what_the_user_sets_wins() -> None:
    assert options(spark_conf={"spark.sql.session.timeZone": "CET"})["spark.sql.session.timeZone"] == "CET"


def test_workers_use_the_arrow_memory_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    assert options()["spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL"] == "jemalloc"


def test_a_submitted_driver_keeps_its_master() -> None:
    assert "spark.master" not in options(submitted=True)


def test_nothing_is_written_to_the_working_directory(tmp_path: Path) -> None:
    found = options(state_dir=str(tmp_path / "state"))
    assert found["spark.sql.warehouse.dir"].startswith(str(tmp_path))


def test_what_goes_wrong_ahead_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    tried = threading.Event()

    def fail(_: object) -> None:
        tried.set()
        raise ValueError("Cannot run multiple SparkContexts at once")  # PySpark's, of no kind of its own

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(session, "spark_context", fail)
    monkeypatch.setattr(threading, "excepthook", told.append)
    session.start_ahead(load_settings({}, environ={}))
    assert tried.wait(10)
    for thread in threading.enumerate():
        if thread.name == "start Spark":
            thread.join(10)
    assert told == []
