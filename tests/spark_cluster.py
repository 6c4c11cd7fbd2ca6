"""A Spark standalone cluster whose hosts are all this one: 127.0.0.2, 127.0.0.3 and so on, each with a disk of its own.

Spark never runs two attempts of a task on one host, and all workers of a ``local-cluster`` have the same one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REST = re.compile(r"Started REST server for submitting applications on \S+ with port (\d+)")
_STARTED = re.compile(r"Successfully registered with master")
_SECONDS_TO_START = 120

DISK = "HOST_DISK"
"""The variable that names a host's disk there."""


class SparkCluster:
    """A master, and workers that come and go.

    Args:
        folder: For logs, work directories and disks.
        has_rest: Whether the master has a server that tells what becomes of drivers.

    Attributes:
        url: The master's.
        rest_port: Of that server; 0: there is none.
    """

    def __init__(self, folder: Path, *, has_rest: bool = False) -> None:
        self._folder = folder
        self._has_rest = has_rest
        self._master = self._start_master()
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self.url = self._logged("master", _MASTER, self._master)[1]
            self.rest_port = int(self._logged("master", _REST, self._master)[1]) if has_rest else 0
        except BaseException:
            self.close()
            raise

    def disk(self, host: str) -> Path:
        """Where a host keeps what it keeps, from one start to the next."""
        return self._folder / f"disk-{host}"

    def pid(self, host: str) -> int:
        """That of a host's worker."""
        return self._workers[host].pid

    def add(self, *hosts: str, cores: int = 1, memory: str = "2g") -> None:
        """Starts workers and waits until the master knows them."""
        for host in hosts:
            self.disk(host).mkdir(exist_ok=True)
            place = ("--work-dir", str(self._folder / host), "--cores", str(cores), "--memory", memory, self.url)
            self._workers[host] = self._start(host, "worker.Worker", "--host", host, *place, disk=self.disk(host))
        for host in hosts:
            self._logged(host, _STARTED, self._workers[host])

    def kill(self, host: str, *, with_disk: bool = False) -> None:
        """Kills a worker with its executors, as a host that is lost."""
        worker = self._workers.pop(host)
        os.killpg(worker.pid, signal.SIGKILL)  # its executors are of its group
        worker.wait()
        if with_disk:
            shutil.rmtree(self.disk(host))

    def restart_master(self) -> None:
        """Kills the master, and starts another at the same addresses, which recovers what that one knew."""
        self._master.kill()
        self._master.wait()
        self._master = self._start_master(self.url.rpartition(":")[2], self.rest_port)
        self._logged("master", _REST if self._has_rest else _MASTER, self._master)

    def close(self) -> None:
        """Kills all."""
        for host in [*self._workers]:
            self.kill(host)
        self._master.kill()
        self._master.wait()

    def _start_master(self, port: str = "0", rest_port: int = 0) -> subprocess.Popen[bytes]:
        java = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={self._folder / 'recovery'}"
        if self._has_rest:
            java += f" -Dspark.master.rest.enabled=true -Dspark.master.rest.port={rest_port}"
        return self._start("master", "master.Master", "--host", "127.0.0.1", port=port, java=java)

    def _start(
        self, name: str, of: str, *arguments: str, port: str = "0", disk: Path | None = None, java: str = ""
    ) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environ = os.environ | {
            "SPARK_HOME": str(home),
            # A worker that sleeps is no dead one.
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.worker.timeout=3600 -XX:TieredStopAtLevel=1 -XX:+UseSerialGC {java}",
        }
        if disk is not None:
            environ[DISK] = str(disk)
        command = [
            str(home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{of}",
            "--port",
            port,
            "--webui-port",
            "0",
        ]
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen([*command, *arguments], env=environ, stdout=log, stderr=log, start_new_session=True)

    def _logged(self, name: str, wanted: re.Pattern[str], process: subprocess.Popen[bytes]) -> re.Match[str]:
        log, since = self._folder / f"{name}.log", time.monotonic()
        while (found := wanted.search(log.read_text())) is None:
            in_time = time.monotonic() - since < _SECONDS_TO_START and process.poll() is None
            assert in_time, f"Spark does not start: {log.read_text()[-3000:]}"
            time.sleep(0.05)
        return found


@contextmanager
def spark_cluster(folder: Path, *hosts: str, has_rest: bool = False, cores: int = 1) -> Iterator[SparkCluster]:
    """A cluster with a worker of so many cores on each of ``hosts``, which are addresses of this machine."""
    cluster = SparkCluster(folder, has_rest=has_rest)
    try:
        cluster.add(*hosts, cores=cores)
        yield cluster
    finally:
        cluster.close()
