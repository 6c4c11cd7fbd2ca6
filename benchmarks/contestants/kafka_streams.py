"""Kafka Streams 4.3.0, its engine without a broker: a test driver for each partition."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.contestants import topic_file
from benchmarks.contestants.contestant import Contestant
from benchmarks.contestants.topic_file import Cells, Records
from benchmarks.dataset import CLICKS, RATES
from benchmarks.works import WORKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.dataset import Dataset
    from benchmarks.works import Work

PROJECT = Path(__file__).parents[1] / "peers" / "kafka-streams"
_JVM = ("-XX:+UseSerialGC", "-Xmx4g", "-Xmn1g")
"""Of the collectors the one that costs the least CPU time."""
_THREADS = 2
_BLOCK_RECORDS = 1 << 14


class KafkaStreams(Contestant):
    """One task a partition, two at a time; records are taken up in the order in which Hindstream takes them up."""

    name = "kafka-streams"
    title = "Kafka Streams, engine only"
    settings = (
        "4.3.0; a test driver a partition, two threads, JVM with serial GC and 4 GiB; commits every 10,000 records: as "
        "the driver comes, after each, it needs half as much again; RocksDB stores with changelog records, Bloom "
        "filters for memtables, 256 MiB of caches; values in a binary form; deduplication is a processor of ours "
        "(KIP-655), with point look-ups in a window store"
    )
    is_exact = True
    agrees = tuple(WORKS)

    def build(self) -> None:
        """With Maven, into ``target`` beside the sources."""
        if not (Path(os.environ.get("JAVA_HOME", "")) / "bin" / "javac").exists() or not shutil.which("mvn"):
            raise SystemExit(
                "Kafka Streams needs a JDK 17 or 21 and Maven. On Debian and Ubuntu: apt-get install "
                "openjdk-17-jdk-headless maven; a JDK elsewhere: JAVA_HOME=/path/to/jdk ./dev bench"
            )
        subprocess.run(["mvn", "-q", "package"], cwd=PROJECT, check=True)

    def prepare(self, dataset: Dataset) -> None:
        """Each partition in a file."""
        folder = inputs(dataset)
        if folder.exists():
            return
        folder.mkdir()
        for topic in (CLICKS, RATES):
            for partition in range(dataset.parameters.partitions):
                topic_file.write(folder / f"{topic}-{partition}", _blocks(dataset, topic, partition))

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """See ``Engine.java``."""
        arguments = (inputs(dataset), output, dataset.parameters.partitions, _THREADS)
        return java("Engine", work.name, *arguments)

    def answer(self, work: Work, output: Path) -> pa.Table:
        """From the files of records that the Java side writes."""
        parts = [decoded(work, topic_file.read(file)) for file in sorted(output.glob("answer-*"))]
        return pa.concat_tables([work.answer.empty_table(), *parts])


def inputs(dataset: Dataset) -> Path:
    """The folder of the files that Java reads."""
    return dataset.folder / "kafka-streams"


def java(main: str, *arguments: object) -> list[str]:
    """The command that runs a main class of the project."""
    target = PROJECT / "target"
    return [
        str(Path(os.environ["JAVA_HOME"]) / "bin" / "java"),
        "-cp",
        f"{target / 'classes'}{os.pathsep}{target / 'lib'}/*",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        *_JVM,
        f"hindstream.benchmarks.{main}",
        *map(str, arguments),
    ]


def decoded(work: Work, records: Records) -> pa.Table:
    """The columns of ``work`` from records of its answer topic."""
    keys, values = records.keys, records.values
    begins, ends = values.begins, values.ends
    columns = {"timestamp": pa.array(records.timestamp), "key": keys.text(keys.begins, keys.ends)}
    if "window_start" in work.answer.names:
        key_ends = keys.ends - 8
        columns |= {"key": keys.text(keys.begins, key_ends), "window_start": keys.int64(key_ends)}
        columns |= {"clicks": values.int64(begins), work.totals[-1]: values.int64(begins + 8)}
    elif "currency" in work.answer.names:
        id_begins = begins + 12
        id_ends = id_begins + np.asarray(values.int32(begins + 8))
        columns |= {"amount": values.int64(begins), "id": values.text(id_begins, id_ends)}
        columns |= {"currency": values.text(id_ends, ends)}
    else:
        columns |= {"cost": values.int64(begins), "id": values.text(begins + 8, ends)}
    return pa.table({name: columns[name] for name in work.answer.names}).cast(work.answer)


def _blocks(dataset: Dataset, topic: str, partition: int) -> Iterator[Records]:
    for file in dataset.files(topic, partition):
        for batch in pq.ParquetFile(file).iter_batches(_BLOCK_RECORDS, columns=["key", "value", "timestamp"]):
            timestamp = np.asarray(batch["timestamp"].cast(pa.int64()))
            yield Records(timestamp, Cells.of(batch["key"]), Cells.of(_value(topic, batch["value"])))


def _value(topic: str, value: pa.StructArray) -> pa.Array:
    if topic == RATES:
        return topic_file.big_endian(value.field("rate"), ">i8")
    id_ = value.field("id")
    return topic_file.joined(
        topic_file.big_endian(value.field("amount"), ">i8"),
        topic_file.big_endian(pc.binary_length(id_), ">i4"),
        id_,
        value.field("currency"),
    )
