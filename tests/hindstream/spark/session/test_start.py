"""What Spark needs to start, and why it has not started."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from hindstream.spark.session.session import spark_session
from hindstream.spark.session.start import OLDEST, check_local_dirs, check_version, start_error
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings


@pytest.mark.parametrize(
    ("options", "environ", "setting"),
    [
        ({"spark.local.dir": "{here}"}, {"SPARK_LOCAL_DIRS": "/dev/null/a,/dev/null/b"}, "SPARK_LOCAL_DIRS"),
        ({"spark.local.dir": "/dev/null/a"}, {}, "spark_conf.spark.local.dir"),
    ],
)
def test_local_files_that_cannot_be_written(
    tmp_path: Path, options: dict[str, str], environ: dict[str, str], setting: str
) -> None:
    options = {name: text.format(here=tmp_path) for name, text in options.items()}
    with pytest.raises(
        ConfigurationError, match=r"Spark cannot write its local files \(/dev/null/a: Not a dir"
    ) as told:
        check_local_dirs(options, environ)
    assert told.value.place["setting"] == setting


def test_a_spark_that_is_too_old_is_refused() -> None:
    """A cluster's own, under which a driver runs that was submitted there."""
    told = (
        "this is Spark 3.5.7, and a replay needs 4.1 or later .spark_home /opt/spark.. Next: use a cluster of Spark 4.1"
    )
    with pytest.raises(ConfigurationError, match=told):
        check_version("3.5.7", {"SPARK_HOME": "/opt/spark"})
    with pytest.raises(ConfigurationError, match="this is Spark 4.0.1-amzn-1, and a .*spark_home that of pyspark"):
        check_version("4.0.1-amzn-1", {})
    for version in ("4.1.0", "4.1.0-SNAPSHOT", "4.10.1.maker-7", "5.0"):
        check_version(version, {})
    needs = [need for need in importlib.metadata.requires("hindstream") or () if need.startswith("pyspark")]
    assert [f">={OLDEST}" in need for need in needs] == [True], needs


@pytest.mark.parametrize("environ", [{}, {"SPARK_LOCAL_DIRS": "/dev/null/a,{here}/new"}, {"SPARK_LOCAL_DIRS": ""}])
def test_one_directory_is_enough(tmp_path: Path, environ: dict[str, str]) -> None:
    check_local_dirs({}, {name: text.format(here=tmp_path) for name, text in environ.items()})
    assert [path for path in tmp_path.rglob("*") if path.name != "new"] == []


def test_a_state_directory_that_cannot_be_written_is_told_by_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    with pytest.raises(ConfigurationError, match=r"the local directory cannot be written: Not a d.*setting state_dir"):
        spark_session(load_settings({"state_dir": "/dev/null/state", "spark_master": "local[1]"}, environ={}))


SAID = {
    "Error occurred during initialization of VM\nToo small maximum heap\n": (
        "Spark does not start: Too small maximum heap",
        "spark_conf.spark.driver.memory",
    ),
    "Invalid maximum heap size: -Xmxlots\nError: Could not create the Java Virtual Machine.\n": (
        "Spark does not start: Invalid maximum heap size: -Xmxlots",
        "spark_conf.spark.driver.memory",
    ),
    "# There is insufficient memory for the Java Runtime Environment to continue.\n": (
        "There is insufficient memory",
        "spark_conf.spark.driver.memory",
    ),
    "26/01/01 00:00:00 WARN StandaloneAppClient$ClientEndpoint: Failed to connect to master 127.0.0.1:1\n": (
        "no Spark master answers at 127.0.0.1:1",
        "spark_master",
    ),
    'WARN Utils: a\nException in thread "main" org.apache.spark.SparkException: Master must either be yarn\n\tat a\n': (
        "Spark does not start: Master must either be yarn",
        "spark_master",
    ),
    "WARN Utils: nothing of use\n": ("Spark does not start: [Errno 111] Connection refused", "spark_master"),
}


@pytest.mark.parametrize("said", SAID)
def test_what_java_has_said_is_the_reason(tmp_path: Path, said: str) -> None:
    log = tmp_path / "spark.log"
    before = "Failed to connect to master earlier:7077\n"
    log.write_text(before + said)
    what, setting = SAID[said]
    told = start_error(ConnectionRefusedError(111, "Connection refused"), log, len(before))
    assert what in told.what
    assert told.place["setting"] == setting
    assert str(log) in str(told.next_step)


def test_without_a_log_the_reason_is_the_error(tmp_path: Path) -> None:
    assert start_error(OSError(), tmp_path / "spark.log", 0).what == "Spark does not start: OSError"
