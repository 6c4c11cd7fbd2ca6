"""Generated topics: clicks on advertisements, and what each campaign pays for one.

``clicks``, keyed by campaign, come out of order, some twice, some very late; ``rates`` has the price of a click, which
changes every few minutes for each campaign. Both are topic archives with the same number of partitions, so that a
click meets its rate without a repartition, in Hindstream as in a live application.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.commits import topic_path
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

CLICKS, RATES = "clicks", "rates"
START_MS = 1_700_000_000_000 - 1_700_000_000_000 % 60_000
CLICK = pa.struct([("id", pa.string()), ("amount", pa.int64()), ("currency", pa.string())])
RATE = pa.struct([("rate", pa.int64())])
_CURRENCIES = pa.array(["EUR", "USD", "GBP", "JPY", "CHF"])
_BATCH = 1 << 19
_TIME = pa.timestamp("ms", "UTC")


@dataclass(frozen=True)
class Parameters:
    """What is generated.

    Attributes:
        records: Of ``clicks``, redelivered ones included.
        campaigns: Number of keys; the n-th busiest has a share of about ``n ** -zipf``.
        zipf: Skew of the keys.
        partitions: Of both topics.
        records_per_second: Of event time.
        mean_delay_seconds: From click to arrival; delays are exponential, cut off at nine minutes.
        very_late: Share of the records that arrive 10 to 60 minutes late instead.
        redelivered: Share of the records that come twice, up to 20 minutes after the first time.
        rate_minutes: How often each campaign's rate changes.
        seed: Of all that is random.
    """

    records: int = 2_000_000
    campaigns: int = 5_000
    zipf: float = 1.1
    partitions: int = 4
    records_per_second: float = 200.0
    mean_delay_seconds: float = 20.0
    very_late: float = 0.001
    redelivered: float = 0.02
    rate_minutes: float = 10.0
    seed: int = 7


@dataclass(frozen=True)
class Dataset:
    """Generated topics in a folder.

    Attributes:
        folder: What the topics are in, a warehouse: ``topics/clicks/partition=0/...``.
        parameters: What they were made with.
        clicks: Number of records.
        rates: Number of records.
    """

    folder: Path
    parameters: Parameters
    clicks: int
    rates: int

    @classmethod
    def generate(cls, folder: Path, parameters: Parameters) -> Dataset:
        """Archives both topics in a new folder."""
        warehouse = Storage(str(folder))
        rates = sum(_archive(warehouse, RATES, RATE, _rates(parameters), parameters.partitions))
        clicks = sum(_archive(warehouse, CLICKS, CLICK, _clicks(parameters), parameters.partitions))
        made = cls(folder, parameters, clicks, rates)
        described = {"parameters": asdict(parameters), "clicks": clicks, "rates": rates}
        (folder / "dataset.json").write_text(json.dumps(described), encoding="utf-8")
        return made

    @classmethod
    def open(cls, folder: Path) -> Dataset:
        """What `generate` has made."""
        described = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
        return cls(folder, Parameters(**described["parameters"]), described["clicks"], described["rates"])

    def files(self, topic: str, partition: int) -> list[Path]:
        """The Parquet files of a partition, ascending by offset."""
        return sorted((self.folder / topic_path(topic) / f"partition={partition}").glob("*.parquet"))


def _clicks(parameters: Parameters) -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(parameters.seed)
    again = round(parameters.records * parameters.redelivered)
    first = parameters.records - again
    span_ms = _span_ms(parameters)
    timestamp = START_MS + np.sort(chance.integers(0, span_ms, first))
    delay = np.minimum(chance.exponential(parameters.mean_delay_seconds * 1000, first), 9 * 60_000).astype(np.int64)
    late = chance.random(first) < parameters.very_late
    delay[late] = chance.integers(10 * 60_000, 60 * 60_000, int(late.sum()))
    weights = np.arange(1, parameters.campaigns + 1, dtype=np.float64) ** -parameters.zipf
    campaign = chance.choice(parameters.campaigns, first, p=weights / weights.sum())
    # Of a click and its rate at the same time Kafka Streams takes up either first, by what it has fetched.
    changes = _first_changes(parameters, _rate_chance(parameters))[campaign]
    timestamp += (timestamp - START_MS) % _every_ms(parameters) == changes
    twice = chance.choice(first, again, replace=False)
    rows = np.concatenate([np.arange(first), twice])
    arrival = np.concatenate([timestamp + delay, (timestamp + delay)[twice] + chance.integers(1, 20 * 60_000, again)])
    rows = rows[np.argsort(arrival, kind="stable")]
    ids = chance.integers(0, 1 << 63, first).astype(np.uint64)
    amount = chance.integers(1, 100, first)
    currency = chance.integers(0, len(_CURRENCIES), first)
    names = _campaigns(parameters)
    for begin in range(0, len(rows), _BATCH):
        chosen = rows[begin : begin + _BATCH]
        fields = [_hexadecimal(ids[chosen]), pa.array(amount[chosen]), _CURRENCIES.take(pa.array(currency[chosen]))]
        value = pa.StructArray.from_arrays(fields, fields=list(CLICK))
        yield _batch(names.take(pa.array(campaign[chosen])), value, timestamp[chosen])


def _rates(parameters: Parameters) -> Iterator[pa.RecordBatch]:
    """Each campaign's first rate is known an hour before the first click."""
    chance, every_ms = _rate_chance(parameters), _every_ms(parameters)
    names, keys = _campaigns(parameters), np.arange(parameters.campaigns)
    offset = _first_changes(parameters, chance)
    yield _rate_batch(names, keys, np.full(parameters.campaigns, START_MS - 3_600_000), chance)
    for begin in range(0, _span_ms(parameters), every_ms):
        timestamp = START_MS + begin + offset
        order = np.argsort(timestamp, kind="stable")
        yield _rate_batch(names, keys[order], timestamp[order], chance)


