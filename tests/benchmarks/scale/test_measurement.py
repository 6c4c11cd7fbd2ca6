from __future__ import annotations

import pytest

from benchmarks.scale.__main__ import MEASUREMENTS, resized
from benchmarks.scale.estimates import _off
from benchmarks.scale.measurement import Figure
from benchmarks.scale.memory import Memory


@pytest.mark.parametrize(
    ("value", "bounds", "is_met"),
    [
        (2.0, {}, None),
        (2.0, {"at_most": 2}, True),
        (2.1, {"at_most": 2}, False),
        (200.0, {"at_least": 200}, True),
        (199.0, {"at_least": 200}, False),
    ],
)
def test_a_figure_is_held_against_its_target(value, bounds, is_met) -> None:
    figure = Figure("a figure", value, "s", **bounds)
    assert figure.is_met is is_met
    assert figure.as_json()["is_met"] is is_met
    assert ("MISSED" in str(figure)) == (is_met is False)


def test_a_line_says_what_a_figure_is_made_of() -> None:
    figure = Figure("peak", 1234.5, "MiB", at_most=456, details={"imports": 292.25, "records": 20_000_000})
    assert str(figure) == "peak: 1,234 MiB, target at most 456: MISSED (imports 292.2; records 20,000,000)"


def test_sizes_are_set_by_measurement() -> None:
    assignments = ["memory.records=1000", "state.keys=5", "memory.budget_mib=16"]
    assert resized(Memory(), assignments) == Memory(records=1000, budget_mib=16)
    with pytest.raises(SystemExit, match="no size 'record'"):
        resized(Memory(), ["memory.record=1000"])


@pytest.mark.parametrize(
    ("estimated", "measured", "factor", "is_met"),
    [(3.0, 2.0, 1.5, True), (2.0, 3.2, 1.6, False), (0.0, 0.0, 1.0, True), (0.0, 1.0, float("inf"), False)],
)
def test_an_estimate_is_off_by_a_factor_either_way(estimated, measured, factor, is_met) -> None:
    figure = _off("CPU", estimated, measured)
    assert (figure.value, figure.is_met) == (pytest.approx(factor), is_met)


def test_all_are_called_by_different_names() -> None:
    assert len({measurement.name for measurement in MEASUREMENTS}) == len(MEASUREMENTS) == 14
