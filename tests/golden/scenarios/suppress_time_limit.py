"""``suppress(untilTimeLimit(...))`` behind a table, or behind a windowed count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.dsl import Materialized, Stores, StreamsBuilder
from statelib.errors.kinds import ConfigurationError
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from tests.golden.suppressing import check_chain, ms, window_aggregate
from tests.operators.chain import Chain, Record

if TYPE_CHECKING:
    from typing import Any

    from tests.golden.scenario import Compare
    from tests.golden.trace import Case


def check(case: Case, compare: Compare) -> None:
    """Both branches (a table's own is its input), buffer, drops and errors of each step."""
    if "history_retention" in case.params:
        _check_refusal(case, compare)
        return
    suppressed = Suppressed.until_time_limit(ms(case.params["time_limit"]), _buffer(case.params))
    if "window" in case.params:
        aggregate = window_aggregate(case)

        def build() -> Chain:
            specs = [aggregate, Suppress("buffer", suppressed, aggregate.windows)]
            return Chain(specs, pa.int32(), semantics="kafka-4.3")

        records = [Record(step["key"], step["value"], step["ts"]) for step in case.steps]
    else:

        def build() -> Chain:
            return Chain([Suppress("buffer", suppressed)], pa.string(), table=True, semantics="kafka-4.3")

        records = _table(case.steps)
    check_chain(case, compare, build, records)


def _check_refusal(case: Case, compare: Compare) -> None:
    """Whether suppress behind a versioned table is accepted when the topology is built."""
    supplier = Stores.persistent_versioned_key_value_store("table", ms(case.params["history_retention"]))
    table = StreamsBuilder("app").table("in", Materialized.as_(supplier))
    accepted, message = True, ""
    try:
        table.suppress(Suppressed.until_time_limit(ms(1), BufferConfig.unbounded()))
    except ConfigurationError as error:
        accepted, message = False, error.what
    (step,) = case.steps
    compare(step["i"], "accepted", step["accepted"], accepted)
    compare(step["i"], "says that it is about versions", True, "not versioned" in message)


def _table(steps: list[dict[str, Any]]) -> list[Record]:
    """The updates of a table: each with the value that it replaces."""
    table: dict[str | None, str | None] = {}
    updates = []
    for step in steps:
        key, value = step["key"], step["value"]
        updates.append(Record(key, value, step["ts"], None if key is None else table.get(key)))
        table[key] = value
    return updates


def _buffer(params: dict[str, Any]) -> BufferConfig:
    config: BufferConfig = BufferConfig.unbounded()
    if params["max_records"] is not None:
        config = config.with_max_records(params["max_records"])
    if params["max_bytes"] is not None:
        config = config.with_max_bytes(params["max_bytes"])
    return config.emit_early_when_full() if params["when_full"] == "emit" else config
