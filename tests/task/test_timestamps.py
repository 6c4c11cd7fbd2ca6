"""Timestamp extractors: what becomes of records with invalid timestamps, over slices; every record is accounted for."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    ConfigurationError,
    Consumed,
    FailOnInvalidTimestamp,
    InputError,
    LogAndSkipOnInvalidTimestamp,
    StreamsBuilder,
    TimeWindows,
    UsePartitionTimeOnInvalidTimestamp,
    per_record,
)
from statelib.documents.manifests import Staged
from statelib.task.source_records import HEADERS_TYPE
from statelib.task.timestamps import LAST_TIME_MS, extracted
from statelib.topology import Source, TimestampExtractor
from tests.reference.timestamps import extract
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.operators.mappers.mapping import MapperLike
    from tests.reference.timestamps import Extractor

pytestmark = pytest.mark.thorough

VALUE = pa.struct([("at", pa.int64()), ("n", pa.int64())])
TYPES = (pa.string(), VALUE)
EXTRACTORS: dict[Extractor, TimestampExtractor] = {
    "own": TimestampExtractor("at"),
    "fail": FailOnInvalidTimestamp("at"),
    "skip": LogAndSkipOnInvalidTimestamp("at"),
    "partition-time": UsePartitionTimeOnInvalidTimestamp("at"),
}
SOURCE = "KSTREAM-SOURCE-0000000000"


def rows(*times: int | None) -> list[tuple[str, Any, int]]:
    return [("k", {"at": at, "n": n}, n) for n, at in enumerate(times)]


def pipeline(folder: Path, extractor: TimestampExtractor | MapperLike, **settings: Any) -> Pipeline:
    builder = StreamsBuilder("job")
    assert Consumed.with_(timestamp_extractor=extractor) == Consumed().with_timestamp_extractor(extractor)
    builder.stream("in", Consumed.with_(None, None, extractor)).map_values("n").to("out")
    return Pipeline(folder, builder.build(), **settings)


def accounts(staged: object) -> dict[str, int]:
    assert isinstance(staged, Staged)
    return staged.tasks[0].metrics[SOURCE].accounts


MESSY = (None, -3, 5, -1, 9, None, 7, -1)


@pytest.mark.parametrize("kind", EXTRACTORS)
@pytest.mark.parametrize("slices", [[8], [1, 1, 3, 3]])
def test_the_models_outcomes_in_slices(tmp_path: Path, kind: Extractor, slices: list[int]) -> None:
    """Partition time goes on from slice to slice; a slice of which nothing is left is a slice."""
    expected = extract(kind, MESSY)
    job = pipeline(tmp_path, EXTRACTORS[kind], on_bad_record="quarantine")
    total: dict[str, int] = {}
    waiting = rows(*MESSY)
    for count in slices:
        job.archive("in", waiting[:count], TYPES)
        waiting = waiting[count:]
        staged = job.run()  # which looks whether all is accounted for
        for account, records in accounts(staged).items():
            total[account] = total.get(account, 0) + records
        assert isinstance(staged, Staged)
        assert staged.tasks[0].metrics[SOURCE].dropped.get("invalid-timestamp", 0) == accounts(staged).get(
            "invalid-timestamp", 0
        )
    assert [(n, at) for *_, n, at in job.output("out")] == [
        (n, at) for n, at in enumerate(expected) if isinstance(at, int)
    ]
    wanted = {
        "forwarded": sum(isinstance(at, int) for at in expected),
        "invalid-timestamp": expected.count("dropped"),
        "quarantined": expected.count("bad"),
    }
    assert total == {account: records for account, records in wanted.items() if records}
    if wanted["quarantined"]:
        assert [value["offset"] for _, _, _, value, _ in job.output("job-quarantine")] == [
            n for n, at in enumerate(expected) if at == "bad"
        ]


@given(
    st.sampled_from(sorted(EXTRACTORS)), st.lists(st.none() | st.integers(-2, 9), max_size=12), st.integers(-1, 5),
    st.integers(0, 12),
)  # fmt: skip
def test_the_models_times(kind: Extractor, times: list[int | None], before: int, cut: int) -> None:
    """In two batches."""
    got: list[Any] = []
    now = before
    for part in (times[:cut], times[cut:]):
        result = extract_here(EXTRACTORS[kind], pa.array([{"at": at, "n": 0} for at in part], VALUE), now)
        got += result
        now = max([now, *(at for at in result if isinstance(at, int))])
    assert got == extract(kind, [*([before] if before >= 0 else []), *times])[before >= 0 :]


def extract_here(extractor: TimestampExtractor, value: pa.Array, before: int = -1) -> list[Any]:
    count = len(value)
    columns = pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(count, pa.string()),
            "value": value,
            "timestamp": pa.array(np.arange(count)).cast(pa.timestamp("ms", "UTC")),
            "offset": pa.array(np.arange(count)),
            "headers": pa.nulls(count, HEADERS_TYPE),
        }
    )
    source = Source("S", "in", Consumed().with_timestamp_extractor(extractor))
    found = extracted(source, columns, partition=0, partition_time=before)
    outcomes: list[Any] = found.times.tolist()
    for row in np.flatnonzero(np.zeros(count, bool) if found.skipped is None else found.skipped):
        outcomes[row] = "dropped"
    for row, problem in enumerate(found.problems or []):
        if problem.is_valid:
            outcomes[row] = "bad"
    return outcomes


UTC_MS = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pa.array([1, -1], pa.int32()), [1, "dropped"]),
        (pa.array([1, 2**63], pa.uint64()), [1, "bad"]),
        (pa.array([0, LAST_TIME_MS, LAST_TIME_MS + 1, 2**63 - 1]), [0, LAST_TIME_MS, "bad", "bad"]),
        (pa.array([-(2**63)]), ["dropped"]),
        (pa.array([5.0, float("nan"), 1.5, float("inf"), -float("inf"), -0.0, -2.0, 1e300, None]),
         [5, "bad", "bad", "bad", "dropped", 0, "dropped", "bad", "bad"]),
        (pa.array([5.0, -2.0], pa.float32()), [5, "dropped"]),
        (pa.nulls(2), ["bad", "bad"]),
        (pa.array([1_000, -1], UTC_MS), [1000, "dropped"]),
        (pa.array([1_999, -1, -1_000], pa.timestamp("us")), [1, "dropped", "dropped"]),
        (pa.array([1_999_999, -1], pa.timestamp("ns", "UTC")), [1, "dropped"]),
        (pa.array([3, -1, 2**62, -(2**62)], pa.timestamp("s")), [3000, "dropped", "bad", "dropped"]),
        (pa.array([date(1970, 1, 2), date(1969, 12, 31), None]), [86_400_000, "dropped", "bad"]),
        (pa.array([86_400_000], pa.date64()), [86_400_000]),
    ],
)  # fmt: skip
def test_what_an_extractor_may_give(given: pa.Array, expected: list[Any]) -> None:
    """Whatever its type: what is before 1970 is negative, and what no topic can hold cannot be used."""
    value = pa.array([{"at": None, "n": n} for n in range(len(given))], VALUE)

    def of(columns: pa.RecordBatch) -> pa.Array:
        return given.take(columns["value"].field("n"))

    assert extract_here(TimestampExtractor(of), value) == expected
    skipping = ["dropped" if at == "bad" else at for at in expected]
    assert extract_here(LogAndSkipOnInvalidTimestamp(of), value) == skipping
    failing = ["bad" if at == "dropped" else at for at in expected]
    assert extract_here(FailOnInvalidTimestamp(of), value) == failing
    latest, replaced = 7, []
    for at in expected:
        latest = max(latest, at) if isinstance(at, int) else latest
        replaced.append(at if isinstance(at, int) else latest)
    assert extract_here(UsePartitionTimeOnInvalidTimestamp(of), value, 7) == replaced


@pytest.mark.parametrize("given", [pa.array(["2013"]), pa.array([True]), pa.array([timedelta(seconds=1)])])
def test_what_is_no_time_is_refused(tmp_path: Path, given: pa.Array) -> None:
    job = pipeline(tmp_path, lambda columns: given.take(pa.array([0] * len(columns), pa.int64())))
    job.archive("in", rows(1), TYPES)
    with pytest.raises(
        ConfigurationError, match=rf"gave {re.escape(str(given.type))}, which is no time.*whole milliseconds"
    ):
        job.run()


@pytest.mark.parametrize(
    ("extractor", "reason"),
    [
        (per_record(lambda at: None if at == 3 else at, pa.int64(), "at"), "no timestamp"),
        (per_record(lambda at: float("nan") if at == 3 else at, pa.float64(), "at"), "no whole number of.*: nan"),
        (per_record(lambda at: 2**62 if at == 3 else at, pa.int64(), "at"), "later than a topic can hold"),
        (FailOnInvalidTimestamp(per_record(lambda at: -1 if at == 3 else at, pa.int64(), "at")), "negative timestamp"),
        (UsePartitionTimeOnInvalidTimestamp(per_record(lambda at: at if at > 3 else -1, pa.int64(), "at")),
         "before the partition's first valid timestamp"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_ends_the_run_at_its_place(tmp_path: Path, extractor: Any, reason: str) -> None:
    job = pipeline(tmp_path, extractor)
    job.archive("in", rows(3, 4) if "first valid" in reason else rows(4, 3), TYPES)
    with pytest.raises(InputError, match=f"{reason}.*topic in, partition 0, offset {int('first' not in reason)}"):
        job.run()


@pytest.mark.parametrize("extractor", [TimestampExtractor, LogAndSkipOnInvalidTimestamp])
def test_an_extractor_that_fails_ends_the_run_at_its_place(tmp_path: Path, extractor: type[TimestampExtractor]) -> None:
    """Whatever it does otherwise, and quarantine or not, as in Kafka: the code is to be mended, not the record."""
    job = pipeline(tmp_path, extractor(per_record(lambda at: 12 // at, pa.int64(), "at")), on_bad_record="quarantine")
    job.archive("in", rows(1, 2, 3, 0, 4), TYPES)
    with pytest.raises(ConfigurationError, match=rf"ZeroDivisionError.*node {SOURCE}.*topic in, partition 0, offset 3"):
        job.run()


def test_the_records_own_timestamps(tmp_path: Path) -> None:
    """Those of the archive, negative or missing, by Kafka's own extractors."""
    for number, (extractor, out, dropped) in enumerate(
        [
            (LogAndSkipOnInvalidTimestamp(), [(1, 8), (4, 6)], 3),
            (UsePartitionTimeOnInvalidTimestamp(), [(1, 8), (2, 8), (3, 8), (4, 6)], 0),
        ]
    ):
        job = pipeline(tmp_path / str(number), extractor, on_bad_record="quarantine")
        job.archive("in", [("k", {"at": 1, "n": n}, at) for n, at in enumerate([-1, 8, None, -9, 6])], TYPES)
        assert accounts(job.run()).get("invalid-timestamp", 0) == dropped
        assert [(n, at) for *_, n, at in job.output("out")] == out