def _rate_chance(parameters: Parameters) -> np.random.Generator:
    return np.random.default_rng(parameters.seed + 1)


def _first_changes(parameters: Parameters, chance: np.random.Generator) -> NDArray[np.int64]:
    """int64, how long after the first click the rate of each campaign changes first, ms; the first that is drawn."""
    return chance.integers(0, _every_ms(parameters), parameters.campaigns)


def _every_ms(parameters: Parameters) -> int:
    return round(parameters.rate_minutes * 60_000)


def _rate_batch(
    names: pa.Array, keys: NDArray[np.int64], timestamp: NDArray[np.int64], chance: np.random.Generator
) -> pa.RecordBatch:
    value = pa.StructArray.from_arrays([pa.array(chance.integers(1, 1_000, len(keys)))], fields=list(RATE))
    return _batch(names.take(pa.array(keys)), value, timestamp)


def _batch(key: pa.Array, value: pa.Array, timestamp: NDArray[np.int64]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([key, value, pa.array(timestamp).cast(_TIME)], ["key", "value", "timestamp"])


def _span_ms(parameters: Parameters) -> int:
    return max(round(parameters.records / parameters.records_per_second * 1000), 1)


def _campaigns(parameters: Parameters) -> pa.Array:
    return pa.array([f"campaign-{i:05d}" for i in range(parameters.campaigns)])


def _hexadecimal(numbers: NDArray[np.uint64]) -> pa.Array:
    """16 hexadecimal digits each."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    shifts = np.arange(60, -1, -4, dtype=np.uint64)
    text = digits[((numbers[:, None] >> shifts) & np.uint64(15)).astype(np.intp)]
    offsets = np.arange(0, 16 * (len(numbers) + 1), 16, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))


def _archive(
    warehouse: Storage, topic: str, value: pa.DataType, batches: Iterator[pa.RecordBatch], partitions: int
) -> Iterator[int]:
    """Archives a topic; gives the number of records of each batch."""
    counts: list[int] = []

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            counts.append(batch.num_rows)
            yield batch

    archive = TopicArchive.create(
        warehouse.uri(topic_path(topic)), topic_schema(pa.string(), value), partitions, topic=topic
    )
    append_records(archive, counted(), attempt=uuid.uuid4().hex[:8], app_id="benchmark", app_version=1)
    yield from counts
