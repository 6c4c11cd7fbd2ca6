"""The examples in KIP-655's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statelib.operators.windows.definition import SessionWindows, TimeWindows
from statelib.records.batch import NO_OFFSET
from tests.golden.scenarios.deduplicate import KINDS, forwarded
from tests.golden.scenarios.distinct import windows_opened
from tests.operators.task import Record

CASES = json.loads((Path(__file__).parent / "data" / "kip655-deduplicate.json").read_text())["cases"]


@pytest.mark.parametrize("every", [1, 100])
@pytest.mark.parametrize("case", [c for c in CASES if c["operator"] in KINDS], ids=lambda case: case["case"])
def test_deduplicate(case: dict[str, Any], every: int) -> None:
    steps = case["steps"]
    records = [
        Record(step["key"], {"id": step["id"]}, step["timestamp"], step.get("offset", NO_OFFSET)) for step in steps
    ]
    got = forwarded(
        case["operator"], case["interval_ms"], records, range(0, len(steps), every), flush_every=int(every == 1)
    )
    assert [row in got for row in range(len(steps))] == [step["forwarded"] for step in steps]


@pytest.mark.parametrize("every", [1, 100])
@pytest.mark.parametrize("case", [c for c in CASES if c["operator"] == "distinct"], ids=lambda case: case["case"])
def test_distinct(case: dict[str, Any], every: int) -> None:
    records = [Record(step["key"], "v", step["timestamp"], row) for row, step in enumerate(case["steps"])]
    opened = windows_opened(windows_of(case["window"]), records, every, flush_every=int(every == 1))
    got = [
        {"key": records[row].key, "window": [start, end], "record_timestamp": timestamp}
        for row, (start, end, _, timestamp) in sorted(opened.items())
    ]
    assert got == case["output"]


def windows_of(window: dict[str, Any]) -> TimeWindows | SessionWindows:
    """The KIP's windows, with the grace period of 24 hours that these had when it was written."""
    day_ms = 86_400_000
    if window["type"] == "session":
        return SessionWindows(window["gap_ms"], day_ms)
    return TimeWindows(window["size_ms"], window["size_ms"], day_ms)
