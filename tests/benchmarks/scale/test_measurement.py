from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pytest

from benchmarks.scale import __main__ as scale
from benchmarks.scale.__main__ import MEASUREMENTS, resized
from benchmarks.scale.diff import Diff
from benchmarks.scale.estimates import _off
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


def test_a_flag_is_a_word() -> None:
    assert resized(Diff(on_spark=True), ["diff.on_spark=false"]) == Diff(on_spark=False)


@dataclass
class Answering(Measurement):
    """Answers, and misses a target."""

    name: ClassVar[str] = "answering"
    right: bool = True

    def figures(self, folder: Path) -> Iterator[Figure]:
        yield Figure("slow", 2.0, at_most=1)
        yield Figure.of_answers("answers equal", are_right=self.right)


@pytest.mark.parametrize(("said", "code"), [("true", None), ("False", "wrong answers: answers equal")])
def test_a_wrong_answer_fails_and_a_missed_target_does_not(
    said: str, code: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scale, "MEASUREMENTS", (Answering(),))
    output = str(tmp_path / "scale.json")
    monkeypatch.setattr(sys, "argv", ["scale", "--set", f"answering.right={said}", "--output", output])
    with nullcontext() if code is None else pytest.raises(SystemExit, match=code):
        scale.main()
    assert ("1 of 2" if code is None else "0 of 2") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("estimated", "measured", "factor", "is_met"),
    [(3.0, 2.0, 1.5, True), (2.0, 3.2, 1.6, False), (0.0, 0.0, 1.0, True), (0.0, 1.0, float("inf"), False)],
)
def test_an_estimate_is_off_by_a_factor_either_way(estimated, measured, factor, is_met) -> None:
    figure = _off("CPU", estimated, measured)
    assert (figure.value, figure.is_met) == (pytest.approx(factor), is_met)


def test_all_are_called_by_different_names() -> None:
    assert len({measurement.name for measurement in MEASUREMENTS}) == len(MEASUREMENTS) == 14
