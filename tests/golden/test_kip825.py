"""Final results of windows as Kafka Streams 4.3 forwards them, losses included (KIP-825): recorded programs.

They are those of `tests.differential.closing`, from seed 1,000 on, of which at least two results came. They were
recorded without headers.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from tests.differential.hindstream import in_batches
from tests.differential.program import Program

RECORDED = Path(__file__).parent / "data" / "emit-on-window-close.jsonl.gz"
CASES = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_same_results_are_forwarded_and_lost(number: int) -> None:
    program = Program.from_json(json.dumps(CASES[number]["program"]))
    rng = Random(number)
    cuts = [rng.randint(1, 4) for _ in program.records]
    rows = in_batches(program, cuts, flushed=number % 2 == 0, semantics="kafka-4.3")["out"]
    assert [row[:-1] for row in rows] == CASES[number]["out"]


def test_some_are_lost() -> None:
    """And by default none is. (Of sessions there may be fewer: those that the library forgets are longer here.)"""
    lost = []
    for case in CASES:
        program = Program.from_json(json.dumps(case["program"]))
        (windowed,) = (step for step in program.steps if step["op"] == "windowed")
        if windowed["windows"]["kind"] == "time" and not any(step["op"] == "group_by" for step in program.steps):
            lost.append(len(in_batches(program, [], flushed=False, semantics="kip")["out"]) - len(case["out"]))
    assert min(lost) >= 0
    assert sum(lost) > len(lost)
