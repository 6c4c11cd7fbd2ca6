"""``table-join``: a stream joined with a versioned table, at once or after a grace period."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib import Joined, Materialized, Stores, StreamsBuilder
from statelib.errors.kinds import ConfigurationError
from statelib.operators.mappers.mapping import per_record
from tests.operators.joined_table import STREAM, TABLE, JoinedTable
from tests.operators.task import Record, Task

if TYPE_CHECKING:
    from statelib.records.batch import Batch
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case

JOINER = per_record(lambda left, right: f"{left}|{'null' if right is None else right}", pa.string(), "left", "right")
PARENTS = {"stream": STREAM, "table": TABLE}


def check(case: Case, compare: Compare) -> None:
    """A record at a time, with a flush and a restart now and then; then everything in one batch."""
    if not case.params:
        check_refusals(case, compare)
        return
    records = [Record(step["key"], step["value"], step["ts"], step["i"], PARENTS[step["topic"]]) for step in case.steps]
    task = task_of(case)
    forwarded_null_keys = 0
    for step, record in zip(case.steps, records, strict=True):
        result = task.process([record])
        if "error" in step:  # the shipped library fails at a null key if there is a grace period, and ends
            compare(step["i"], "key of a failure", None, record.key)
            break
        compare(step["i"], "out", step["out"], emitted(result).get(step["i"], []))
        if case.params["join"] == "left" and record.parent == STREAM and record.key is None:
            forwarded_null_keys += record.value is not None
        accounts = task.metrics.accounts
        dropped = sum(accounts.get(name, 0) for name in ("null-key", "null-value", "refused")) - forwarded_null_keys
        compare(step["i"], "dropped", step["dropped"], dropped)
        if task.operator.buffer is not None:
            compare(step["i"], "buffered", step["buffered"], task.operator.buffer.buffered)
        if step["i"] % 7 == 6:
            task.flush()
            task.restart()
    at_once = emitted(task_of(case).process(records))
    for step in case.steps:
        if "error" in step:
            break
        compare(step["i"], "out in one batch", step["out"], at_once.get(step["i"], []))


def check_refusals(case: Case, compare: Compare) -> None:
    """Which joins can be built at all."""
    for step in case.steps:
        builder = StreamsBuilder("app")
        store = "t"
        if step["table_versioned"]:
            retention, interval = (
                timedelta(milliseconds=step[name]) for name in ("history_retention", "segment_interval")
            )
            store = Stores.persistent_versioned_key_value_store("t", retention, interval)
        joined = Joined.as_("join").with_grace_period(timedelta(milliseconds=step["grace"]))
        try:
            builder.stream("s").join(builder.table("t", Materialized.as_(store)), "left", joined).to("out")
        except ConfigurationError:
            compare(step["i"], "accepted", step["accepted"], False)
        else:
            compare(step["i"], "accepted", step["accepted"], True)


def task_of(case: Case) -> Task:
    """The join of a case, on fresh stores."""
    join = JoinedTable(
        JOINER,
        case.params["history_retention"] if case.params["table_versioned"] else None,
        case.params["segment_interval"],
        left=case.params["join"] == "left",
        grace_ms=case.params["grace"],
    )
    return Task(join, pa.string(), [pa.string(), pa.string()], semantics="kafka-4.3")


def emitted(result: Batch) -> dict[int, list[dict[str, object]]]:
    """What came out, by the step that caused it."""
    out: dict[int, list[dict[str, object]]] = {}
    columns = (result.sequence, result.key.to_pylist(), result.value.to_pylist(), result.timestamp)
    for sequence, key, value, timestamp in zip(*columns, strict=True):
        out.setdefault(int(sequence), []).append({"key": key, "value": value, "ts": int(timestamp)})
    return out
