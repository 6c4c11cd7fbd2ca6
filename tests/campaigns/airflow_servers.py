"""The servers of an Airflow that may die: each a process of its own, which is started again.

Tasks run below the scheduler (LocalExecutor), or below workers of Celery, which get them from a Redis.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hindstream.airflow.airflow_environ import AIRFLOW, free_port

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

REDIS = "redis-server"

QUICK = {
    "AIRFLOW__CORE__PARALLELISM": "2",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "5",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
    "AIRFLOW__SCHEDULER__MAX_DAGRUNS_TO_CREATE_PER_LOOP": "50",
}
"""What has died is noticed within seconds, and not within minutes."""

_NAMES = ("scheduler", "triggerer", "dag-processor", "api-server")
_WORKERS = ("worker-1", "worker-2")
_NO_TASK = ("<idle>", "serve-logs", "celery worker", "ForkPoolWorker", "resource_tracker")
"""What is in the command lines of processes below a server that have no task."""


@dataclass
class Server:
    """A server, which is started again when it has died.

    Attributes:
        name: What it is called when it has been killed.
        command: What starts it.
        environ: Its environment.
        log: Where its words go.
        has_tasks: Whether tasks are processes below it.
    """

    name: str
    command: Sequence[str | Path]
    environ: Mapping[str, str]
    log: Path
    has_tasks: bool = False
    process: subprocess.Popen[bytes] | None = None
    _groups: list[int] = field(default_factory=list)

    def keep(self) -> None:
        """Starts it unless it runs, and ends what one that has been killed has left waiting.

        Waiting workers of LocalExecutor keep the database connection of their scheduler open, and PostgreSQL the locks
        on the runs that it was scheduling: the next scheduler passes over these runs, for ever. Service managers and
        Kubernetes end them, too.
        """
        if self.process is None or self.process.poll() is not None:
            with self.log.open("ab") as output:
                self.process = subprocess.Popen(
                    self.command, env=self.environ, stdout=output, stderr=output, start_new_session=True
                )
            self._groups.append(self.process.pid)
        for pid in processes_of(self._groups[:-1]):
            if _waits(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """As when the host has no memory left: its children go on without it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def end(self) -> None:
        """Ends it, with all that it has started."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def tasks(self) -> list[int]:
        """The processes of tasks below it."""
        if self.process is None or not self.has_tasks:
            return []
        return processes_below(self.process.pid)


def with_local_executor(home: Path, environ: Mapping[str, str]) -> list[Server]:
    """Airflow's servers, whose scheduler runs the tasks itself."""
    environ = {**environ, "AIRFLOW__CORE__EXECUTOR": "LocalExecutor"}
    return [
        Server(name, [AIRFLOW, name], environ, home / f"{name}.log", has_tasks=name == "scheduler") for name in _NAMES
    ]


def with_celery(home: Path, environ: Mapping[str, str]) -> list[Server]:
    """Airflow's servers, a broker that forgets everything when it dies, and workers with a task at a time."""
    port = free_port()
    environ = {
        **environ,
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CELERY__BROKER_URL": f"redis://127.0.0.1:{port}/0",
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{environ['AIRFLOW__DATABASE__SQL_ALCHEMY_CONN']}",
        "AIRFLOW__CELERY__WORKER_CONCURRENCY": "1",
        # What a dead worker had taken from the broker, and not begun.
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "30",
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "5",
        "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "60",
    }
    redis = [REDIS, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", home]
    worker = [AIRFLOW, "celery", "worker", "--skip-serve-logs", "--celery-hostname"]
    return [
        Server("broker", redis, environ, home / "broker.log"),
        *(Server(name, [AIRFLOW, name], environ, home / f"{name}.log") for name in _NAMES),
        *(Server("worker", [*worker, name], environ, home / f"{name}.log", has_tasks=True) for name in _WORKERS),
    ]


def processes_of(groups: Container[int]) -> list[int]:
    """The processes of process groups."""
    return [pid for pid, _, group in _processes() if group in groups]


def processes_below(process: int) -> list[int]:
    """The processes that one has started, and those that these have, as far as they have a task.

    A worker of LocalExecutor that waits for one holds the lock of the queue: if it is killed then, no other worker ever
    gets a task, until the scheduler is started anew.
    """
    children: dict[int, list[int]] = {}
    for pid, parent, _ in _processes():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = [process]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return [pid for pid in found if not _waits(pid)]


def _processes() -> Iterator[tuple[int, int, int]]:
    """Process, parent and process group of all that have not ended."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, group = stat.read_text().rpartition(")")[2].split()[:3]
            if state != "Z":
                yield int(stat.parent.name), int(parent), int(group)


def _waits(pid: int) -> bool:
    try:
        title = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return True
    return any(words in title for words in _NO_TASK)
