"""``distinct``: KIP-655's initial proposal over traces of its plain model, in several cuts of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.windows.definition import SessionWindows, TimeWindows
from tests.operators.task import Record, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.golden.scenario import Compare
    from tests.golden.trace import Case


def check(case: Case, compare: Compare) -> None:
    """One batch; batches of a few records with a flush and a restart after each; a record at a time without."""
    size, grace = case.params["size"], case.params["grace"]
    windows = SessionWindows(size, grace) if case.params["window"] == "session" else TimeWindows(size, size, grace)
    records = [Record(step["key"], f"v{step['i']}", step["ts"], step["i"]) for step in case.steps]
    for cut, flush_every in ((len(records), 0), (7, 1), (1, 0)):
        opened = windows_opened(windows, records, cut, flush_every)
        for step in case.steps:
            expected = None if step["window"] is None else (*step["window"], f"v{step['i']}", step["ts"])
            compare(step["i"], f"opened, cut every {cut}", expected, opened.get(step["i"]))


def windows_opened(
    windows: TimeWindows | SessionWindows, records: Sequence[Record], cut: int, flush_every: int = 0
) -> dict[int, tuple[int, int, str, int]]:
    """By row: the window that the record has opened, with the value and timestamp that were forwarded."""
    task = Task(Distinct("distinct", windows), pa.string(), [pa.string()])
    results = task.run(records, range(0, len(records), cut), flush_every=flush_every)
    assert task.metrics.unaccounted == 0
    return {
        int(result.sequence[row]): (
            int(result.windows.start[row]),
            int(result.windows.end[row]),
            result.value[row].as_py(),
            int(result.timestamp[row]),
        )
        for result in results
        if result.windows is not None
        for row in range(len(result))
    }
