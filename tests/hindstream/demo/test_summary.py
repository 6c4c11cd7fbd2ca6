"""What the demo prints at its end, of runs that were not run."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from hindstream.demo import NAME
from hindstream.demo.summary import print_summary, summary_data
from hindstream.report.documents import load_runs
from statelib.storage import Storage
from tests.hindstream.report.documents import FLIGHTS, WEATHER, make_run

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000


def test_a_program_gets_the_same_numbers(tmp_path: Path) -> None:
    warehouse = Storage(str(tmp_path))
    make_run(warehouse, 1)
    make_run(warehouse, 2, passes=False)
    found = summary_data(warehouse, load_runs(warehouse, NAME))
    assert (found["job"], found["commits"], found["records"]) == (NAME, 1, FLIGHTS + WEATHER)
    assert found["report"].endswith("reports/index.html")


def test_the_time_of_a_month_is_not_that_of_a_failure_before_it(tmp_path: Path) -> None:
    """The second month was planned an hour before it went on: it had failed."""
    warehouse = Storage(str(tmp_path))
    for number in (1, 2):
        make_run(warehouse, number)
    first, second = load_runs(warehouse, NAME)
    earlier = second.plan.model_copy(update={"created_at_ms": second.plan.created_at_ms - HOUR_MS})
    out = io.StringIO()
    print_summary(warehouse, [first, replace(second, plan=earlier)], Console(file=out, width=100))
    months = [
        line.split() for line in out.getvalue().splitlines() if line.endswith(" s ") or line.rstrip().endswith(" s")
    ]
    assert [" ".join(words[-2:]) for words in months] == ["2.30 s", "2.30 s", "4.60 s"]
