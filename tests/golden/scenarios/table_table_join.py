"""``table-table-join``: two tables joined by key, or by a foreign key in the left table's values."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import Materialized, Stores, StreamsBuilder
from statelib.operators.mappers.mapping import per_record
from tests.operators.flow import Fed, Flow

if TYPE_CHECKING:
    from statelib import KTable
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case


def _shown(value: str | None) -> str:
    return "null" if value is None else value


JOINER = per_record(lambda left, right: f"{_shown(left)}|{_shown(right)}", pa.string(), "left", "right")
FOREIGN_KEY = per_record(lambda left: left.partition(":")[2] if ":" in left else None, pa.string(), "value")
TYPES = {topic: (pa.string(), pa.string()) for topic in ("left", "right")}


def check(case: Case, compare: Compare) -> None:
    """A record at a time, with a flush and a restart now and then; then everything in one batch."""
    fed = [Fed(step["topic"], step["key"], step["value"], step["ts"]) for step in case.steps]
    flow = flow_of(case)
    for step, record in zip(case.steps, fed, strict=True):
        compare(step["i"], "out", step["out"], [row[1] for row in emitted(flow.process([record]))])
        compare(step["i"], "dropped", step["dropped"], flow.dropped())
        if step["i"] % 7 == 6:
            flow.restart()
    at_once = emitted(flow_of(case).process(fed))
    for step in case.steps:
        compare(step["i"], "out in one batch", step["out"], [out for cause, out in at_once if cause == step["i"]])


def flow_of(case: Case) -> Flow:
    """The join of a case, on fresh stores."""
    builder = StreamsBuilder("app")
    left, right = (_table(builder, case.params, side) for side in ("left", "right"))
    join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[case.params["join"]]
    by = {"foreign_key": FOREIGN_KEY} if case.params["kind"] == "foreign-key" else {}
    join(right, JOINER, **by).to_stream().to("out")
    return Flow(builder.build(), TYPES, semantics="kafka-4.3")


def _table(builder: StreamsBuilder, params: dict[str, Any], side: str) -> KTable:
    if not params[f"{side}_versioned"]:
        return builder.table(side)
    retention, interval = (
        timedelta(milliseconds=params[name]) for name in (f"{side}_history_retention", "segment_interval")
    )
    return builder.table(side, Materialized.as_(Stores.persistent_versioned_key_value_store(side, retention, interval)))


def emitted(out: dict[str, Any]) -> list[tuple[int, dict[str, object]]]:
    """What came out, with the step that caused it."""
    return [(row.cause, {"key": row.key, "value": row.value, "ts": row.timestamp}) for row in out.get("out", [])]
