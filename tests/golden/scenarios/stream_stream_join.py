"""``stream-stream-join``: two streams joined within windows: inner, left and outer."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import JoinWindows, StreamJoined, StreamsBuilder
from statelib.operators.mappers.mapping import per_record
from tests.operators.flow import Fed, Flow

if TYPE_CHECKING:
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case
    from tests.operators.flow import Row


def _shown(value: str | None) -> str:
    return "null" if value is None else value


JOINER = per_record(lambda left, right: f"{_shown(left)}|{_shown(right)}", pa.string(), "left", "right")
WALL = "wall"
"""A topic of which no record reaches the join: they only move the task's stream time, which is its wall clock."""

TYPES = {topic: (pa.string(), pa.string()) for topic in ("left", "right", WALL)}


def check(case: Case, compare: Compare) -> None:
    """A record at a time, with a flush and a restart now and then; then everything in one batch."""
    fed = [_fed(step) for step in case.steps]
    step_of = [step["i"] for step, records in zip(case.steps, fed, strict=True) for _ in records]
    flow = flow_of(case)
    for step, records in zip(case.steps, fed, strict=True):
        compare(step["i"], "out", step["out"], [_shown_row(row) for row in flow.process(records).get("out", [])])
        compare(step["i"], "dropped", step["dropped"], _dropped(flow))
        if step["i"] % 7 == 6:
            flow.restart()
    rows = flow_of(case).process([record for records in fed for record in records]).get("out", [])
    for step in case.steps:
        got = [_shown_row(row) for row in rows if step_of[row.cause] == step["i"]]
        compare(step["i"], "out in one batch", step["out"], got)


def flow_of(case: Case) -> Flow:
    """The join of a case, on fresh stores."""
    before, after, grace, interval = (
        timedelta(milliseconds=case.params[name]) for name in ("before", "after", "grace", "emit_interval")
    )
    builder = StreamsBuilder("app")
    wall = builder.stream(WALL).filter(lambda columns: pa.repeat(False, columns.num_rows))
    left, right = builder.stream("left").merge(wall), builder.stream("right")
    join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[case.params["join"]]
    windows = JoinWindows.of_time_difference_and_grace(abs(before) + abs(after), grace).before(before).after(after)
    if not case.params["hold_back"]:
        windows = windows.emit_unmatched_at_once()
    join(right, JOINER, windows, StreamJoined().with_emit_interval(interval)).to("out")
    return Flow(builder.build(), TYPES, semantics="kafka-4.3")


def _fed(step: dict[str, Any]) -> list[Fed]:
    record = Fed(step["topic"], step["key"], step["value"], step["ts"])
    return [Fed(WALL, None, None, step["wall"]), record] if "wall" in step else [record]


def _shown_row(row: Row) -> dict[str, object]:
    return {"key": row.key, "value": row.value, "ts": row.timestamp}


def _dropped(flow: Flow) -> int:
    """Kafka counts what is out of a store's retention too, even if it has been joined."""
    live = [metrics for graph in flow.graphs for metrics in graph.metrics.values()]
    expired = sum(metrics.counters.get("expired-window-record-drop", 0) for metrics in [flow.metrics, *live])
    late = sum(metrics.dropped.get("late", 0) for metrics in [flow.metrics, *live])
    return flow.dropped() - late + expired
