"""The stack of `docker-compose.yml`, brought up by Docker, against a replay in this process.

It goes when it is done, with its volumes: they are those of a project of its own. Its ports must be free.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.demo import DELAYS, FLIGHTS, NAME, WEATHER
from hindstream.demo.archives import prepare_topics
from statelib.commits import published_through
from statelib.storage import Storage
from tests.conftest import ROOT
from tests.hindstream.demo.replay import equal_bytes, published, replay
from tests.kafka.cluster import Cluster
from tests.kafka.demo_in_kafka import differences

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROJECT = "hindstream-campaign"
_STORE = {"aws_endpoint_url": "http://127.0.0.1:8333", "aws_region": "us-east-1", "allow_http": "true"}
_REGISTRY = "http://127.0.0.1:8085/apis/ccompat/v7"
_BROKER = "127.0.0.1:9094"
_SECONDS_OF_A_MONTH = 900
"""A month that takes longer does not come."""


@dataclass(frozen=True)
class Compose:
    """Docker Compose on the stack's file."""

    command: tuple[str, ...]

    @classmethod
    def find(cls) -> Compose | None:
        """Version 2, or 1; None: there is neither, or no Docker that answers."""
        for command in (("docker", "compose"), ("docker-compose",)):
            if shutil.which(command[0]) and _succeeds(*command, "version") and _succeeds("docker", "info"):
                return cls(command)
        return None

    def run(self, *arguments: str) -> str:
        """What it prints."""
        command = [*self.command, "--project-name", _PROJECT, *arguments]
        return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout

    def secret(self, name: str) -> str:
        """One of the stack's."""
        return self.run("exec", "-T", "airflow-scheduler", "cat", f"/run/stack/{name}").strip()


def main(arguments: Sequence[str]) -> int:
    """Brings it up, waits for some months (12), and compares; 2 if there is no Docker."""
    months = int(arguments[0]) if arguments else 12
    compose = Compose.find()
    if compose is None:
        print("this needs Docker and Compose")
        return 2
    begun = time.monotonic()
    try:
        compose.run("up", "--build", "--detach")
        print(f"up after {time.monotonic() - begun:.0f} s")
        keys = {"aws_access_key_id": "s3-access-key", "aws_secret_access_key": "s3-secret-key"}
        credentials = {option: compose.secret(name) for option, name in keys.items()}
        warehouse = Storage("s3://lake/warehouse", _STORE | credentials)
        for month in range(1, months + 1):
            _await(warehouse, month)
            print(f"month {month} after {time.monotonic() - begun:.0f} s", flush=True)
        wrong = _differences(warehouse, months)
        compose.run("up", "--detach")  # which changes nothing
        wrong += _differences(warehouse, months)
    except BaseException:
        print(compose.run("ps"), compose.run("logs", "--tail", "40"))
        raise
    finally:
        compose.run("down", "--volumes")
    print(f"different: {', '.join(wrong)}" if wrong else f"equal, through month {months}")
    return 1 if wrong else 0


def _await(warehouse: Storage, month: int) -> None:
    """Waits until a month is committed and published."""
    deadline = time.monotonic() + _SECONDS_OF_A_MONTH
    while published_through(warehouse, NAME) < month:
        if time.monotonic() > deadline:
            raise TimeoutError(f"month {month} has not come")
        time.sleep(2)


def _differences(warehouse: Storage, months: int) -> list[str]:
    """What is not as after a replay of the same months here; the stack may be further."""
    with tempfile.TemporaryDirectory() as folder:
        expected = Storage(f"{folder}/warehouse")
        prepare_topics(expected, announce=lambda _: None)
        end = datetime(2013 + months // 12, months % 12 + 1, 1, 5, tzinfo=UTC)  # as the DAG's schedule has it
        replay(expected, int(end.timestamp() * 1000), Path(folder) / "state")
        wrong = []
        for topic in (FLIGHTS, WEATHER, DELAYS):
            wanted = published(expected, topic)
            found = {p: table.slice(0, wanted[p].num_rows) for p, table in published(warehouse, topic).items()}
            wrong += [] if equal_bytes(found, wanted) else [topic]
        return wrong + differences(Cluster({"bootstrap.servers": _BROKER}), _REGISTRY, published(expected))


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
