from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.regression import CONFIDENCE, Estimate, fit, mean_of

SIZES = (500_000, 2_000_000, 5_000_000, 10_000_000)


@given(st.floats(0.01, 30), st.floats(1e-8, 1e-4), st.lists(st.integers(1_000, 20_000_000), min_size=2, unique=True))
def test_a_line_without_scatter_is_found(start, slope, sizes) -> None:
    found = fit(sizes, [start + slope * size for size in sizes])
    largest = start + slope * max(sizes)
    assert found.start.value == pytest.approx(start, abs=1e-6 * largest * max(sizes) / (max(sizes) - min(sizes)))
    spread = max(sizes) - min(sizes)
    assert found.slope.value == pytest.approx(slope, abs=1e-6 * largest / spread)


@pytest.mark.parametrize("sizes", [SIZES, (*SIZES, 20_000_000), (500_000, 1_000_000, 1_500_000, 2_000_000)])
@pytest.mark.parametrize(("start", "slope"), [(11.0, 0.35e-6), (0.3, 0.6e-6), (4.0, 10e-6), (0.05, 0.1e-6)])
@pytest.mark.parametrize("scatter", [0.02, 0.1])
@pytest.mark.parametrize("repeats", [2, 5])
def test_the_interval_covers_the_slope_as_often_as_it_says(sizes, start, slope, scatter, repeats) -> None:
    chance, draws = np.random.default_rng(7), 200
    size = np.repeat(sizes, repeats)
    covered = 0
    for _ in range(draws):
        found = fit(size, (start + slope * size) * (1 + scatter * chance.standard_normal(len(size)))).slope
        covered += abs(found.value - slope) <= found.error
    # Four standard deviations of such a count, and a hundredth because the weights are estimated.
    assert covered / draws == pytest.approx(CONFIDENCE, abs=0.01 + 4 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / draws))


def test_a_disturbed_run_is_seen_in_the_error() -> None:
    size = np.repeat(SIZES, 3)
    cost = (5 + 1e-6 * size) * np.tile([0.99, 1.0, 1.01], 4)
    disturbed = cost.copy()
    disturbed[-1] *= 2
    assert fit(size, cost).slope.relative_error < 0.05
    assert fit(size, disturbed).slope.relative_error > 0.2


def test_the_smaller_of_two_sizes_counts_as_much_as_its_scatter_lets_it() -> None:
    """Equal weights would let the noise of the largest runs move the start by as much."""
    chance, size = np.random.default_rng(3), np.repeat(SIZES, 3)
    starts = [fit(size, (0.3 + 5e-6 * size) * (1 + 0.1 * chance.standard_normal(12))).start.value for _ in range(300)]
    unweighted = [
        np.polyfit(size, (0.3 + 5e-6 * size) * (1 + 0.1 * chance.standard_normal(12)), 1)[1] for _ in range(300)
    ]
    assert np.std(starts) < 0.5 * np.std(unweighted)


def test_two_runs_give_a_line_of_unknown_error() -> None:
    found = fit([1_000, 1_001_000], [2.0, 3.0])
    assert found.slope.value == pytest.approx(1e-6)
    assert found.slope.error == math.inf
    assert found.slope.scaled(1e6).text(2) == "1.00 ±?"
    assert found.slope.as_json()["error"] is None


def test_of_one_size_the_mean_alone_is_known() -> None:
    costs = [2.0, 2.2, 1.8]
    found = fit([5, 5, 5], costs)
    assert not found.slope.is_known
    assert not found.start.is_known
    assert found.mean(costs).value == 2.0
    assert found.mean(costs).error == pytest.approx(mean_of(costs).error)
    assert found.slope.scaled(1e6).text(2) == ""
    assert found.slope.as_json() == {"value": None, "error": None}
    assert found.slope.over(Estimate(1.0, 0.1)) is None
    assert fit([5], [2.0]).mean([2.0]) == Estimate(2.0)


def test_the_error_of_a_mean_is_that_of_all_runs_scatter() -> None:
    chance, size, covered = np.random.default_rng(5), np.repeat(SIZES, 3), 0
    for _ in range(800):
        cost = (5 + 1e-6 * size) * (1 + 0.05 * chance.standard_normal(len(size)))
        found = fit(size, cost).mean(cost[-3:])
        covered += abs(found.value - 15) <= found.error
    assert covered / 800 == pytest.approx(CONFIDENCE, abs=0.035)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.314, 0.05), "0.31"),
        (Estimate(0.314, 0.1), "0.31 ±32 %"),
        (Estimate(0.314, 0.5), "< 0.81"),
        (Estimate(-0.1, 0.3), "< 0.20"),
        (Estimate(0.314), "0.31 ±?"),
    ],
)
def test_what_is_uncertain_by_more_than_a_fifth_is_said_to_be(estimate, text) -> None:
    assert estimate.text(2) == text


def test_errors_of_a_ratio_add_up() -> None:
    ratio = Estimate(2.0, 0.3).over(Estimate(4.0, 0.8))
    assert ratio is not None
    assert ratio.value == 0.5
    assert ratio.relative_error == pytest.approx(0.25)
    assert Estimate(0.1, 0.2).over(Estimate(1.0, 0.1)) is None
    assert Estimate(1.0, 0.1).over(Estimate(-1.0, 0.1)) is None


def test_a_mean_has_the_error_of_its_own_scatter() -> None:
    found = mean_of([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.error == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)  # Student's t, two degrees of freedom
    assert mean_of([1.0]).text(1) == "1.0 ±?"


@pytest.mark.parametrize(("sizes", "costs"), [([5, 5], [0.0, 2.0]), ([1, 2], [0.0, 1.0])], ids=["one size", "two"])
def test_a_run_of_nothing_is_refused(sizes, costs) -> None:
    with pytest.raises(ValueError, match="took nothing"):
        fit(sizes, costs)