def test_late_dropped_and_quarantined_records_add_up(tmp_path: Path) -> None:
    """A dropped record moves no clock: what comes behind it is late by the others alone."""
    builder = StreamsBuilder("job")
    consumed = Consumed().with_timestamp_extractor("at")
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))
    builder.stream("in", consumed).group_by_key().windowed_by(windows).count().to_stream().to("out")
    job = Pipeline(tmp_path, builder.build(), on_bad_record="quarantine", on_late_record="topic")
    late = quarantined = dropped = 0
    for part in ((1, -50, 3, None), (25, -1, 4, 2**62), (-2, 26)):
        job.archive("in", rows(*part), TYPES)
        staged = job.run()
        assert isinstance(staged, Staged)
        (metrics,) = [task.metrics for task in staged.tasks]
        late += sum(of.accounts.get("late", 0) for of in metrics.values())
        quarantined += metrics[SOURCE].accounts.get("quarantined", 0)
        dropped += metrics[SOURCE].dropped.get("invalid-timestamp", 0)
    assert (late, quarantined, dropped) == (1, 2, 3)
    assert [(value, at) for *_, value, at in job.output("out")] == [(1, 1), (2, 3), (1, 25), (2, 26)]
    assert len(job.output("job-late")) == 1
    assert len(job.output("job-quarantine")) == 2


