from __future__ import annotations

from benchmarks.contestants.registry import CONTESTANTS
from benchmarks.measure import Cost
from benchmarks.runner import Measured
from benchmarks.targets import TARGETS, Target, Verdict, summary, verdicts
from benchmarks.works import WORKS


def one(contestant: str, net_us: float, work: str = "W1") -> Measured:
    return Measured(contestant, work, 1_000_000, [Cost(9.0, 5 + net_us, 1)], [Cost(4.0, 5.0, 1)])


def test_targets_are_of_works_and_contestants_that_exist() -> None:
    assert {target.work for target in TARGETS} == set(WORKS)
    assert {target.against for target in TARGETS} < {contestant.name for contestant in CONTESTANTS}


def test_a_peer_must_cost_at_least_and_the_floor_at_most_so_many_times() -> None:
    found = verdicts([one("hindstream", 1.0), one("floor", 0.25), one("kafka-streams", 12.0), one("duckdb", 0.5)])
    assert found == [Verdict(Target("W1", "kafka-streams", 10), 12.0), Verdict(Target("W1", "floor", 3), 4.0)]
    assert [verdict.is_met for verdict in found] == [True, False]


def test_the_summary_names_what_is_met_and_missed() -> None:
    found = verdicts([one("hindstream", 1.0), one("floor", 0.25), one("kafka-streams", 12.0)])
    assert summary(found) == (
        "1 of 2 targets met (16 in all); missed: W1/floor 4.0 (at most 3); met: W1/kafka-streams 12.0 (at least 10)"
    )


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert verdicts([one("hindstream", 1.0, "W2"), one("floor", 0.5)]) == []
    assert summary([]) == "0 of 0 targets met (16 in all)"


def test_what_costs_no_more_than_its_start_is_neither_met_nor_missed() -> None:
    found = verdicts([one("hindstream", -1.0), one("floor", 0.5), one("spark-batch", 5.0)])
    assert [verdict.is_met for verdict in found] == [None, None]
    assert summary(found) == "0 of 2 targets met (16 in all); too little to tell: W1/floor, W1/spark-batch"
