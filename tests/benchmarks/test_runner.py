from __future__ import annotations

import pytest

from benchmarks.contestants.duckdb import DuckDB
from benchmarks.contestants.hindstream import HindstreamLocal, HindstreamSession
from benchmarks.dataset import Parameters
from benchmarks.runner import Runner
from benchmarks.works import WORKS


@pytest.mark.long
@pytest.mark.slow
def test_each_size_is_measured_as_often_as_asked_and_answers_are_compared(tmp_path, capsys) -> None:
    runner = Runner(tmp_path, Parameters(campaigns=20, records_per_second=2.0), sizes=[3_000, 1_000])
    contestants = [HindstreamLocal(), HindstreamSession(), DuckDB()]
    ours, warm, theirs = runner.run(contestants, [WORKS["W2"]], repeats=1)
    for one in (ours, warm, theirs):
        assert {size: len(costs) for size, costs in one.costs.items()} == {1_000: 1, 3_000: 1}
        assert one.records(3_000) == 3_000 + runner.datasets[1].rates > 3_000
        assert one.gross(1_000).value > 0
        assert one.differences == []
    for size in (1_000, 3_000):  # what the session has imported, its commands do not
        assert warm.gross(size).value < ours.gross(size).value
    assert ours.details["records"] == ours.records(3_000)
    assert capsys.readouterr().out.count("duckdb W2 ") == 3  # once to warm up
