"""The topics as files for peers in Java: `benchmarks.contestants.topic_file`, a partition each.

A key is an int64. A value is its fields in order: integers and times (milliseconds) as int64, strings with their length
(int32) before them; all big-endian.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.contestants import topic_file
from benchmarks.contestants.topic_file import Cells, Records
from benchmarks.nexmark.dataset import Dataset
from statelib.commits import topic_path

_BLOCK_RECORDS = 1 << 14


def folder_of(dataset: Dataset) -> Path:
    """The folder of the files: ``bid-0`` and so on."""
    return dataset.folder / "rows"


def write(dataset: Dataset) -> None:
    """Writes the files of a dataset, once."""
    if folder_of(dataset).exists():
        return
    folder_of(dataset).mkdir()
    for topic in dataset.records:
        for partition in range(dataset.parameters.partitions):
            files = sorted((dataset.folder / topic_path(topic) / f"partition={partition}").glob("*.parquet"))
            topic_file.write(folder_of(dataset) / f"{topic}-{partition}", _blocks(files))


def _blocks(files: list[Path]) -> Iterator[Records]:
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(_BLOCK_RECORDS, columns=["key", "value", "timestamp"]):
            timestamp = np.asarray(_milliseconds(batch["timestamp"]))
            key = topic_file.big_endian(batch["key"], ">i8")
            yield Records(timestamp, Cells.of(key), Cells.of(_value(batch["value"])))


def _value(value: pa.Array) -> pa.Array:
    fields = [value.field(n) for n in range(value.type.num_fields)] if pa.types.is_struct(value.type) else [value]
    return topic_file.joined(*(part for field in fields for part in _parts(field)))


def _parts(field: pa.Array) -> list[pa.Array]:
    if pa.types.is_string(field.type):
        return [topic_file.big_endian(pc.binary_length(field), ">i4"), field]
    numbers = _milliseconds(field) if pa.types.is_timestamp(field.type) else field
    return [topic_file.big_endian(numbers, ">i8")]


def _milliseconds(times: pa.Array) -> pa.Array:
    return times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
