from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindstream.demo import FLIGHTS, WEATHER, data
from hindstream.demo.archives import prepare_topics
from hindstream.demo.job import FASTEST_WIND_MPH, HISTORY_RETENTION, job
from statelib.commits.archives import open_archive
from statelib.storage import Storage

pytestmark = pytest.mark.thorough

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    return data.flights()


@pytest.fixture(scope="module")
def weather() -> pa.Table:
    return data.weather()


def field(records: pa.Table, name: str):
    return pc.struct_field(records["value"].combine_chunks(), name)


def times(records: pa.Table) -> np.ndarray:
    return records["timestamp"].cast(pa.int64()).to_numpy()


def test_every_flight_is_there_and_two_percent_come_twice(flights) -> None:
    ids = field(flights, "flight_id")
    counts = pc.value_counts(ids).field("counts").to_numpy()
    assert len(counts) == 336_776
    assert (counts == 2).sum() == round(0.02 * 336_776)
    assert counts.max() == 2


def test_first_deliveries_are_in_order_of_departure(flights) -> None:
    ids = field(flights, "flight_id").to_numpy(zero_copy_only=False)
    _, first = np.unique(ids, return_index=True)
    rows = np.sort(first)
    delays = field(flights, "dep_delay").fill_null(0).to_numpy(zero_copy_only=False)
    departed = times(flights) + delays * MINUTE_MS
    assert (np.diff(departed[rows]) >= 0).all()
    assert (np.diff(times(flights)[rows]) < 0).sum() > 50_000  # the disorder is real


def test_a_redelivery_is_the_same_record_at_most_six_hours_later(flights) -> None:
    ids = field(flights, "flight_id").to_numpy(zero_copy_only=False)
    delays = field(flights, "dep_delay").fill_null(0).to_numpy(zero_copy_only=False)
    departed = times(flights) + delays * MINUTE_MS
    order = np.argsort(ids, kind="stable")
    pairs = np.flatnonzero(ids[order][:-1] == ids[order][1:])
    first, again = order[pairs], order[pairs + 1]
    assert flights["value"].combine_chunks().take(pa.array(first)) == flights["value"].combine_chunks().take(
        pa.array(again)
    )
    # What was delivered right before it had left by then.
    lag = np.maximum.accumulate(departed)[again - 1] - departed[first]
    assert lag.min() >= 0
    assert 5 * HOUR_MS < lag.max() <= data.LONGEST_REDELIVERY_MS


def test_the_topics_are_the_same_every_time(flights, weather) -> None:
    assert data.flights().equals(flights)
    assert data.weather().equals(weather)


def test_every_airport_has_one_weather_record_an_hour_in_order(weather) -> None:
    for airport in ("EWR", "JFK", "LGA"):
        mine = times(weather.filter(pc.equal(weather["key"], airport)))
        assert (np.diff(mine) == HOUR_MS).all()
        assert mine[-1] == 1_388_552_400_000 - HOUR_MS  # 2014-01-01T05:00Z
    assert weather.num_rows - weather["value"].null_count == 26_115


def test_the_impossible_wind_is_in_the_data(weather) -> None:
    wind = field(weather, "wind_speed").drop_null().to_numpy()
    assert (wind > FASTEST_WIND_MPH).sum() == 1


def test_history_reaches_back_further_than_any_delay(flights) -> None:
    longest = pc.max(field(flights, "dep_delay")).as_py() * MINUTE_MS + data.LONGEST_REDELIVERY_MS
    assert longest < HISTORY_RETENTION.total_seconds() * 1000


def test_topics_are_archived_once(tmp_path, flights) -> None:
    warehouse = Storage(str(tmp_path))
    said: list[str] = []
    assert prepare_topics(warehouse, announce=said.append) == 2
    assert prepare_topics(warehouse, announce=said.append) == 0
    assert len(said) == 2
    archives = {topic: open_archive(warehouse, topic) for topic in (FLIGHTS, WEATHER)}
    assert archives[FLIGHTS].rows == flights.num_rows
    for archive in archives.values():
        keys = {p: set(archive.reader(p, columns=["key"]).read_all()["key"].to_pylist()) for p in range(4)}
        assert keys == {0: {"LGA"}, 1: {"JFK"}, 2: set(), 3: {"EWR"}}


def test_the_job_needs_no_repartition() -> None:
    topology = job().topology
    assert len(topology.sub_topologies) == 1
    assert topology.source_topics == (WEATHER, FLIGHTS)
