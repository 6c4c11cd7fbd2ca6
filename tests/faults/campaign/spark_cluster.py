"""A Spark standalone cluster of two hosts, both of them this one: 127.0.0.2 and 127.0.0.3, of one core each.

Spark never runs two attempts of a task on one host, and all workers of a ``local-cluster`` have the same one.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTS = ("127.0.0.2", "127.0.0.3")
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_STARTED = re.compile(r"Successfully registered with master")
_SECONDS_TO_START = 120


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """Gives the master's URL; the cluster writes below ``folder``."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.append(_started(folder, "master", "master.Master", "--host", "127.0.0.1"))
        url = _logged(folder / "master.log", _MASTER, processes[0])[1]
        for host in HOSTS:
            place = ("--work-dir", str(folder / host), "--cores", "1", "--memory", "2g", url)
            processes.append(_started(folder, host, "worker.Worker", "--host", host, *place))
        for host, process in zip(HOSTS, processes[1:], strict=True):
            _logged(folder / f"{host}.log", _STARTED, process)
        yield url
    finally:
        for process in processes[::-1]:
            process.kill()
            process.wait()


def _started(folder: Path, name: str, of: str, *arguments: str) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    environ = os.environ | {
        "SPARK_HOME": str(home),
        # A worker that sleeps is no dead one.
        "SPARK_DAEMON_JAVA_OPTS": "-Dspark.worker.timeout=3600 -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{of}", "--port", "0", "--webui-port", "0"]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen([*command, *arguments], env=environ, stdout=log, stderr=log)


def _logged(log: Path, wanted: re.Pattern[str], process: subprocess.Popen[bytes]) -> re.Match[str]:
    since = time.monotonic()
    while (found := wanted.search(log.read_text())) is None:
        in_time = time.monotonic() - since < _SECONDS_TO_START and process.poll() is None
        assert in_time, f"Spark does not start: {log.read_text()[-3000:]}"
        time.sleep(0.05)
    return found
