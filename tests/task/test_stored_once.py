"""Windows that wait for their final result take no more room in the state than without a suppression."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    BufferConfig,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    count,
)
from statelib.commits import CommitLog
from tests.changelog.test_rebuild import stores_of
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

VALUE = pa.struct([("x", pa.int64())])
HOUR = timedelta(hours=1)
WINDOWS = {
    "time": TimeWindows.of_size_and_grace(HOUR, HOUR),
    "sliding": SlidingWindows.of_time_difference_and_grace(HOUR, HOUR),
    "sessions": SessionWindows.of_inactivity_gap_and_grace(HOUR, HOUR),
}
UNBOUNDED = BufferConfig.unbounded()


def topology(windows: str, *, in_python: bool, readers: int, buffer: Any) -> Topology:
    """Counts by window; ``buffer`` None: every update is forwarded; ``readers``: of the table of counts."""
    builder = StreamsBuilder("topology")
    windowed: Any = builder.stream("in").group_by_key().windowed_by(WINDOWS[windows])
    if in_python:
        merger = {"merger": lambda _, one, other: one + other} if windows == "sessions" else {}
        counts = windowed.aggregate_with(lambda: 0, lambda _key, _value, total: total + 1, pa.int64(), **merger)
    else:
        counts = windowed.aggregate({"n": count()})
    for reader in range(1, readers):
        counts.to_stream().to(f"updates-{reader}")
    if buffer is not None:
        counts = counts.suppress(Suppressed.until_window_closes(buffer))
    counts.to_stream().to("out")
    return builder.build()


def state_bytes(folder: Path, semantics: Any = "kip", *, logs: bool = False, **more: Any) -> int:
    """What the state takes behind two runs; half of the windows change in the second.

    But sessions do not: one that becomes longer leaves a deletion, which waits in the buffer as it does in Kafka's.
    """
    built = topology(**more)
    pipeline = Pipeline(folder, built, semantics=semantics, changelogs=stores_of(built) if logs else [])
    keys = 6000 if more["windows"] == "sessions" else 3000
    records = [(f"key {n % keys:05}", {"x": n}, 1000 + n) for n in range(6000)]
    pipeline.archive("in", records, (pa.string(), VALUE), 1)
    for until_ms in (3000, None):
        pipeline.run(until_ms)
    log = CommitLog(pipeline.warehouse, pipeline.name)
    return sum(task.state.size_bytes for task in log.read(log.head_number()).tasks.values())


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("how", ["compiled", "in Python", "two readers", "shuts down", "logged"])
def test_a_suppression_stores_next_to_nothing(tmp_path: Path, windows: str, how: str) -> None:
    strict = BufferConfig.max_records(1 << 30).shut_down_when_full()
    of: dict[str, Any] = {"windows": windows, "in_python": how == "in Python", "readers": 1 + (how == "two readers")}
    of["logs"] = how == "logged"
    alone = state_bytes(tmp_path / "alone", **of, buffer=None)
    buffer = strict if how == "shuts down" else UNBOUNDED
    assert alone < state_bytes(tmp_path / "suppressed", **of, buffer=buffer) < 1.1 * alone + 4096


def test_with_kafkas_rules_it_stores_what_kafka_does(tmp_path: Path) -> None:
    of: dict[str, Any] = {"windows": "time", "in_python": False, "readers": 1, "semantics": "kafka-4.3"}
    alone = state_bytes(tmp_path / "alone", **of, buffer=None)
    assert state_bytes(tmp_path / "suppressed", **of, buffer=UNBOUNDED) > 1.5 * alone
