"""The archive of Spark's classes: whole or as it was, and used by the Java that it is of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.spark.session.class_archive import dump
from hindstream.spark.session.session import CLASS_ARCHIVE, quick_start
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.skipif(not CLASS_ARCHIVE.exists(), reason="python -m hindstream.spark.session.class_archive makes it")
def test_spark_starts_with_it(spark: SparkSession) -> None:
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert str(CLASS_ARCHIVE) in Path(f"/proc/{pid}/maps").read_text()


def test_where_there_is_none_spark_starts_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("hindstream.spark.session.session.CLASS_ARCHIVE", tmp_path / "none")
    assert not any("Archive" in option for option in quick_start("driver").values())


def test_java_takes_what_is_written(tmp_path: Path) -> None:
    java = shutil.which("java")
    assert java is not None
    classes, archive = tmp_path / "classes", tmp_path / "spark.jsa"
    classes.write_text("java/lang/Object\njava/util/ArrayList\n")
    archive.write_bytes(b"of another Java")
    dump(java, str(tmp_path), classes, archive)
    command = [java, "-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-cp", str(tmp_path), "-version"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_a_java_that_makes_none_leaves_the_one_before(tmp_path: Path) -> None:
    java, archive = tmp_path / "java", tmp_path / "spark.jsa"
    java.write_text(
        "#!/bin/sh\n"
        'for option; do case $option in -XX:SharedArchiveFile=*) echo half of it >"${option#*=}";; esac; done\n'
        "echo no room left\nexit 1\n"
    )
    java.chmod(0o755)
    archive.write_bytes(b"the one before")
    with pytest.raises(ConfigurationError, match=r"made no archive of Spark's classes: no room left.*JAVA_HOME"):
        dump(str(java), "", tmp_path / "classes", archive)
    assert (tmp_path / "classes.jsa").read_text() == "half of it\n"
    assert archive.read_bytes() == b"the one before"