def bounded(at: int | None, n: int, partition_time: int) -> int | None:
    """An extractor that lets time go forward by 5 at most, and holds what lacks a time for a later one's beginning."""
    if at is None:
        return partition_time if n % 2 else partition_time + 1
    return at if partition_time < 0 else min(at, partition_time + 5)


BOUNDED: dict[str, MapperLike] = {
    "per record": per_record(bounded, pa.int64(), "value.at", "value.n", "partition_time"),
    "by column": lambda columns: pa.array(
        [bounded(value["at"], value["n"], seen) for value, seen in zip(
            columns["value"].to_pylist(), columns["partition_time"].to_pylist(), strict=True)], pa.int64()),
    "expression": pc.if_else(
        pc.is_null(pc.field("value", "at")),
        pc.if_else(
            pc.equal(pc.bit_wise_and(pc.field("value", "n"), 1), 1),
            pc.field("partition_time"), pc.add(pc.field("partition_time"), 1),
        ),
        pc.if_else(
            pc.less(pc.field("partition_time"), 0), pc.field("value", "at"),
            pc.min_element_wise(pc.field("value", "at"), pc.add(pc.field("partition_time"), 5)),
        ),
    ),
}  # fmt: skip
OF_POLICY: dict[Extractor, type[TimestampExtractor]] = {kind: type(of) for kind, of in EXTRACTORS.items()}


def bounded_times(kind: Extractor, times: list[int | None], before: int) -> list[Any]:
    """As Kafka Streams does it: one record at a time."""
    outcomes: list[Any] = []
    now = before
    for n, at in enumerate(times):
        known = [now] if now >= 0 else []
        outcomes += extract(kind, [*known, bounded(at, n, now)])[len(known) :]
        now = max(now, outcomes[-1]) if isinstance(outcomes[-1], int) else now
    return outcomes


