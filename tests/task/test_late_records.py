"""Late records are kept in a topic of the job, where it asks for that: which, why, in which order."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from statelib import (
    BufferConfig,
    Materialized,
    SessionWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
)
from statelib.documents.manifests import Staged
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

MINUTE = timedelta(minutes=1)
TYPES = (pa.string(), pa.int64())


def records(seed: int, count: int) -> list[tuple[Any, Any, int | None]]:
    rng = np.random.default_rng(seed)
    time = np.maximum(0, np.arange(count) * 5_000 + rng.integers(-300_000, 1, count))
    return [(f"k{rng.integers(4)}", int(rng.integers(100)), int(time[row])) for row in range(count)]


def topology() -> Topology:
    """Late for hopping windows, for sessions behind a repartition, for final results, and for a versioned table."""
    builder = StreamsBuilder("job")
    stream = builder.stream("events")
    windows = TimeWindows.of_size_and_grace(MINUTE, MINUTE).advance_by(MINUTE / 2)
    stream.group_by_key().windowed_by(windows).count(Materialized.as_("hops")).to_stream().to("hops")
    sessions = SessionWindows.of_inactivity_gap_and_grace(MINUTE / 4, MINUTE / 4)
    (
        stream.group_by("value")
        .windowed_by(sessions)
        .count(Materialized.as_("sessions"))
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to("sessions")
    )
    history = Stores.persistent_versioned_key_value_store("prices", MINUTE)
    prices = builder.table("prices", Materialized.as_(history))
    stream.join(prices, {"left": "left", "right": "right"}).to("priced")
    return builder.build()


def replayed(directory: Path, cuts: list[int | None], **settings: Any) -> tuple[list[Any], list[Staged]]:
    pipeline = Pipeline(directory, topology(), **{"on_late_record": "topic", **settings})
    pipeline.archive("events", records(1, 200), TYPES, partitions=2)
    pipeline.archive("prices", records(2, 200), TYPES, partitions=2)
    runs = [pipeline.run(cut) for cut in cuts]
    staged = [run for run in runs if isinstance(run, Staged)]
    return pipeline.output("job-late"), staged


@pytest.mark.thorough
def test_they_do_not_depend_on_slices_batches_and_memory(tmp_path: Path) -> None:
    whole, (staged,) = replayed(tmp_path / "whole", [None])
    lost = {
        node: metrics.accounts.get("late", 0) + metrics.accounts.get("refused", 0)
        for task in staged.tasks
        for node, metrics in task.metrics.items()
    }
    assert sum(count > 0 for count in lost.values()) >= 3
    assert {record[3]["reason"] for record in whole} >= {
        "window closed", "session closed", "older than the history retention",
    }  # fmt: skip
    assert replayed(tmp_path / "batches", [None], batch_records=3)[0] == whole
    assert replayed(tmp_path / "memory", [None], batch_records=7, memory_budget_bytes=1)[0] == whole
    assert replayed(tmp_path / "slices", [200_000, 500_000, None])[0] == whole


def test_a_late_record_says_what_it_was_and_why(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    counts = builder.stream("events").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(MINUTE))
    counts.count(Materialized.as_("counts")).to_stream().to("counts")
    pipeline = Pipeline(tmp_path, builder.build(), on_late_record="topic")
    value = pa.struct([("id", pa.string()), ("at", pa.timestamp("ms"))])
    rows = [
        ("a", {"id": "1", "at": 0}, 200_000),
        ("b", {"id": "2", "at": 0}, 50_000),
        ("b", None, 0),
        (None, None, 0),
    ]
    pipeline.archive("events", rows, (pa.string(), value))
    pipeline.run()
    first, second = pipeline.output("job-late")
    assert first[1:3] == (0, b"b")
    assert first[4] == 50_000
    late = first[3]
    assert json.loads(late.pop("value")) == {"id": "2", "at": "1970-01-01T00:00:00"}
    assert late == {
        "node": "KSTREAM-AGGREGATE-0000000001", "reason": "window closed", "lateness_ms": 150_000,
        "clock": "stream_time", "clock_ms": 200_000, "topic": "events", "partition": 0, "offset": 1,
        "key": '"b"', "window_start": None, "window_end": None,
    }  # fmt: skip
    assert (second[1], second[3]["offset"], second[3]["value"]) == (1, 2, None)


def test_a_late_record_with_a_windowed_key_has_its_window(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    patient = TimeWindows.of_size_and_grace(MINUTE, MINUTE)
    counts = builder.stream("events").group_by_key().windowed_by(patient).count(Materialized.as_("first")).to_stream()
    again = counts.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(MINUTE))
    again.count(Materialized.as_("again")).to_stream().to("out")
    pipeline = Pipeline(tmp_path, builder.build(), on_late_record="topic")
    pipeline.archive("events", [("a", 1, 0), ("b", 2, 60_000), ("a", 3, 0)], TYPES)
    pipeline.run()
    ((_, _, key, late, timestamp),) = pipeline.output("job-late")
    assert (key, timestamp, late["reason"], late["window_start"], late["window_end"]) == (
        b"a", 0, "window closed", 0, 60_000,
    )  # fmt: skip
    assert (late["value"], late["clock_ms"], late["offset"]) == ("2", 60_000, 2)


@pytest.mark.parametrize("on", ["first", "second"])
def test_it_can_be_asked_for_at_any_time(tmp_path: Path, on: str) -> None:
    whole, _ = replayed(tmp_path / "whole", [None])
    directory = tmp_path / "switched"
    for slice_, cut in (("first", 500_000), ("second", None)):
        pipeline = Pipeline(directory, topology(), on_late_record="topic" if slice_ == on else "drop")
        if slice_ == "first":
            pipeline.archive("events", records(1, 200), TYPES, partitions=2)
            pipeline.archive("prices", records(2, 200), TYPES, partitions=2)
        pipeline.run(cut)
    kept = [record[2:] for record in pipeline.output("job-late")]
    assert 0 < len(kept) < len(whole)
    assert [record[2:] for record in whole if record[2:] in kept] == kept


def test_without_it_they_are_counted_and_there_is_no_topic(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, topology())
    pipeline.archive("events", records(1, 200), TYPES)
    pipeline.archive("prices", [], TYPES)
    staged = pipeline.run()
    assert isinstance(staged, Staged)
    assert sum(m.dropped.get("late", 0) for task in staged.tasks for m in task.metrics.values()) > 0
    assert not {sink.topic for task in staged.tasks for sink in task.sinks} & {"job-late"}
