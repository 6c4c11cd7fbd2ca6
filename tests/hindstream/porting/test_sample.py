"""Which records are taken, and in which order."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from hindstream.porting.sample import Wanted, read_sample
from statelib import Consumed, StreamsBuilder
from statelib.errors.kinds import InputError
from statelib.records.key_sample import KeySample
from tests.hindstream.porting.conftest import archive_topic, records
from tests.hindstream.porting.ports import EXTRACTED


def topology(consumed: Consumed | None = None):
    builder = StreamsBuilder("job")
    builder.stream("weather").to("w")
    builder.stream("flights", consumed or Consumed()).to("f")
    return builder.build()


def test_all_come_by_order_time_and_none_is_later_than_in_its_partition(warehouse) -> None:
    sample = read_sample(topology(), warehouse, Wanted())
    assert len(sample) == 180
    assert not sample.left_out
    assert (np.diff(sample.order_time) >= 0).all()
    for number in range(2):
        times = sample.tables[number]["timestamp"].cast("int64").to_numpy()
        of_topic = sample.order_time[sample.topic == number]
        assert (np.maximum.accumulate(times) == of_topic).all()
        for partition in range(2):
            mine = sample.tables[number]["partition"].to_numpy() == partition
            assert (np.diff(sample.tables[number]["offset"].to_numpy()[mine]) == 1).all()
            assert (np.maximum.accumulate(times[mine]) == of_topic[mine]).all()
    assert sample.at(0).keys() == {"topic", "partition", "offset"}


def test_of_equal_times_the_topic_that_is_declared_first_comes_first(tmp_path) -> None:
    from statelib.storage import Storage  # noqa: PLC0415

    storage = Storage(str(tmp_path))
    for topic in ("flights", "weather"):
        archive_topic(storage, topic, [("a", n, n // 2) for n in range(6)], partitions=1)
    sample = read_sample(topology(), storage, Wanted())
    assert [(sample.topics[t], int(time)) for t, time in zip(sample.topic, sample.order_time, strict=True)] == [
        (topic, time) for time in range(3) for topic in ("weather", "weather", "flights", "flights")
    ]


def test_only_some_are_wanted(warehouse) -> None:
    whole = read_sample(topology(), warehouse, Wanted())
    first = read_sample(topology(), warehouse, Wanted(records=50))
    assert first.left_out
    assert first.order_time.tolist() == whole.order_time[:50].tolist()
    middle = int(whole.order_time[90])
    before, behind = (
        read_sample(topology(), warehouse, wanted) for wanted in (Wanted(until_ms=middle), Wanted(since_ms=middle))
    )
    assert [*before.order_time.tolist(), *behind.order_time.tolist()] == whole.order_time.tolist()
    some = read_sample(topology(), warehouse, Wanted(keys=KeySample(0.4)))
    keys = {key for table in some.tables for key in table["key"].to_pylist()}
    assert 0 < len(keys) < 7
    everything = [key for table in whole.tables for key in table["key"].to_pylist()]
    assert len(some) == sum(key in keys for key in everything)
    with pytest.raises(InputError, match="the sources have no such record"):
        read_sample(topology(), warehouse, Wanted(since_ms=10**12))


def test_records_lie_by_the_times_that_the_job_extracts(warehouse) -> None:
    sample = read_sample(topology(EXTRACTED), warehouse, Wanted())
    flights = sample.tables[1]
    times = flights["timestamp"].cast("int64").to_numpy() - 5 * flights["value"].to_numpy()
    assert (np.maximum.accumulate(times) == sample.order_time[sample.topic == 1]).all()


def test_a_global_table_comes_whole_before_everything_else(tmp_path) -> None:
    from statelib.storage import Storage  # noqa: PLC0415

    storage = Storage(str(tmp_path))
    for rest, topic in enumerate(("flights", "places")):
        archive_topic(storage, topic, records(Random(rest), 40, rest))
    builder = StreamsBuilder("job")
    places = builder.global_table("places")
    builder.stream("flights").join(places, "key", "right").to("out")
    sample = read_sample(builder.build(), storage, Wanted(records=10, keys=KeySample(0.9)))
    names = [sample.topics[number] for number in sample.topic]
    assert names == ["places"] * 40 + ["flights"] * 10
