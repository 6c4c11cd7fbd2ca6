"""What the scenarios of suppress have in common: one record at a time, then the same in batches and with restarts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.definition import Aggregate, Reduce, single
from statelib.operators.aggregation.sql_functions import count
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, TimeWindows
from statelib.operators.windows.operator import WindowAggregate

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.operators.aggregation.definition import AggregatorSpec
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case
    from tests.operators.chain import Chain, Record, Row

NULL_COUNTS_AS = 500_009


def ms(duration: int) -> timedelta:
    return timedelta(milliseconds=duration)


def window_aggregate(case: Case) -> WindowAggregate | SlidingAggregate | SessionAggregate:
    """The windowed aggregation of a case."""
    params = case.params
    made = aggregator(params["agg"])
    size, grace = ms(params["size"]), ms(params["grace"])
    if params["window"] == "session":
        sessions = SessionWindows.of_inactivity_gap_and_grace(size, grace)
        return SessionAggregate("windows", sessions, made, needs_prior=True)
    if params["window"] == "sliding":
        sliding = SlidingWindows.of_time_difference_and_grace(size, grace)
        return SlidingAggregate("windows", sliding, made, needs_prior=True)
    windows = TimeWindows.of_size_and_grace(size, grace)
    if params["advance"] is not None:
        windows = windows.advance_by(ms(params["advance"]))
    return WindowAggregate("windows", windows, made, needs_prior=True)


def aggregator(name: str) -> AggregatorSpec:
    """The formulas of ``params.aggregations``."""

    def mix(aggregate: int, value: int | None) -> int:
        return (aggregate * 31 + (NULL_COUNTS_AS if value is None else value)) % 1_000_003

    def merge(_: str, a: int, b: int) -> int:
        return (a * 1009 + b) % 1_000_003

    if name == "count":
        return single(count())
    if name == "reduce":
        return Reduce(mix)
    return Aggregate(lambda: 1, lambda _, value, aggregate: mix(aggregate, value), pa.int32(), merge)


def check_chain(case: Case, compare: Compare, build: Callable[[], Chain], records: list[Record]) -> None:
    """Compares outputs, buffer, drops and errors, for records one at a time, in batches, with flushes and restarts."""
    check_one_by_one(case, compare, build(), records)
    good = [i for i, step in enumerate(case.steps) if "error" not in step]
    for batch_size, between in (
        (7, "nothing"),
        (len(records), "nothing"),
        (3, "restart"),
        (5, "flush"),
        (13, "restart"),
    ):
        forwarded = build().run(records[: len(good)], batch_size, between)
        compare_outputs(case, compare, forwarded, good, f" in batches of {batch_size}, {between} between")


def check_one_by_one(case: Case, compare: Compare, chain: Chain, records: list[Record]) -> None:
    """The real thing: one record at a time, and what can be seen after each."""
    suppress: Any = chain.operators[-1]
    for i, (step, record) in enumerate(zip(case.steps, records, strict=True)):
        failed = None
        try:
            compare_outputs(case, compare, chain.process([record]), [i])
        except ConfigurationError as error:
            failed = error
        compare(i, "error", _error_of(step), failed and _place_of(failed))
        expected = step["buffer"]
        got = (suppress.buffered_records, suppress.buffered_bytes, suppress.oldest_buffer_time)
        compare(i, "buffer", (expected["records"], expected["bytes"], expected["min_ts"]), got)
        nulls = sum(m.accounts.get(account, 0) for m in chain.metrics for account in ("null-key", "null-value"))
        late = chain.metrics[0].counters.get("late-record-drop", 0)
        compare(i, "dropped", step["dropped"], nulls + late)


def compare_outputs(case: Case, compare: Compare, forwarded: list[list[Row]], steps: list[int], how: str = "") -> None:
    """Both branches of some steps: what went into suppress, if the chain made it, and what came out."""
    branches = {"final": forwarded[-1]} | ({"inner": forwarded[0]} if len(forwarded) > 1 else {})
    for branch, rows in branches.items():
        by_step: dict[int, list[object]] = {i: [] for i in steps}
        for row in rows:
            by_step[row.sequence].append((row.key, row.window, row.value, row.timestamp))
        for i in steps:
            expected = [
                (out["key"], (out["start"], out["end"]) if "start" in out else None, out["value"], out["ts"])
                for out in case.steps[i]["out"]
                if out["to"] == branch
            ]
            compare(i, f"out, {branch}{how}", expected, by_step[i])


def _error_of(step: dict[str, Any]) -> tuple[str, ...] | None:
    if "error" not in step:
        return None
    place, bounds = (error["message"] for error in step["error"])
    found = re.search(r"topic=(.*), partition=(\d+), offset=(\d+)", place)
    held = re.search(r"Currently \[(\d+)/\d+\] records and \[(\d+)/\d+\] bytes", bounds)
    assert found is not None
    assert held is not None
    return (*found.groups(), *held.groups())


def _place_of(error: ConfigurationError) -> tuple[str, ...]:
    held = re.search(r"(\d+) records and (\d+) bytes", error.what)
    assert held is not None
    return (*(str(error.place[name]) for name in ("topic", "partition", "offset")), *held.groups())
