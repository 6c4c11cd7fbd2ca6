"""How long a live application takes to start on a state directory that was handed over, and by a restore."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.scale.measurement import Figure, Measurement
from hindstream.kafka.handover import hand_over
from statelib import Handover, Materialized, StreamsBuilder, per_record
from statelib.commits.archives import open_archive
from statelib.commits.layout import topic_path
from statelib.settings.settings import load_settings
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.kafka.broker import Broker
from tests.kafka.cluster import Message
from tests.kafka.streams_app import StreamsApp
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hindstream.kafka.handover import HandedOver

_STRING = pa.string()
_APPLICATION = "prices"
_FIRST_MS = 1_577_836_800_000  # 2020
_AT_ONCE = 100_000
_GIB = 1 << 30
_JVM = ("-XX:TieredStopAtLevel=4", "-Xmx1g")


@dataclass
class Directory(Measurement):
    """A table of strings in a real application of Kafka Streams, beside a broker on this machine.

    Attributes:
        keys: Of the table.
        value_bytes: Of each value.
        partitions: Of the topics, and so many tasks.
        starts: On the directory; the shortest counts. The restore is measured once.
    """

    name: ClassVar[str] = "directory"

    keys: int = 2_000_000
    value_bytes: int = 500
    partitions: int = 4
    starts: int = 3

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        pipeline = _replayed(folder, self)
        (folder / "broker").mkdir()
        broker = Broker(folder / "broker")
        broker.start()
        try:
            yield from self._figures(folder, pipeline, broker)
        finally:
            broker.kill()

    def _figures(self, folder: Path, pipeline: Pipeline, broker: Broker) -> Iterator[Figure]:
        _make_topics(pipeline, broker, self.partitions)
        handed = {}
        for name, state_dir in (("without", None), ("with", folder / "state")):
            begin = time.monotonic()
            done = _handed_over(folder, broker, state_dir)
            handed[name] = time.monotonic() - begin
        size = f"{self.keys:,} keys of {self.value_bytes} B"
        yield Figure(
            f"hand-over with the directory: {size}", handed["with"], "s", details={"without, s": handed["without"]}
        )
        assert done.local_state is not None
        gib = sum(done.local_state.tasks.values()) / _GIB
        warm = min(self._start(folder, broker, "state", restored=0) for _ in range(self.starts))
        cold = self._start(folder, broker, "empty", restored=self.keys)
        details = {"by a restore, s": cold, "times as long": cold / warm, "directory, GiB": gib}
        yield Figure(f"start on the directory: {size}", warm, "s", details=details)

    def _start(self, folder: Path, broker: Broker, state_dir: str, *, restored: int) -> float:
        """Until it runs, its JVM included; what has gone is checked."""
        os.sync()  # what was written before is not written now
        begin = time.monotonic()
        with StreamsApp("plain-table", broker, _APPLICATION, folder / state_dir, jvm=_JVM) as app:
            found = sum(app.restored().values())
            seconds = time.monotonic() - begin
        if found != restored:
            raise RuntimeError(f"{found} records were restored, not {restored}")
        return seconds


def _replayed(folder: Path, size: Directory) -> Pipeline:
    builder = StreamsBuilder("job")
    prices = builder.table("prices", Materialized.as_("prices-store"))
    joiner = per_record(lambda left, right: f"{left}@{right or 'null'}", _STRING, "left", "right")
    builder.stream("orders").left_join(prices, joiner).to("priced")
    pipeline = Pipeline(folder, builder.build())
    pipeline.archive("orders", [("key", "order", _FIRST_MS)], (_STRING, _STRING), partitions=size.partitions)
    uri = pipeline.warehouse.uri(topic_path("prices"))
    archive = TopicArchive.ensure(uri, topic_schema(_STRING, _STRING), size.partitions, topic="prices")
    append_records(archive, _prices(size), attempt="a", app_id="benchmark", app_version=1)
    pipeline.run(None)
    return pipeline


def _prices(size: Directory) -> Iterator[pa.RecordBatch]:
    """A value for each key: letters at random, which nothing compresses by much."""
    chance = np.random.default_rng(7)
    for first in range(0, size.keys, _AT_ONCE):
        count = min(_AT_ONCE, size.keys - first)
        letters = chance.integers(97, 123, count * size.value_bytes, dtype=np.uint8)
        offsets = np.arange(0, (count + 1) * size.value_bytes, size.value_bytes, dtype=np.int32)
        numbers = chance.permutation(np.arange(first, first + count)) * 2_654_435_761 % (1 << 32)
        columns: dict[str, Any] = {
            "key": pa.array([f"key-{number:010}" for number in numbers]),
            "value": pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters)),
            "timestamp": pa.array(_FIRST_MS + np.arange(first, first + count)).cast(pa.timestamp("ms", "UTC")),
        }
        yield pa.RecordBatch.from_pydict(columns)


def _make_topics(pipeline: Pipeline, broker: Broker, partitions: int) -> None:
    """Those of the application, as far as the job has come: what they hold has been read, and is not read again."""
    for topic in ("prices", "orders", "priced"):
        broker.cluster.create_topic(topic, partitions)
    for topic in ("prices", "orders"):
        ends = open_archive(pipeline.warehouse, topic).end_offsets()
        for partition, end in ends.items():
            broker.cluster.produce(topic, (Message(b"", b"", _FIRST_MS, partition) for _ in range(end)))


def _handed_over(folder: Path, broker: Broker, state_dir: Path | None) -> HandedOver:
    shutil.rmtree(folder / "read", ignore_errors=True)
    given = {"warehouse": str(folder / "warehouse"), "state_dir": str(folder / "read"), "kafka": broker.settings}
    handover = Handover("job", _APPLICATION, copies_only=False)
    return hand_over(handover, load_settings(given, environ={}), replace=True, state_dir=state_dir)
