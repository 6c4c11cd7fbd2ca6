"""What all tests share: an environment that no test can leak out of, hypothesis profiles, one Spark per process."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.shared_servers import OneProcessForAServer, server_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from xdist.remote import Producer

ROOT = Path(__file__).parent.parent

# Settings of who runs the tests are none of theirs; what is left says how to run them.
OF_TESTS = {"PYTHON", "JAVA", "TEST_WORKERS", "AIRFLOW_HOME", "DUCKDB", "KUBE_APISERVER", "MARQUEZ"}
for _name in [name for name in os.environ if name.startswith("HINDSTREAM_")]:
    if _name.removeprefix("HINDSTREAM_") not in OF_TESTS:
        del os.environ[_name]
# Set before anything is imported that reads them. ./dev has set them already; this is for a pytest started by hand.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".venv" / "numba-cache"))
os.environ.setdefault("AIRFLOW_HOME", str(ROOT / ".venv" / "airflow"))
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what runs beside it; tests send it
os.environ["XDG_RUNTIME_DIR"] = "/dev/null"  # no session of who runs the tests is found there
os.environ.setdefault("HINDSTREAM_DATA_DOCS", "failed")  # seconds a test, or a process that outlives it
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.pop("SPARK_HOME", None)
# Amazon's client must never find real credentials.
os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}

# py4j logs from its destructors, when pytest has closed the streams.
logging.getLogger("py4j").setLevel(logging.ERROR)

# `ci` gives every run the same examples, so a red test is the change's doing; `fast` gives fewer; `campaign` looks
# for new ones.
_slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("ci", max_examples=30, derandomize=True, deadline=None, suppress_health_check=_slow_is_fine)
settings.register_profile("fast", settings.get_profile("ci"), max_examples=8)
settings.register_profile(
    "campaign", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=_slow_is_fine
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes the session is marked ``spark``, said or not.

    What shares a server comes first, then the files with the slowest tests, so that no worker is left with one of them
    when the others are done.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("airflow")}
    alone = {path: server_of(ROOT, str(path.relative_to(ROOT))) for path in {item.path for item in items}}
    items.sort(key=lambda item: (alone[item.path] not in {"broker", "spark"}, item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneProcessForAServer | None:
    """Who runs what, where ``./dev test`` asks for whole files."""
    return OneProcessForAServer(config, log) if config.option.dist == "loadfile" else None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local Spark for this process; its own warehouse and scratch folders, UTC, no user interface."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  (only the tests that want Spark pay for it)

    from hindstream.spark.session.session import quick_start  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2,4]")
        .appName("hindstream-tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config(map=dict(quick_start("driver")))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.python.daemon.module", "hindstream.spark.session.daemon")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
