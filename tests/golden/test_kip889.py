"""The temporal join in KIP-889's motivation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from statelib.operators.mapping import mapper
from tests.operators.joined_table import STREAM, TABLE, JoinedTable
from tests.operators.task import Record, Task

CASES = json.loads((Path(__file__).parent / "data" / "kip889-versioned.json").read_text())["cases"]


@pytest.mark.parametrize("every", [1, 100])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_temporal_join(case: dict[str, Any], every: int) -> None:
    records = [
        Record("k", value, time, row, STREAM if side == "A" else TABLE)
        for row, (side, time, value, _) in enumerate(case["steps"])
    ]
    join = JoinedTable(mapper({"left": "left", "right": "right"}), retention_ms=1_000)
    results = Task(join, pa.string(), [pa.string()] * 2).run(
        records, range(0, len(records), every), flush_every=int(every == 1)
    )
    values = [[value["left"], value["right"]] for result in results for value in result.value.to_pylist()]
    assert values == [step[3] for step in case["steps"] if step[3] is not None]
