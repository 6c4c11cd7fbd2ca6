"""The demo as the stack runs it: topics sent to Kafka, archived by Airflow, and the answer published there in Avro."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hindstream.demo import DELAYS, FLIGHTS, WEATHER
from hindstream.demo.archives import prepare_topics
from hindstream.demo.run import MONTH_ENDS_MS
from statelib.storage import Storage
from tests.conftest import ROOT
from tests.hindstream.demo.replay import equal_bytes, published, replay
from tests.kafka.demo_in_kafka import differences

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.broker import Broker

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.long]  # each step has tests of its own


def test_from_kafka_and_back(broker: Broker, schema_registry: str, tmp_path: Path) -> None:
    expected = Storage(str(tmp_path / "expected"))
    prepare_topics(expected, announce=lambda _: None)
    replay(expected, MONTH_ENDS_MS[0], tmp_path / "state")

    environ = os.environ | {"SCHEMA_REGISTRY": schema_registry, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.kafka.demo_in_kafka", tmp_path, broker.bootstrap_servers]
    done = subprocess.run(command, env=environ, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sent, again, run = done.stdout.splitlines()
    assert (sent, again) == ("{'flights': 343512, 'weather': 26277}", "{'flights': 0, 'weather': 0}")
    assert run == "00000001-1 success"

    warehouse = Storage(str(tmp_path / "warehouse"))
    for topic in (FLIGHTS, WEATHER, DELAYS):
        assert equal_bytes(published(warehouse, topic), published(expected, topic))
    answer = published(expected)
    assert len(broker.cluster.read(DELAYS)) == sum(table.num_rows for table in answer.values())
    assert differences(broker.cluster, schema_registry, answer) == []
