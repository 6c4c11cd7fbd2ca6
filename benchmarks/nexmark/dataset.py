"""The topics of Nexmark in a folder: ``person``, ``auction``, ``bid`` and the bounded ``side_input`` of q13.

Each is a topic archive. Its Parquet files, with the columns ``partition``, ``offset``, ``timestamp``, ``key`` and
``value``, are what the peers read too. Persons and auctions are keyed by their id, bids by their auction, so that a bid
meets its auction without a repartition.

::

    python -m benchmarks.nexmark.dataset warehouse --events 1000000
"""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.nexmark.events import START_MS, Parameters
from benchmarks.nexmark.generator import AUCTION, BID, PERSON, TIME, Generator
from statelib.commits import topic_path
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema

SIDE_INPUT_ROWS = 10_000
"""``q13`` looks up ``auction mod 10,000``."""


@dataclass(frozen=True)
class Dataset:
    """Generated topics.

    Attributes:
        folder: A warehouse: ``topics/bid/partition=0/...``.
        parameters: What they were made with.
        records: Of each topic.
    """

    folder: Path
    parameters: Parameters
    records: dict[str, int]

    @classmethod
    def generate(cls, folder: Path, parameters: Parameters) -> Dataset:
        """Archives the topics in a new folder."""
        generator = Generator(parameters)
        topics = {
            "person": (PERSON, generator.persons()),
            "auction": (AUCTION, generator.auctions()),
            "bid": (BID, generator.bids()),
            "side_input": (pa.string(), iter([_side_input()])),
        }
        records = {
            name: _archive(Storage(str(folder)), name, value, batches, parameters.partitions)
            for name, (value, batches) in topics.items()
        }
        made = cls(folder, parameters, records)
        described = {"parameters": asdict(parameters), "records": records}
        (folder / "dataset.json").write_text(json.dumps(described), encoding="utf-8")
        return made

    @classmethod
    def open(cls, folder: Path) -> Dataset:
        """What `generate` has made."""
        described = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        return cls(folder, Parameters(**described["parameters"]), described["records"])


def _side_input() -> pa.RecordBatch:
    numbers = np.arange(SIDE_INPUT_ROWS)
    times = pa.array(np.full(SIDE_INPUT_ROWS, START_MS)).cast(TIME)
    columns = [pa.array(numbers), pa.array(numbers).cast(pa.string()), times]
    return pa.RecordBatch.from_arrays(columns, ["key", "value", "timestamp"])


def _archive(
    warehouse: Storage, topic: str, value: pa.DataType, batches: Iterator[pa.RecordBatch], partitions: int
) -> int:
    """Archives a topic; gives the number of its records."""
    counts = []

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            counts.append(batch.num_rows)
            yield batch

    schema = topic_schema(pa.int64(), value)
    archive = TopicArchive.create(warehouse.uri(topic_path(topic)), schema, partitions, topic=topic)
    append_records(archive, counted(), attempt=uuid.uuid4().hex[:8], app_id="nexmark", app_version=1)
    return sum(counts)


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """An option for each of the generator's parameters."""
    for field in fields(Parameters):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)


def main() -> None:
    """Archives the topics in a folder, for ``hindstream run examples/nexmark/q0.py:job``."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="python -m benchmarks.nexmark.dataset", description=main.__doc__
    )
    parser.add_argument("warehouse", type=Path)
    add_parameters(parser)
    arguments = vars(parser.parse_args())
    made = Dataset.generate(arguments.pop("warehouse"), Parameters(**arguments))
    print(*(f"{records:,} records in the topic {topic}" for topic, records in made.records.items()), sep="\n")


if __name__ == "__main__":
    main()
