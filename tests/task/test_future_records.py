"""Records from the future: they hold nothing back and move no clock, however the input is cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statelib import (
    Consumed,
    Materialized,
    Stores,
    StreamsBuilder,
    TimeWindows,
    UsePartitionTimeOnInvalidTimestamp,
)
from statelib.commits.layout import quarantine_topic
from statelib.commits.run.plan import NothingToDo
from statelib.documents.plans import Plan
from statelib.settings.max_future import MaxFuture
from statelib.topics.future_records import FutureRecord
from statelib.topics.partitioner import partition_for
from tests.surface.records import PARTITIONS, Row
from tests.task.pipeline import Pipeline
from tests.task.test_invariance import INPUT, TIMES, Records, assert_same, replayed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib.topology import Topology

HOUR, DAY = 3_600_000, 86_400_000
START = 19_000 * DAY
IN_2100 = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)
READING = (pa.string(), pa.int64())

Rows = list[tuple[str, Any, int | None]]


def hourly(days: int = 10, *, at: int = 100) -> Rows:
    """Readings of every hour, one of them stamped 2100."""
    rows: Rows = [("a", n, START + n * HOUR) for n in range(24 * days)]
    return [*rows[:at], ("a", -1, IN_2100), *rows[at:]]


def daily_counts() -> Topology:
    builder = StreamsBuilder("counts")
    windows = TimeWindows.of_size_with_no_grace(timedelta(days=1))
    builder.stream("readings").group_by_key().windowed_by(windows).count().to_stream().to("counts")
    return builder.build()


def pipeline(directory: Path, rows: Rows, max_future: MaxFuture | None, **more: Any) -> Pipeline:
    made = Pipeline(directory, daily_counts(), max_future=max_future, **more)
    made.archive("readings", rows, READING, archived_at_ms=START + 10 * DAY)
    return made


def counts(pipeline: Pipeline) -> dict[int, int]:
    """The last count of each day since `START`."""
    return {(row[2]["window_start"].timestamp() * 1000 - START) // DAY: row[3] for row in pipeline.output("counts")}


BOUNDS = [MaxFuture(span_ms=DAY), MaxFuture(span_ms=0), MaxFuture(last_ms=START + 10 * DAY)]


@pytest.mark.parametrize(
    ("max_future", "policy", "days"),
    [
        (BOUNDS[0], "quarantine", 1),
        (BOUNDS[0], "partition-time", 1),
        (BOUNDS[1], "quarantine", 10),
        (BOUNDS[2], "partition-time", 10),
        (BOUNDS[2], "quarantine", 5),
    ],
    ids=str,
)
def test_all_readings_of_ten_days_are_counted(tmp_path: Path, max_future: MaxFuture, policy: str, days: int) -> None:
    job = pipeline(tmp_path, hourly(), max_future, on_future_record=policy)
    for day in range(days, 11, days):
        assert not isinstance(job.run(START + day * DAY), NothingToDo)
    job.run()
    expected = dict.fromkeys(range(10), 24) | ({4: 25} if policy == "partition-time" else {})
    assert counts(job) == expected
    if policy == "quarantine":
        ((_, _, _, value, timestamp),) = job.output(quarantine_topic("job"))
        assert (value["topic"], value["partition"], value["offset"], value["timestamp"]) == (
            "readings",
            0,
            100,
            IN_2100,
        )
        assert "timestamp from the future: 2100-01-01T00:00:00.000Z; later than" in value["reason"]
        assert timestamp == IN_2100


def test_without_the_setting_every_slice_says_what_holds_it_back(tmp_path: Path) -> None:
    job = pipeline(tmp_path, hourly(), None)
    record = FutureRecord(topic="readings", partition=0, offset=100, timestamp_ms=IN_2100, in_slice=False)
    for day in range(1, 11):
        planned = job.plan(START + day * DAY)
        assert planned.future_records == (() if day < 5 else (record,))
        assert isinstance(planned, NothingToDo) == (day > 5)
        if isinstance(planned, NothingToDo):
            assert "readings, partition 0, offset 100 is stamped 2100-01-01T00:00:00.000Z" in str(planned)
        job.run(START + day * DAY)
    whole = job.plan()
    assert isinstance(whole, Plan)
    assert whole.future_records == (record.model_copy(update={"in_slice": True}),)
    job.run()
    assert counts(job) == {0: 24, 1: 24, 2: 24, 3: 24, 4: 4, (IN_2100 - START) // DAY: 1}, "as Kafka Streams does"
    passed = job.plan(START + 11 * DAY)
    assert "readings/0 has come to 2100-01-01T00:00:00.000Z" in str(passed)


@pytest.mark.parametrize("late", [HOUR, DAY - 1])
def test_records_that_are_merely_out_of_order_are_not_told(tmp_path: Path, late: int) -> None:
    rows: Rows = [("a", 0, START), ("a", 1, START + DAY + late), ("a", 2, START + DAY - 1), ("a", 3, START + 2 * DAY)]
    job = pipeline(tmp_path, rows, None)
    assert job.plan(START + DAY).future_records == ()
    job.run(START + DAY)
    assert job.plan(START + 2 * DAY).future_records == ()


def test_a_gap_is_not_told(tmp_path: Path) -> None:
    job = pipeline(tmp_path, [("a", 0, START), ("a", 1, START + 9 * DAY)], None)
    job.run(START + DAY)
    assert job.plan(START + 2 * DAY).future_records == ()


def test_the_first_record_of_all_has_no_time_to_take(tmp_path: Path) -> None:
    job = pipeline(tmp_path, hourly(1, at=0), MaxFuture(span_ms=DAY), on_future_record="partition-time")
    job.run()
    assert counts(job) == {0: 24}
    assert [row[3]["offset"] for row in job.output(quarantine_topic("job"))] == [0]


def test_an_extracted_time_is_judged_where_there_is_an_extractor(tmp_path: Path) -> None:
    builder = StreamsBuilder("extracted")
    windows = TimeWindows.of_size_with_no_grace(timedelta(days=1))
    readings = builder.stream("readings", Consumed().with_timestamp_extractor("value"))
    readings.group_by_key().windowed_by(windows).count().to_stream().to("counts")
    job = Pipeline(tmp_path, builder.build(), max_future=MaxFuture(span_ms=DAY))
    rows: Rows = [("a", START + n * HOUR, START + n * HOUR) for n in range(48)]
    rows[10:10] = [("a", IN_2100, START + 10 * HOUR)]  # which the log knows nothing of
    rows[20:20] = [("a", START + 19 * HOUR, IN_2100)]  # no cut, but a good time
    job.archive("readings", rows, READING, archived_at_ms=START + 3 * DAY)
    for day in (1, 2):
        job.run(START + day * DAY)
    assert counts(job) == {0: 25, 1: 24}
    assert [row[3]["offset"] for row in job.output(quarantine_topic("job"))] == [10]


@pytest.mark.parametrize("batch_records", [1, 100])
def test_an_invalid_time_takes_no_time_from_the_future(tmp_path: Path, batch_records: int) -> None:
    builder = StreamsBuilder("invalid")
    extractor = UsePartitionTimeOnInvalidTimestamp()
    builder.stream("readings", Consumed().with_timestamp_extractor(extractor)).to("counts")
    job = Pipeline(tmp_path, builder.build(), max_future=MaxFuture(last_ms=20), batch_records=batch_records)
    job.archive("readings", [("a", time, time) for time in (10, IN_2100, -1, 12)], READING)
    job.run()
    assert [row[3:] for row in job.output("counts")] == [(10, 10), (-1, 10), (12, 12)]


def test_a_versioned_table_forgets_nothing(tmp_path: Path) -> None:
    builder = StreamsBuilder("versions")
    store = Stores.persistent_versioned_key_value_store("latest", timedelta(days=1))
    table = builder.table("readings", Materialized.as_(store))
    table.to_stream().to("counts")
    job = Pipeline(tmp_path, builder.build(), max_future=MaxFuture(span_ms=DAY), on_future_record="partition-time")
    job.archive("readings", [("a", 1, START), ("b", 2, IN_2100), ("b", 3, START)], READING, archived_at_ms=START)
    job.run()
    assert [row[2:] for row in job.output("counts")] == [("a", 1, START), ("b", 2, START), ("b", 3, START)]


def set_in_the_future(records: Records, last: int) -> Records:
    """Some with a key are; those without one stay, as which partition each gets depends on how many come before."""
    return {
        topic: [row if n % 7 or row[0] is None else (row[0], row[1], last + 1 + (n % 3) * IN_2100) for n, row in rows]
        for topic, rows in ((topic, list(enumerate(rows))) for topic, rows in records.items())
    }


def as_if_stamped_in_time(rows: Sequence[Row], last: int) -> list[Row]:
    """Each record from the future has the largest time so far of its partition; one that has none is not there."""
    partitions = partition_for(pa.array([key for key, _, _ in rows], pa.string()), PARTITIONS).tolist()
    times: dict[int, int] = {}
    kept: list[Row] = []
    for (key, value, time), partition in zip(rows, partitions, strict=True):
        if time > last and partition not in times:
            continue
        given = times[partition] if time > last else time
        times[partition] = max(times.get(partition, given), given)
        kept.append((key, value, given))
    return kept


@pytest.mark.long
@pytest.mark.thorough
def test_with_the_partitions_time_every_operator_answers_as_if_they_had_it(tmp_path: Path) -> None:
    """The surface: joins, tables, windows, suppress, deduplication, calls by stream time, behind repartitions too.

    The bytes of one slice are those of two.
    """
    last = max(TIMES)
    future = set_in_the_future(INPUT, last)
    more: dict[str, Any] = {"max_future": MaxFuture(last_ms=last), "on_future_record": "partition-time"}
    cuts = [TIMES[len(TIMES) // 2]]
    whole = replayed(tmp_path / "whole", [], future, **more)
    assert_same(replayed(tmp_path / "sliced", cuts, future, batch_records=5, **more), whole)
    in_time = {topic: as_if_stamped_in_time(rows, last) for topic, rows in future.items()}
    assert replayed(tmp_path / "in-time", [], in_time)[0] == whole[0]


@pytest.mark.long
def test_set_apart_they_move_no_operator(tmp_path: Path) -> None:
    last = max(TIMES)
    future = set_in_the_future(INPUT, last)
    without = {topic: [row for row in rows if row[2] <= last] for topic, rows in future.items()}
    published, _ = replayed(tmp_path / "with", [TIMES[len(TIMES) // 2]], future, max_future=MaxFuture(last_ms=last))
    assert replayed(tmp_path / "without", [], without)[0] == published


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """Timestamps of some loads, and cuts."""
    times = st.integers(0, 20) | st.sampled_from([40, 10**9, IN_2100])
    loads = draw(st.lists(st.lists(times, min_size=1, max_size=12), min_size=1, max_size=3))
    return loads, sorted(draw(st.lists(st.integers(1, 45), max_size=4)))


@pytest.mark.thorough
@pytest.mark.parametrize("policy", ["quarantine", "partition-time"])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams(), st.sampled_from([MaxFuture(span_ms=5), MaxFuture(last_ms=20)]))
def test_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory,
    policy: str,
    drawn: tuple[list[list[int]], list[int]],
    max_future: MaxFuture,
) -> None:
    """Files of several loads, each with an ingestion time of its own."""
    loads, cuts = drawn
    results = []
    for ends in ([], cuts):
        job = Pipeline(tmp_path_factory.mktemp("job"), daily_counts(), max_future=max_future, on_future_record=policy)
        for number, times in enumerate(loads):
            rows: Rows = [("a", n, time) for n, time in enumerate(times)]
            job.archive("readings", rows, READING, archived_at_ms=10 * number + 10)
        for end in [*ends, None]:
            job.run(end)
        results.append((job.output_if_present("counts"), job.output_if_present(quarantine_topic("job"))))
    assert results[0] == results[1]
