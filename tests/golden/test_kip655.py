"""The deduplication examples in KIP-655's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statelib.batch import NO_OFFSET
from tests.golden.scenarios.deduplicate import KINDS, forwarded
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