@given(
    st.sampled_from(sorted(OF_POLICY)), st.sampled_from(sorted(BOUNDED)),
    st.lists(st.none() | st.integers(-2, 40), max_size=20), st.integers(-1, 5),
)  # fmt: skip
def test_the_times_of_an_extractor_that_sees_its_partitions_time(
    kind: Extractor, form: str, times: list[int | None], before: int
) -> None:
    value = pa.array([{"at": at, "n": n} for n, at in enumerate(times)], VALUE)
    assert extract_here(OF_POLICY[kind](BOUNDED[form]), value, before) == bounded_times(kind, times, before)


@pytest.mark.parametrize("slices", [[8], [1, 1, 3, 3]])
def test_partition_time_goes_on_from_slice_to_slice(tmp_path: Path, slices: list[int]) -> None:
    """Two partitions have a time each; what is dropped, or cannot be used, moves none."""
    builder = StreamsBuilder("job")
    builder.stream("in", Consumed().with_timestamp_extractor(BOUNDED["per record"])).map_values("n").to("out")
    job = Pipeline(tmp_path, builder.build(), on_bad_record="quarantine")
    waiting = [(key, {"at": at, "n": n}, 0) for n, at in enumerate(MESSY) for key in ("a", "d")]
    for count in slices:
        job.archive("in", waiting[: 2 * count], TYPES, partitions=2)
        waiting = waiting[2 * count :]
        job.run()
    wanted = [(n, at) for n, at in enumerate(bounded_times("own", list(MESSY), -1)) if isinstance(at, int)]
    for key in ("a", "d"):
        assert [(n, at) for _, _, of, n, at in job.output("out") if of == key] == wanted


def test_a_time_that_the_extractor_never_sees_fails_nothing(tmp_path: Path) -> None:
    """It is asked with times that are assumed; for one that it does see it fails, at that record."""

    def strict(at: int, partition_time: int) -> int:
        if at > 1 and partition_time != at - 1:
            raise ValueError(f"{at} after {partition_time}")
        return at

    job = pipeline(tmp_path, per_record(strict, pa.int64(), "value.at", "partition_time"))
    job.archive("in", rows(*range(1, 50)), TYPES)
    job.run()
    assert [at for *_, at in job.output("out")] == list(range(1, 50))
    job.archive("in", rows(50, 51, 53, 54), TYPES)
    with pytest.raises(ConfigurationError, match="53 after 51.*topic in, partition 0, offset 51"):
        job.run()


def test_how_often_an_extractor_is_asked(tmp_path: Path) -> None:
    """A few times a record, also where each time depends on the one before."""
    asked: list[int] = []

    def next_one(at: int, partition_time: int) -> int:
        asked.append(at)
        return max(at, partition_time + 1)

    of = per_record(next_one, pa.int64(), "value.at", "partition_time")
    value = pa.array([{"at": 0, "n": n} for n in range(1_000)], VALUE)
    assert extract_here(TimestampExtractor(of), value) == list(range(1_000))
    assert len(asked) <= 8_000
    asked.clear()
    falls_back = per_record(lambda at, seen: asked.append(at) or (seen if at is None else at), pa.int64(), "at",
                            "partition_time")  # fmt: skip
    value = pa.array([{"at": None if n % 3 == 2 else n, "n": n} for n in range(1_000)], VALUE)
    assert extract_here(TimestampExtractor(falls_back), value)[:4] == [0, 1, 1, 3]
    assert len(asked) <= 2_000


def test_the_fingerprint_of_a_mapper_is_what_it_was() -> None:
    """So that a job goes on; Kafka's extractors are others."""
    at = Consumed().with_timestamp_extractor("at")
    assert Consumed().describe()["timestamp"] is None
    assert at.describe()["timestamp"] == "at"
    assert at == Consumed().with_timestamp_extractor("at") == Consumed(timestamp="at")
    described = {str(Consumed().with_timestamp_extractor(of).describe()) for of in EXTRACTORS.values()}
    assert len(described) == len(EXTRACTORS)
    assert Consumed().with_timestamp_extractor(FailOnInvalidTimestamp()) == Consumed()


def test_times_with_a_zone(tmp_path: Path) -> None:
    job = pipeline(tmp_path, per_record(lambda at: datetime.fromtimestamp(at / 1000, UTC), UTC_MS, "at"))
    job.archive("in", rows(1_000, -1, 2_000), TYPES)
    job.run()
    assert [at for *_, at in job.output("out")] == [1_000, 2_000]
