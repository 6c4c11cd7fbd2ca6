"""``hindstream archive`` as a user calls it, with the connector that Spark fetches."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.kafka.cluster import Message

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.cluster import Cluster

TOPICS = """
import pyarrow as pa
from statelib import KafkaTopic
from statelib.serdes import FixedWidthSerde, StrictSerde, StringSerde

class Shouted(StringSerde):
    '''A serde of the user's own, which no worker can import.'''

    def deserialize_lenient(self, data):
        return StringSerde.deserialize_lenient(self, pa.array([v and v.upper() for v in data.to_pylist()], pa.binary()))

topics = [
    KafkaTopic("{one}", key=FixedWidthSerde(pa.int32()), value=Shouted()),
    KafkaTopic("{other}", archive="renamed"),
]
"""


@pytest.mark.slow
@pytest.mark.spark
def test_topics_are_archived(cluster: Cluster, tmp_path: Path, unique: str) -> None:
    one, other = (cluster.create_topic(f"{unique}-{n}", partitions=2) for n in (1, 2))
    cluster.produce(one, [Message(n.to_bytes(4), b"value", 1 + n) for n in range(2_000)])
    cluster.produce(other, [Message(b"\x00", b"\xff", 7)])
    file = tmp_path / "topics.py"
    file.write_text(TOPICS.format(one=one, other=other))
    command = [sys.executable, "-m", "hindstream", "archive", str(file), "--warehouse", "warehouse"]
    servers = f"kafka.bootstrap.servers={cluster.settings['bootstrap.servers']}"
    done = run([*command, "--set", servers], tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if unique in line}
    assert rows[one] == ["2", "2,000", "2,000", "0", "0", "0"]
    assert rows[other] == ["as", "renamed", "2", "1", "1", "0", "0", "0"]
    quickly = ["--set", "kafka.socket.timeout.ms=2000"]
    missing = run([*command, "--set", "kafka.bootstrap.servers=127.0.0.1:1", *quickly], tmp_path)
    assert missing.returncode == 75, missing.stderr
    assert "Kafka did not answer" in missing.stderr


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True)
