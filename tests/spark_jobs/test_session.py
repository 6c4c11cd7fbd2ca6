"""How Spark is configured: what the settings become, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spark_jobs import session
from statelib.config import load_settings
from statelib.errors import ConfigurationError


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


def test_workers_run_the_drivers_python() -> None:
    assert options()["spark.pyspark.python"] == sys.executable


def test_what_the_user_sets_wins() -> None:
    assert options(spark_conf={"spark.sql.session.timeZone": "CET"})["spark.sql.session.timeZone"] == "CET"


def test_a_submitted_driver_keeps_its_master() -> None:
    assert "spark.master" not in options(submitted=True)


def test_nothing_is_written_to_the_working_directory(tmp_path: Path) -> None:
    found = options(state_dir=str(tmp_path / "state"))
    assert found["spark.sql.warehouse.dir"].startswith(str(tmp_path))


def test_missing_java_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="Spark needs Java 17 or 21.*JAVA_HOME"):
        session._check_java()
