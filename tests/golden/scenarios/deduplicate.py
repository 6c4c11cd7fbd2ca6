"""``deduplicate``: KIP-655's three operators over traces of its plain model, in several cuts of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.operators.deduplication.operator import DeduplicateSpec, Kind
from statelib.operators.mappers.mapping import mapper
from statelib.records.batch import NO_OFFSET
from tests.operators.task import Record, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.golden.scenario import Compare
    from tests.golden.trace import Case

KINDS: dict[str, Kind] = {
    "deduplicate_by_key": "by_key",
    "deduplicate_by_key_value": "by_key_value",
    "deduplicate": "by_id",
}
VALUE = pa.struct([("id", pa.string())])


def check(case: Case, compare: Compare) -> None:
    """One batch; batches of a few records with a flush and a restart after each; a record at a time without."""
    records = [
        Record(step["key"], {"id": step["id"]}, step["ts"], NO_OFFSET if step["offset"] is None else step["offset"])
        for step in case.steps
    ]
    for cut, flush_every in ((len(records), 0), (7, 1), (1, 0)):
        got = forwarded(
            case.params["operator"], case.params["interval"], records, range(0, len(records), cut), flush_every
        )
        for row, step in enumerate(case.steps):
            compare(step["i"], f"forwarded, cut every {cut}", step["forwarded"], row in got)


def forwarded(
    operator: str, interval_ms: int, records: Sequence[Record], cuts: Iterable[int] = (), flush_every: int = 0
) -> set[int]:
    """The rows that an operator of a trace forwards."""
    kind = KINDS[operator]
    spec = DeduplicateSpec(kind, None if kind == "by_key" else mapper("id"), interval_ms, "dedup")
    results = Task(spec, pa.string(), [VALUE]).run(records, list(cuts), flush_every=flush_every)
    return {int(row) for result in results for row in result.sequence}
