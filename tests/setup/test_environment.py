"""The environment that ./dev makes holds what it promises."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def locked() -> list[Requirement]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    requirements = [Requirement(line.removesuffix("\\").strip()) for line in lines if re.match(r"[a-z]", line)]
    return [requirement for requirement in requirements if not requirement.marker or requirement.marker.evaluate()]


def test_what_is_installed_is_what_is_locked() -> None:
    installed = {
        re.sub(r"[-_.]+", "-", distribution.name).lower(): distribution.version
        for distribution in importlib.metadata.distributions()
    }
    installed.pop("hindstream")
    assert installed == {requirement.name: str(requirement.specifier).removeprefix("==") for requirement in locked()}


def test_every_package_is_pinned_by_hash_and_no_index_is_named() -> None:
    text = (ROOT / "requirements.lock").read_text()
    for block in re.split(r"\n(?=[a-z])", text)[1:]:
        assert "--hash=sha256:" in block
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", text)


def test_the_project_is_installed_from_this_checkout() -> None:
    for name in ("statelib", "spark_jobs", "dags", "hindstream"):
        package = importlib.import_module(name)
        assert package.__file__ is not None
        assert Path(package.__file__).is_relative_to(ROOT)


@pytest.mark.parametrize(
    "name",
    ["airflow.sdk", "confluent_kafka", "deltalake", "duckdb", "great_expectations", "numba", "obstore"],
)
def test_a_dependency_imports_without_a_warning(name: str) -> None:
    """In a process of its own: here it may have been imported before, by another test."""
    known = "ignore:module 'sre_:DeprecationWarning"  # Great Expectations', as in pyproject.toml
    command = [sys.executable, "-W", "error", "-W", known, "-c", f"import {name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


SPARK_JOB = """
import sys
import pyarrow as pa
from pyspark.sql import SparkSession

def double(batches):
    for batch in batches:
        yield pa.record_batch({"id": [2 * number for number in batch.column("id").to_pylist()]})

loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
spark = SparkSession.builder.master("local[2]").config(map=loopback).getOrCreate()
spark.range(100).repartition(3).mapInArrow(double, "id long").write.parquet(sys.argv[1])
print("Java", spark._jvm.java.lang.System.getProperty("java.specification.version"))
print("sum", spark.read.parquet(sys.argv[1]).groupBy().sum("id").collect()[0][0])
"""


@pytest.mark.spark
def test_spark_runs_on_the_java_that_comes_with_the_packages(tmp_path: Path) -> None:
    environment = os.environ | {"JAVA_HOME": str(Path(sys.prefix) / "java-home")}
    command = [sys.executable, "-c", SPARK_JOB, str(tmp_path / "numbers")]
    result = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["Java 21", "sum 9900"]


@pytest.mark.spark
def test_spark_runs_python_on_arrow(spark: SparkSession) -> None:
    def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.set_column(0, "id", pc.multiply(batch.column(0), 2))

    result = spark.range(100).repartition(3).mapInArrow(double, "id long")
    assert result.groupBy().sum("id").collect()[0][0] == 9_900
