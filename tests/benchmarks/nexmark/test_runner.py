from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import pytest

from benchmarks.measure import Cost
from benchmarks.nexmark.answers import ANSWERS
from benchmarks.nexmark.contestants.registry import CONTESTANTS
from benchmarks.nexmark.contestants.script import DuckDB
from benchmarks.nexmark.events import Parameters
from benchmarks.nexmark.published import PUBLISHED
from benchmarks.nexmark.report import notes, table
from benchmarks.nexmark.runner import Runner
from benchmarks.runner import Measured


class Forgetful(DuckDB):
    """Leaves its first row out."""

    name = "forgetful"
    title = "A forgetful one"
    queries = ("q2", "q12")
    differs: ClassVar = {"q12": "it is forgetful"}

    def answer(self, query, output):
        return f"({super().answer(query, output)} OFFSET 1)"


def test_costs_are_measured_and_answers_compared(tmp_path, capsys) -> None:
    contestants = [DuckDB(), Forgetful()]
    measured = Runner(tmp_path, Parameters(events=5_000)).run(contestants, ["q2", "q12", "q0"], repeats=1)
    assert [(one.contestant, one.work) for one in measured] == [
        ("duckdb", "q2"),
        ("forgetful", "q2"),
        ("duckdb", "q12"),
        ("forgetful", "q12"),
        ("duckdb", "q0"),
    ]
    assert all(one.largest == 5_000 and one.costs[5_000][0].cpu_seconds > 0 for one in measured)
    wrong = [one for one in measured if one.differences]
    assert [(one.contestant, one.work) for one in wrong] == [("forgetful", "q2")]
    assert "missing: " in wrong[0].differences[-1]
    assert "WRONG" in table(measured, contestants)
    assert capsys.readouterr().out.count("duckdb q0") == 2


class Endless(DuckDB):
    """Never ends, or ends badly at once."""

    name = "endless"
    title = "An endless one"
    queries = ("q2", "q12")

    def command(self, query, dataset, output):
        return ["sleep", "600"] if query == "q2" else ["false"]


@pytest.mark.long
def test_who_comes_to_no_end_does_not_keep_the_others(tmp_path) -> None:
    contestants = [Endless(), DuckDB()]
    runner = Runner(tmp_path, Parameters(events=5_000), limit_seconds=5)
    measured = runner.run(contestants, ["q2", "q12"], repeats=2)
    assert [one.failed for one in measured] == ["no end in 5 s", None, "exit code 1", None]
    text = table(measured, contestants)
    assert "failed: no end in 5 s" in text
    assert "failed: exit code 1" in text
    assert [one.as_json()["failed"] for one in measured] == [one.failed for one in measured]


def test_the_table_has_the_costs_and_their_means() -> None:
    measured = [
        Measured(contestant, query, {1: [Cost(1.0, empty, 1 << 20)] * 2, 1_000_000: [Cost(2.0, full, 3 << 20)] * 2})
        for contestant, query, full, empty in (
            ("hindstream", "q0", 3.0, 2.0),
            ("hindstream", "q7", 6.0, 2.0),
            ("duckdb", "q0", 4.5, 0.5),
            ("duckdb", "q7", 4.5, 0.5),
        )
    ]
    contestants = [one for one in CONTESTANTS if one.name in {"hindstream", "duckdb"}]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(measured, contestants).splitlines()[2:]]
    assert rows[2] == ["q0", "1.00 / 3.00, 3.0 MiB", "4.00 / 4.50, 3.0 MiB", "6.45", "2.29"]
    assert rows[4][:3] == ["net / Hindstream", "1.00 (2)", "2.00 (2)"]
    assert rows[5][:3] == ["gross / Hindstream", "1.00 (2)", "1.06 (2)"]
    assert all(published.source in notes(contestants) for published in PUBLISHED)


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda one: one.name)
def test_contestants_know_their_queries(contestant) -> None:
    assert set(contestant.differs) <= set(contestant.queries) <= set(ANSWERS)
    assert len({one.name for one in CONTESTANTS}) == len(CONTESTANTS)


def test_scripts_import_nothing_of_ours() -> None:
    peers = Path(sys.modules["benchmarks"].__file__).parent / "peers"
    scripts = list(peers.glob("nexmark_*.py"))
    assert scripts
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert not [line for line in text.splitlines() if line.startswith(("from benchmarks", "from statelib"))]
