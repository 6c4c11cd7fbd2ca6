"""A case or some of each fault of the campaign; `tests.faults.campaign` runs any number."""

from __future__ import annotations

import pytest

from tests.faults.calls import why_unsupported
from tests.faults.campaign import runner
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.subject import Difference

pytestmark = pytest.mark.skipif(why_unsupported() is not None, reason=f"{why_unsupported()}")

CASES = [
    "zombie:rewrite/publish.before-commit/overtaken:1",
    "disk-full:spill once:604",  # of a table that is spilled
    "power:cut:7",  # this lost records before the log of a topic was synced, and the others below
]
LONG_CASES = [
    "kill:next/commit.created:1",
    "kill:spill/task.spilled:20",
    "memory:no more:2",
    "zombie:next/task.restored/overtaken by two slices:2",
    "disk-full:next from then on:500",
    "no-permission:next from then on:366",
    "power:cut:1",
    "power:cut:36",
]


@pytest.mark.parametrize("cases", [CASES, pytest.param(LONG_CASES, marks=pytest.mark.long)], ids=["short", "long"])
def test_a_sample(cases: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--case", *cases]) == 0, capfd.readouterr().out
    last = capfd.readouterr().out.splitlines()[-1]
    assert "0 lost records, 0 duplicated records, 0 differing bytes; 0 other failures" in last


@pytest.mark.parametrize(
    "outcome",
    [Outcome(difference=Difference(lost=1)), Outcome(difference=Difference(differing_bytes=3)), Outcome(wrong="hangs")],
)
def test_a_failure_is_shown_with_what_it_takes_to_see_it_again(
    outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    row = runner.Row(Fault("kill", "", lambda *_: [], lambda *_: outcome))
    row.add(Case("kill", "first/plan.created", 2), outcome)
    assert "./dev campaign faults --case 'kill:first/plan.created:2'" in capsys.readouterr().out
    assert row.failures == 1


def test_lost_duplicated_and_differing_are_counted() -> None:
    row = runner.Row(Fault("kill", "", lambda *_: [], lambda *_: Outcome()))
    for outcome in (Outcome(recovered=1), Outcome(difference=Difference(2, 1, 7)), Outcome(refused=1)):
        row.add(Case("kill", "", 0), outcome)
    assert row.figures == (3, 3, 1, 1, 2, 1, 7, 0)


def test_a_case_has_a_name() -> None:
    case = Case("kill", "first/plan.created", 2)
    assert Case.parse(str(case)) == case
