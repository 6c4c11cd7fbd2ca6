"""The examples of eviction in KIP-328's text, in its semantics."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from statelib.operators.suppress.store import SuppressionBufferStore
from statelib.serdes import serde_for
from tests.operators.chain import Chain, Record

CASES = json.loads((Path(__file__).parent / "data" / "kip328-suppress.json").read_text())["cases"]


def spec_of(case: dict[str, Any]) -> Suppress:
    limit = case["limit"]
    buffer: BufferConfig = BufferConfig.unbounded()
    if "max_records" in limit:
        buffer = BufferConfig.max_records(limit["max_records"])
    if "max_bytes" in limit:
        buffer = BufferConfig.max_bytes(limit["max_bytes"])
    clock = "record" if "needs clock=record" in (case["note"] or "") else "first"
    wait = timedelta(milliseconds=limit.get("time_limit_ms", 1_000_000))
    return Suppress("buffer", Suppressed.until_time_limit(wait, buffer, clock=clock))


def held(chain: Chain) -> list[list[object]]:
    """The buffer's content by slot: [key, value, timestamp]."""
    store = SuppressionBufferStore(chain.backend, "buffer", suffix_words=0)
    if store.header.schema is None:
        return []
    serde = serde_for(pa.struct(list(store.header.schema)))
    entries = [(e.key.decode(), serde.deserialize(pa.array([e.row]))[0].as_py()) for e in store.oldest()]
    return [[key, row["value"], row["timestamp"]] for key, row in entries]


@pytest.mark.parametrize("table", [True, False], ids=["with prior", "without"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_each_step(case: dict[str, Any], table: bool) -> None:
    chain = Chain([spec_of(case)], pa.string(), table=table)
    for step in case["steps"]:
        (emitted,) = chain.process([Record(step["key"], step["value"], step["timestamp"])])
        assert [[row.key, row.value, row.timestamp] for row in emitted] == step["emitted"]
        chain.restart()
        assert held(chain) == step["buffer_after"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_one_batch(case: dict[str, Any]) -> None:
    chain = Chain([spec_of(case)], pa.string())
    steps = case["steps"]
    (emitted,) = chain.process([Record(step["key"], step["value"], step["timestamp"]) for step in steps])
    expected = [[i, *record] for i, step in enumerate(steps) for record in step["emitted"]]
    assert [[row.sequence, row.key, row.value, row.timestamp] for row in emitted] == expected
    chain.flush()
    assert held(chain) == steps[-1]["buffer_after"]
