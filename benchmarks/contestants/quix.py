"""Quix Streams, an application over a real broker, which holds the topics as JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks.contestants.kafka_streams import KafkaStreams, java
from benchmarks.contestants.script import PEERS
from benchmarks.dataset import CLICKS, RATES
from benchmarks.works import ANSWER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.dataset import Dataset
    from benchmarks.works import Work

PROJECT = PEERS / "quix"
ENVIRONMENT = Path(sys.prefix) / "bench" / "quix"
_PYTHON = ENVIRONMENT / "bin" / "python"
_QUEUED = 50_000


class Quix(KafkaStreams):
    """Starts the broker that Kafka Streams is measured with, runs the application, reads its answer, stops both."""

    name = "quix"
    title = "Quix Streams with a broker"
    settings = (
        "3.28.1, one process, JSON, RocksDB state with changelog topics, at least once; State with a time to live, "
        "join_asof, tumbling_window with final() by the partition's time; it stops when nothing comes for ten seconds"
    )

    def build(self) -> None:
        """The broker; and an environment of its own, since Quix needs an older Kafka client than Hindstream's."""
        super().build()
        requirements, installed = PROJECT / "requirements.txt", ENVIRONMENT / "requirements.txt"
        if installed.exists() and installed.read_bytes() == requirements.read_bytes():
            return
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        pip = [_PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "-r", requirements], check=True)
        shutil.copyfile(requirements, installed)

    def prepare(self, dataset: Dataset) -> None:
        """The folder of a broker that has the topics."""
        if _folder(dataset).exists():
            return
        with _broker(_folder(dataset)) as server:
            _produce(dataset, server)

    def lay_out(self, work: Work, dataset: Dataset, output: Path) -> None:
        """A copy of the broker's folder: it writes into it."""
        shutil.copytree(_folder(dataset), output / "broker")

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """See ``works.py``."""
        return [str(_PYTHON), str(PROJECT / "works.py"), work.name, str(output), *java("Broker", output / "broker")]

    def answer(self, work: Work, output: Path) -> pa.Table:
        """From the lines that it has written."""
        file = output / "answer.jsonl"
        if not file.stat().st_size:  # no window of the small dataset has closed yet
            return work.answer.empty_table()
        rows = pa.json.read_json(file)
        names = {"window_start": "start"}
        return pa.table({name: rows[names.get(name, name)] for name in work.answer.names}).cast(work.answer)


def _folder(dataset: Dataset) -> Path:
    return dataset.folder / "quix-broker"


@contextmanager
def _broker(folder: Path) -> Iterator[str]:
    """The address of a broker that runs while the context lasts."""
    with subprocess.Popen(java("Broker", folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()  # it stops when its input ends, with the context


def _produce(dataset: Dataset, server: str) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415  (Hindstream's environment may lack it)
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    topics = [NewTopic(name, dataset.parameters.partitions, 1) for name in (CLICKS, RATES, ANSWER)]
    admin = AdminClient({"bootstrap.servers": server})
    for created in admin.create_topics(topics).values():
        created.result()
    producer = Producer({"bootstrap.servers": server, "linger.ms": 100})
    for topic in (CLICKS, RATES):
        for partition in range(dataset.parameters.partitions):
            for file in dataset.files(topic, partition):
                rows = pq.read_table(file, columns=["key", "value", "timestamp"], partitioning=None)
                times = rows["timestamp"].cast(pa.int64()).to_pylist()
                for key, value, time_ms in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), times, strict=True):
                    producer.produce(topic, json.dumps(value), key, partition, timestamp=time_ms)
                    if len(producer) >= _QUEUED:
                        producer.flush()
    producer.flush()
