"""Kafka Streams in its DSL, its engine without a broker: a test driver for each partition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contestants import kafka_streams, topic_file
from benchmarks.contestants.topic_file import Cells
from benchmarks.nexmark.answers import ANSWERS
from benchmarks.nexmark.contestants import row_files
from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.dataset import Dataset

_THREADS = 2
_TABLES = {"q9", "q17"}
"""Whose answers are changes, of which the last of each key counts."""


class KafkaStreams(Contestant):
    """Queries whose keys stay the same: what a driver repartitions would stay in its partition."""

    name = "kafka-streams"
    title = "Kafka Streams, engine only"
    settings = (
        "4.3.0, DSL; a test driver a partition, two threads, JVM with serial GC and 4 GiB, commits every 10,000 "
        "records; RocksDB stores with changelog records, 256 MiB of caches; values in a compact binary form; every "
        "change that the caches let through is written; eight queries, of those that need no repartition"
    )
    queries = ("q0", "q2", "q9", "q13", "q14", "q17", "q20", "q22")

    def build(self) -> None:
        """With Maven."""
        kafka_streams.KafkaStreams().build()

    def prepare(self, dataset: Dataset) -> None:
        """Each partition in a file."""
        row_files.write(dataset)

    def command(self, query: str, dataset: Dataset, output: Path) -> list[str]:
        """See ``Engine.java`` and ``Nexmark.java``."""
        folder = row_files.folder_of(dataset)
        return kafka_streams.java("Engine", query, folder, output, dataset.parameters.partitions, _THREADS)

    def answer(self, query: str, output: Path) -> str:
        """From the files of records that the Java side writes."""
        types = ANSWERS[query].types()
        for file in sorted(output.glob("answer-?")):
            records = topic_file.read(file)
            columns = {"record_key": _binary(records.keys), **_columns(records.values, types)}
            count = len(records.timestamp)
            columns |= {"place": pa.array(np.arange(count)), "file": pa.repeat(file.name, count)}
            pq.write_table(pa.table(columns), output / f"{file.name}.parquet")
        shown = ", ".join(
            f"epoch_ms({name}) AS {name}" if type_.startswith("TIMESTAMP") else name for name, type_ in types.items()
        )
        last = "QUALIFY row_number() OVER (PARTITION BY file, record_key ORDER BY place DESC) = 1"
        rows = f"SELECT * FROM read_parquet('{output}/answer-*.parquet') {last if query in _TABLES else ''}"
        return f"SELECT {shown} FROM ({rows})"


def _columns(values: Cells, types: dict[str, str]) -> dict[str, pa.Array]:
    """The fields of rows, in order."""
    begins, columns = values.begins.astype(np.int64), {}
    for name, type_ in types.items():
        if type_ == "VARCHAR" or type_.startswith("DECIMAL"):
            ends = begins + 4 + np.asarray(values.int32(begins)).astype(np.int64)
            columns[name] = values.text(begins + 4, ends)
        else:
            number, ends = values.int64(begins), begins + 8
            columns[name] = pa.array(np.asarray(number).view(np.float64)) if type_ == "DOUBLE" else number
        begins = ends
    return columns


def _binary(cells: Cells) -> pa.Array:
    offsets = np.concatenate([[0], cells.ends]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(cells.ends), [None, pa.py_buffer(offsets), pa.py_buffer(cells.data)])
