"""A generated year of flights: the demo's topics at any size, out of order, with duplicates and skewed keys."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hindstream.demo import FLIGHTS, WEATHER
from statelib.commits import topic_path
from statelib.topics.append import append
from statelib.topics.archive import TopicArchive, topic_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.storage import Storage

START_MS = 1_356_998_400_000  # 2013-01-01
HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_BATCH = 250_000
_TIME = pa.timestamp("ms", "UTC")
_FLIGHT = pa.struct([
    ("flight_id", pa.string()), ("carrier", pa.string()), ("flight", pa.int32()), ("tailnum", pa.string()),
    ("dest", pa.string()), ("dep_delay", pa.int32()), ("arr_delay", pa.int32()), ("air_time", pa.int32()),
    ("distance", pa.int32()),
])  # fmt: skip
_WEATHER_FIELDS = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib")


@dataclass(frozen=True)
class Parameters:
    """What is generated.

    Attributes:
        records: Of ``flights``, redelivered ones included.
        keys: Number of airports; the n-th busiest has a share of about ``n ** -zipf``.
        zipf: Skew of the keys.
        partitions: Of both topics.
        hours: How long the topics last in event time.
        redelivered: Share of the records that come twice, up to six hours later.
        cancelled: Share of flights without a delay.
        mean_delay_minutes: Delays are exponential; what exceeds 11 hours is cut off.
        seed: Of all that is random.
    """

    records: int = 2_000_000
    keys: int = 300
    zipf: float = 1.1
    partitions: int = 8
    hours: int = 720
    redelivered: float = 0.02
    cancelled: float = 0.025
    mean_delay_minutes: float = 25.0
    seed: int = 7


def generate(warehouse: Storage, parameters: Parameters) -> int:
    """Archives both topics; returns the number of records of ``weather``."""
    _archive(warehouse, FLIGHTS, pa.string(), _FLIGHT, _flights(parameters), parameters.partitions)
    hours = list(_weather(parameters))
    _archive(warehouse, WEATHER, pa.string(), hours[0].schema.field("value").type, hours, parameters.partitions)
    return sum(batch.num_rows for batch in hours)


def _flights(parameters: Parameters) -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(parameters.seed)
    again = round(parameters.records * parameters.redelivered)
    flights = parameters.records - again
    scheduled = START_MS + np.sort(chance.integers(0, parameters.hours * 60, flights)) * _MINUTE_MS
    delay = np.minimum(chance.exponential(parameters.mean_delay_minutes, flights).astype(np.int64) - 5, 660)
    weights = np.arange(1, parameters.keys + 1, dtype=np.float64) ** -parameters.zipf
    airport = chance.choice(parameters.keys, flights, p=weights / weights.sum())
    twice = chance.choice(flights, again, replace=False)
    rows = np.concatenate([np.arange(flights), twice])
    departed = scheduled + delay * _MINUTE_MS
    delivered = np.concatenate([departed, departed[twice] + chance.integers(1_000, 6 * HOUR_MS, again)])
    rows = rows[np.lexsort((rows, delivered))]
    cancelled = chance.random(flights) < parameters.cancelled
    names = _airports(parameters)
    for first in range(0, len(rows), _BATCH):
        yield _flight_batch(rows[first : first + _BATCH], names, airport, scheduled, delay, cancelled)


def _flight_batch(
    rows: NDArray[np.int64],
    names: pa.Array,
    airport: NDArray[np.int64],
    scheduled: NDArray[np.int64],
    delay: NDArray[np.int64],
    cancelled: NDArray[np.bool_],
) -> pa.RecordBatch:
    number = pa.array(rows % 9_000).cast(pa.int32())
    late = pa.array(delay[rows].astype(np.int32), mask=cancelled[rows])
    key = names.take(pa.array(airport[rows]))
    fields = [
        pa.array([f"HS{row:09d}" for row in rows.tolist()]), pa.array(["HS"] * len(rows)), number,
        pa.array([f"N{row % 4_000:05d}" for row in rows.tolist()]),
        names.take(pa.array((airport[rows] + 1) % len(names))),
        late, late, number, number,
    ]  # fmt: skip
    value = pa.StructArray.from_arrays(fields, fields=list(_FLIGHT))
    time = pa.array(scheduled[rows]).cast(_TIME)
    return pa.RecordBatch.from_arrays([key, value, time], ["key", "value", "timestamp"])


def _weather(parameters: Parameters) -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(parameters.seed + 1)
    names = _airports(parameters)
    for first in range(0, parameters.hours, 240):
        hours = np.repeat(np.arange(first, min(first + 240, parameters.hours)), parameters.keys)
        key = names.take(pa.array(np.tile(np.arange(parameters.keys), len(hours) // parameters.keys)))
        fields = [pa.array(chance.gamma(2.0, 5.0, len(hours)).round(2)) for _ in _WEATHER_FIELDS]
        value = pa.StructArray.from_arrays(fields, list(_WEATHER_FIELDS))
        time = pa.array(START_MS + hours * HOUR_MS).cast(_TIME)
        yield pa.RecordBatch.from_arrays([key, value, time], ["key", "value", "timestamp"])


def _airports(parameters: Parameters) -> pa.Array:
    return pa.array([f"A{i:04d}" for i in range(parameters.keys)])


def _archive(
    warehouse: Storage, topic: str, key: pa.DataType, value: pa.DataType, records: object, partitions: int
) -> None:
    archive = TopicArchive.create(warehouse.uri(topic_path(topic)), topic_schema(key, value), partitions, topic=topic)
    append(archive, records, attempt=uuid.uuid4().hex[:8], app_id="benchmark", app_version=1)
