from __future__ import annotations

import pytest

from benchmarks.contestants.registry import CONTESTANTS
from benchmarks.measure import Cost
from benchmarks.runner import Measured
from benchmarks.targets import TARGETS, summary, verdicts
from benchmarks.works import WORKS

SIZES = (1_000_000, 2_000_000, 10_000_000)


def one(contestant: str, net_us: float, work: str = "W1", start: float = 5.0) -> Measured:
    """Runs that scatter by a hundredth."""
    costs = {n: [Cost(9.0, (start + net_us * n / 1e6) * f, 1) for f in (0.99, 1.01)] for n in SIZES}
    return Measured(contestant, work, costs)


def found(*measured: Measured) -> dict[str, tuple[float | None, bool | None]]:
    return {v.target.name: (v.ratio and round(v.ratio.value, 3), v.is_met) for v in verdicts(measured)}


def test_targets_are_of_works_and_contestants_that_exist() -> None:
    names = {contestant.name for contestant in CONTESTANTS}
    assert {target.work for target in TARGETS} == set(WORKS)
    assert {name for target in TARGETS for name in (*target.ours, *target.against)} < names
    assert all((target.at_most is None) != (target.at_least is None) for target in TARGETS)


def test_a_peer_must_cost_at_least_and_the_floor_at_most_so_many_times() -> None:
    assert found(one("hindstream", 1.0), one("floor", 0.25), one("kafka-streams", 12.0)) == {
        "W1/kafka-streams net": (12.0, True),
        "W1/floor net": (4.0, False),
    }


def test_of_several_the_cheapest_counts_net_and_gross_at_its_size() -> None:
    measured = [one("hindstream", 0.3), one("duckdb", 1.5, start=0.1), one("polars", 0.6, start=0.1)]
    assert found(*measured) == {
        "W1/duckdb or polars net": (0.5, False),
        "W1/polars gross at 10,000,000": (pytest.approx(8 / 6.1, abs=0.001), True),
        "W1/polars gross at 2,000,000": (pytest.approx(5.6 / 1.3, abs=0.001), True),
    }


KAFKA = one("kafka-streams", 6.0, start=2.0)
GROSS = "gross at 2,000,000"


def test_the_local_runner_has_targets_of_its_own() -> None:
    measured = [one("hindstream-local", 0.5, start=1.0), KAFKA]
    assert found(*measured) == {f"W1 warm or local/kafka-streams {GROSS}": (7.0, True)}


@pytest.mark.parametrize("better", ["hindstream-local", "hindstream-session"])
def test_the_better_of_warm_and_local_counts_and_is_named(better) -> None:
    (worse,) = {"hindstream-local", "hindstream-session"} - {better}
    (verdict,) = verdicts([one(worse, 0.5, start=4.0), KAFKA, one(better, 0.5, start=1.0)])
    assert str(verdict) == f"W1 warm or local/kafka-streams {GROSS} 7 (at least 4) by {better}; {worse} 2.8"
    assert verdict.is_met
    assert verdict.as_json()["by"] == better
    assert verdict.as_json()["others"][worse]["value"] == pytest.approx(2.8)


def test_of_one_size_gross_is_compared_alone() -> None:
    measured = [one("hindstream", 0.3), one("spark-batch", 20.0, start=8.0)]
    for of in measured:
        of.costs = {2_000_000: of.costs[2_000_000]}
    assert found(*measured) == {f"W1/spark-batch {GROSS}": (pytest.approx(24 / 2.8, abs=0.001), True)}


def test_neither_warm_nor_local_stands_for_a_run_from_cold() -> None:
    measured = [one("hindstream-session", 0.3), one("hindstream-local", 0.3), one("spark-batch", 6.0)]
    assert verdicts(measured) == []


def test_the_summary_names_what_is_met_and_missed() -> None:
    assert summary(verdicts([one("hindstream", 1.0), one("floor", 0.25), one("kafka-streams", 12.0)])).split("\n") == [
        "1 of 2 targets met (44 in all)",
        "missed: W1/floor net 4 (at most 2)",
        "met: W1/kafka-streams net 12 (at least 10)",
    ]


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert verdicts([one("hindstream", 1.0, "W2"), one("floor", 0.5)]) == []
    assert summary([]) == "0 of 0 targets met (44 in all)"


def test_what_costs_no_more_than_its_start_is_neither_met_nor_missed() -> None:
    assert found(one("hindstream", -0.01), one("floor", 0.5)) == {"W1/floor net": (None, None)}
    assert summary(verdicts([one("hindstream", -0.01), one("floor", 0.5)])).endswith("to tell: W1/floor net")


def test_a_ratio_of_uncertain_figures_is_marked() -> None:
    shaky = one("floor", 0.5, start=0.1)
    for costs in shaky.costs.values():
        costs[:] = [Cost(1.0, costs[0].cpu_seconds * factor, 1) for factor in (0.8, 1.2)]
    (verdict,) = verdicts([one("hindstream", 1.0), shaky])
    assert verdict.ratio is not None
    assert f"±{verdict.ratio.relative_error:.0%}"[:-1] in str(verdict)
    assert 0.2 < verdict.ratio.relative_error < 0.6
