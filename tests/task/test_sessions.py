"""Sessions through archives, slices, checkpoints and commits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hindstream.cli.look.inspect import print_rows
from statelib import (
    BufferConfig,
    Materialized,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TopologyTestDriver,
    count,
    max_,
)
from statelib.settings.settings import load_settings
from tests.reference.session_aggregate import all_values
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from statelib.topology import Topology

GAP, GRACE = 60_000, 30_000
TYPES = (pa.string(), pa.struct([("page", pa.int64())]))
CLICKS = [
    (f"user-{i % 4}", {"page": i * 7 % 50}, max(0, i * 20_000 + (i % 5) * 45_000 - (i % 11) * 9_000))
    for i in range(240)
]


def topology() -> Topology:
    builder = StreamsBuilder("job")
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(milliseconds=GAP), timedelta(milliseconds=GRACE))
    visits = (
        builder.stream("clicks")
        .group_by_key()
        .windowed_by(windows)
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
    reference = all_values(GAP, GRACE)
    expected = [
        ((key, start, end), values and {"clicks": len(values), "last_page": max(one["page"] for one in values)})
        for key, value, timestamp in CLICKS
        for start, end, values, _ in reference.process(key, value, timestamp)
    ]
    assert reference.late > 0
    assert [(milliseconds(key), value) for _, _, key, value, _ in whole["updates"]] == expected
    finals = [milliseconds(key) for _, _, key, _, _ in whole["final"]]
    assert len(finals) > 10
    assert len(finals) == len(set(finals))
    assert replayed(tmp_path / "slices", [*range(500_000, 5_000_000, 900_000), None]) == whole
    assert replayed(tmp_path / "memory", [2_000_000, None], batch_records=7, memory_budget_bytes=1) == whole


def test_sessions_can_be_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = Pipeline(tmp_path, topology())
    pipeline.archive("clicks", [("a", {"page": 3}, 0), ("a", {"page": 5}, 60_000), ("a", {"page": 4}, 180_000)], TYPES)
    pipeline.run()
    settings = load_settings({"warehouse": str(tmp_path / "warehouse"), "state_dir": tmp_path / "local"}, environ={})
    for time, shown in ((None, 2), ("1970-01-01T00:00:30Z", 1), ("1970-01-01T00:02:00Z", 0)):
        print_rows("job", "visits", "a", time, None, settings)
        printed = capsys.readouterr().out
        assert printed.count('"clicks"') == shown
        assert ('{"clicks": 2, "last_page": 5}' in printed) == (shown > 0)


def test_results_have_no_headers_as_in_kafka_streams(tmp_path: Path) -> None:
    builder = StreamsBuilder("sessions")
    grouped = builder.stream("clicks").group_by_key()
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(milliseconds=GAP), timedelta(milliseconds=GRACE))
    grouped.windowed_by(windows).count().to_stream().to("sessions")
    grouped.windowed_by(windows).distinct().to("first")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    driver.create_input_topic("clicks").pipe_input("user", "page", 1_000, headers=[("trace", b"1")])
    assert [record.headers for record in driver.create_output_topic("sessions").read_records_to_list()] == [()]
    assert driver.create_output_topic("first").read_record().headers == (("trace", b"1"),)
