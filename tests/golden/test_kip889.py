"""The temporal join in KIP-889's motivation: as a join, and by hand, with the stores of its public interfaces."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from statelib import Stores
from statelib.operators.mappers.mapping import mapper
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


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_temporal_join_by_hand(case: dict[str, Any], persistent: bool, tmp_path: Path) -> None:
    make = Stores.persistent_versioned_key_value_store if persistent else Stores.in_memory_versioned_key_value_store
    supplier = make("b", timedelta(seconds=1))
    assert supplier.history_retention_ms == 1_000
    typed = Stores.versioned_key_value_store_builder(supplier, pa.string(), pa.string()).build()
    typed.init(tmp_path / "typed" if persistent else None)
    as_bytes = supplier.get().init(tmp_path / "bytes" if persistent else None)
    for side, time, value, joined in case["steps"]:
        if side == "B":
            typed.put("k", value, time)
            as_bytes.put(b"k", value.encode(), time)
        else:
            assert [value, typed.get("k", time).value] == joined
            assert as_bytes.get(b"k", time)[8:] == joined[1].encode()
    typed.close()
    as_bytes.close()
