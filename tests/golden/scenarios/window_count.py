"""Windowed aggregations: each update, drops, and what the store holds at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sessions.store import SessionRow, SessionStore
from statelib.operators.windows.store import WindowStore
from statelib.serdes import serde_for
from tests.golden.scenario import UnsupportedCase
from tests.golden.suppressing import window_aggregate
from tests.operators.chain import Chain, Record

if TYPE_CHECKING:
    from statelib.operators.sliding.operator import SlidingAggregate
    from statelib.operators.windows.operator import WindowAggregate
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case


def check(case: Case, compare: Compare) -> None:
    """One record at a time, and in batches with flushes and restarts."""
    spec = window_aggregate(case)
    if case.params["emit"] != "on_window_update":
        raise UnsupportedCase("emit on window close")
    records = [Record(step["key"], step["value"], step["ts"]) for step in case.steps]
    for batch_size, between in ((1, "nothing"), (len(records), "nothing"), (1, "restart"), (6, "flush")):
        how = f" in batches of {batch_size}, {between} between"
        chain = Chain([spec], pa.int32(), semantics="kafka-4.3")
        rows = chain.run(records, batch_size, between)[0]
        for i, step in enumerate(case.steps):
            expected = [(out["key"], (out["start"], out["end"]), out["value"], out["ts"]) for out in step["out"]]
            got = [(row.key, row.window, row.value, row.timestamp) for row in rows if row.sequence == i]
            compare(i, "out" + how, expected, got)
        chain.restart()
        figures = [metrics for run in chain.finished for metrics in run]
        nulls = sum(metrics.accounts.get(account, 0) for metrics in figures for account in ("null-key", "null-value"))
        late = sum(metrics.counters.get("late-record-drop", 0) for metrics in figures)
        compare(len(records) - 1, "dropped" + how, case.end["dropped"], nulls + late)
        stored = [(entry["key"], entry["start"], entry["value"], _kept_time(entry)) for entry in case.end["store"]]
        compare(len(records) - 1, "store" + how, sorted(stored), sorted(_content(chain, spec)))


def _kept_time(entry: dict[str, Any]) -> int:
    """What the store holds beside key, start and value: a window's largest timestamp, a session's end."""
    return entry.get("ts", entry["end"])


def _content(
    chain: Chain, spec: WindowAggregate | SlidingAggregate | SessionAggregate
) -> list[tuple[str, int, object, int]]:
    clock = chain.contexts[0].clock("store_time")
    kind = SessionStore if isinstance(spec, SessionAggregate) else WindowStore
    store = kind(chain.backend, spec.store, retention_ms=spec.windows.retention_ms, stream_time=clock)
    assert store.header.schema is not None
    serde = serde_for(pa.struct(list(store.header.schema)))
    return [
        (
            row.key.decode(),
            row.start_ms,
            serde.deserialize(pa.array([row.row]))[0].as_py()["value"],
            row.end_ms if isinstance(row, SessionRow) else row.timestamp_ms,
        )
        for row in store.all()
    ]
