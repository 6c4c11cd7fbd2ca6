"""Progress: its figures, by a clock that is a parameter, and where they are shown."""

from __future__ import annotations

import io
import sys
from types import ModuleType
from typing import Any

import pytest

from hindstream.console import progress as shown
from hindstream.console.progress import Meter, Progress


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_records_have_a_rate_and_a_time_left() -> None:
    clock = Clock()
    meter = Meter("load", 3_000, unit="records", clock=clock)
    assert meter.figures == "0 of 3,000 records (0 %), 0.00 s so far"
    clock.seconds = 4
    meter.update(1_000)
    assert meter.figures == "1,000 of 3,000 records (33.3 %), 250 a second, 8.00 s left"
    clock.seconds = 70
    meter.update(1_200)
    clock.seconds = 110
    meter.update(2_500)
    assert meter.rate == 1_300 / 40  # of late, not since the beginning
    meter.update(3_000)
    assert meter.seconds_left == 0


@pytest.mark.parametrize(
    ("total", "unit", "done", "figures"),
    [
        (None, "records", 0, "2.00 s so far"),
        (None, "records", 1_000, "1,000 records, 500 a second"),
        (3 << 20, "bytes", 1 << 20, "1.0 MiB of 3.0 MiB (33.3 %), 512.0 KiB a second, 4.00 s left"),
        (12, "slices", 0, "0 of 12 slices (0 %), 2.00 s so far"),
        (0, "records", 0, "0 of 0 records, 2.00 s so far"),
        (10, "records", 20, "20 of 10 records (200.0 %), 10 a second"),
    ],
)
def test_figures_say_what_is_known(total: int | None, unit: str, done: int, figures: str) -> None:
    clock = Clock()
    meter = Meter("load", total, unit=unit, clock=clock)
    clock.seconds = 2
    meter.update(done)
    assert meter.figures == figures


def test_an_attempt_that_begins_anew_has_a_rate_of_its_own() -> None:
    clock = Clock()
    meter = Meter("load", 100, unit="records", clock=clock)
    clock.seconds = 1
    meter.update(90)
    clock.seconds = 2
    meter.update(10)
    clock.seconds = 3
    meter.update(20)
    assert meter.rate == 10


def test_without_a_terminal_there_is_a_line_every_ten_seconds_on_the_standard_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, errors = Clock(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    with Progress("slices", 12, unit="slices", clock=clock) as outer:
        monkeypatch.setattr(sys, "stderr", io.StringIO())  # as while Airflow runs
        screen: Any = shown._screen
        outer.advance(3)
        with Progress("stage 1", 1_000, clock=clock) as inner:
            for second in range(1, 26):
                clock.seconds = second
                inner.update(20 * second)
                screen._shows.show(screen._meters)
        clock.seconds = 31
        outer.label("more")
        screen._shows.show(screen._meters)
    first, second, third = errors.getvalue().splitlines()
    assert first == (
        "slices: 3 of 12 slices (25.0 %), 30.0 s left; stage 1: 200 of 1,000 records (20.0 %), 20 a second, 40.0 s left"
    )
    assert second.endswith("stage 1: 400 of 1,000 records (40.0 %), 20 a second, 30.0 s left")
    assert third.startswith("more: 3 of 12 slices")
    assert shown._screen is None


def test_the_next_begins_anew_after_an_error() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"), Progress("load"):
            raise ValueError("broken")
        assert shown._screen is None


def test_a_notebook_has_lines_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            seen.append(data["text/plain"])

    class Shell:
        kernel = object()

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        return Handle()

    ipython, displays = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = Shell  # type: ignore[attr-defined]
    displays.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    clock = Clock()
    with Progress("load", 10, clock=clock):
        pass
    assert seen == ["load: 0 of 10 records (0 %), 0.00 s so far", ""]
