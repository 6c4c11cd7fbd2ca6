"""Sliding windows through archives, slices, checkpoints and commits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hindstream.cli.look.inspect import print_rows
from statelib import (
    BufferConfig,
    Materialized,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    count,
    max_,
)
from statelib.operators.aggregation.definition import single
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.settings.settings import load_settings
from tests.reference.sliding_aggregate import SlidingWindowed
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from statelib.topology import Topology

WINDOWS = SlidingWindows.of_time_difference_and_grace(timedelta(minutes=1), timedelta(seconds=30))
TYPES = (pa.string(), pa.struct([("page", pa.int64())]))
CLICKS = [
    (f"user-{i % 4}", {"page": i * 7 % 50}, max(0, i * 20_000 + (i % 5) * 45_000 - (i % 11) * 9_000))
    for i in range(240)
]


def topology() -> Topology:
    builder = StreamsBuilder("job")
    visits = (
        builder.stream("clicks")
        .group_by_key()
        .windowed_by(WINDOWS)
        .aggregate({"clicks": count(), "last_page": max_("page")}, Materialized.as_("visits"))
    )
    visits.to_stream().to("updates")
    visits.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("final")
    return builder.build()


def replayed(directory: Path, cuts: list[int | None], **settings: Any) -> dict[str, list[Any]]:
    pipeline = Pipeline(directory, topology(), **settings)
    pipeline.archive("clicks", CLICKS, TYPES)
    for cut in cuts:
        pipeline.run(cut)
    return {topic: pipeline.output(topic) for topic in ("updates", "final")}


def milliseconds(key: dict[str, Any]) -> tuple[str, int, int]:
    return key["key"], *(round(key[name].timestamp() * 1000) for name in ("window_start", "window_end"))


def test_slices_batches_and_memory_do_not_matter(tmp_path: Path) -> None:
    whole = replayed(tmp_path / "whole", [None])
    seen_ms = SlidingAggregate("w", WINDOWS, single(count())).seen_ms("kip")
    reference = SlidingWindowed(WINDOWS.time_difference_ms, WINDOWS.grace_period_ms, seen_ms)
    expected = [
        (
            (key, start, start + WINDOWS.time_difference_ms),
            {"clicks": len(values), "last_page": max(one["page"] for one in values)},
        )
        for key, value, timestamp in CLICKS
        for start, values, _, _ in reference.process(key, value, timestamp)
    ]
    assert reference.late_windows > 0
    assert [(milliseconds(key), value) for _, _, key, value, _ in whole["updates"]] == expected
    finals = [milliseconds(key) for _, _, key, _, _ in whole["final"]]
    assert len(finals) > 10
    assert len(finals) == len(set(finals))
    assert replayed(tmp_path / "slices", [*range(500_000, 5_000_000, 900_000), None]) == whole
    assert replayed(tmp_path / "memory", [2_000_000, None], batch_records=7, memory_budget_bytes=1) == whole


def test_windows_can_be_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = Pipeline(tmp_path, topology())
    pipeline.archive("clicks", [("a", {"page": 3}, 90_000), ("a", {"page": 5}, 120_000)], TYPES)
    pipeline.run()
    settings = load_settings({"warehouse": str(tmp_path / "warehouse"), "state_dir": tmp_path / "local"}, environ={})
    for time, shown in (
        (None, 3),
        ("1970-01-01T00:02:00Z", 2),
        ("1970-01-01T00:01:00Z", 2),
        ("1970-01-01T00:00:59Z", 1),
    ):
        print_rows("job", "visits", "a", time, None, settings)
        assert capsys.readouterr().out.count('"clicks"') == shown
