"""The demo as the stack runs it: topics sent to Kafka, archived by Airflow, and the answer published there in Avro."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.demo import DELAYS, FLIGHTS, WEATHER
from hindstream.demo.archives import prepare_topics
from hindstream.demo.in_kafka import published_job
from hindstream.demo.run import MONTH_ENDS_MS
from spark_jobs.kafka.registry import SchemaRegistry
from statelib.commits.archives import open_archive
from statelib.storage import Storage
from tests.conftest import ROOT
from tests.demo.replay import equal_bytes, published, replay

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.broker import Broker

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]


def held(warehouse: Storage, topic: str) -> dict[int, pa.Table]:
    archive = open_archive(warehouse, topic)
    return {p: archive.reader(p).read_all().combine_chunks() for p in range(archive.partitions)}


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
    for topic in (FLIGHTS, WEATHER):
        assert equal_bytes(held(warehouse, topic), held(expected, topic))
    assert equal_bytes(published(warehouse), published(expected))

    (sink,) = published_job(SchemaRegistry(schema_registry)).kafka_sinks
    records = broker.cluster.read(DELAYS)
    answer = held(expected, DELAYS)
    assert len(records) == sum(table.num_rows for table in answer.values())
    for partition, table in answer.items():
        of_partition = [record for record in records if record.partition == partition]
        for serde, name in ((sink.key, "key"), (sink.value, "value")):
            read = serde.deserialize(pa.array([getattr(record, name) for record in of_partition], pa.binary()))
            assert read.to_pylist() == table[name].to_pylist()
