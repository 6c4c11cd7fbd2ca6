"""Spark: whether a session starts, and its workers have the same packages."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from hindstream.doctor.finding import Finding
from hindstream.spark.placement.hosts import on_every_host
from hindstream.spark.session.session import spark_context
from hindstream.spark.tasks.works import spark_error
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.settings.settings import Settings

_PACKAGES = ("hindstream", "pyspark", "pyarrow", "numba", "rocksdict", "deltalake", "obstore")


def check_spark(settings: Settings) -> Iterator[Finding]:
    """Starts a session, and has every executor say what it has; where Spark is local, one of its workers.

    Raises:
        ConfigurationError: Spark does not start.
        RetryableError: It has started, and cannot run anything.
    """
    answers = on_every_host(settings, _versions)
    mine = _versions()
    context = spark_context(settings)
    try:
        answers += [("a worker", found) for found in context.parallelize([0], 1).map(lambda _: _versions()).collect()]
    except (Py4JError, PySparkException) as error:
        raise spark_error(error) from error
    strange = {
        f"{host}: {name} {version}, not {mine[name]}"
        for host, versions in answers
        for name, version in versions.items()
        if version != mine[name]
    }
    hosts = len({host for host, _ in answers} - {"a worker"})
    if strange:
        step = "install the same packages on all hosts, or set spark_conf.spark.pyspark.python"
        for what in sorted(strange):
            yield Finding("Spark", "wrong", what, step)
    else:
        yield Finding("Spark", "ok", f"{settings.spark_master} starts; {counted(hosts, 'host')} with the same packages")


def _versions() -> dict[str, str]:
    versions = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "missing"
    return versions
