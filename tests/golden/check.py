"""Compares Hindstream with golden traces, step by step.

    python -m tests.golden.check FILE...

prints a line for each scenario and at last ``steps: N, differences: D``; exit code 1 if there is any difference, 2 if
a file cannot be checked.

A scenario ``some-name`` is checked by the module ``tests.golden.scenarios.some_name``, which has one function
``check(case, compare)`` (`tests.golden.scenario`). It runs the case and calls ``compare(step, field, expected, got)``
for everything that the trace says; it raises `UnsupportedCase` at once for a case whose operators do not exist yet. A
step that was never compared is a difference: a checker cannot pass by doing nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tests.golden import scenarios
from tests.golden.scenario import Scenario, UnsupportedCase
from tests.golden.trace import Case, TraceError, read_cases

if TYPE_CHECKING:
    from collections.abc import Iterable

PRINTED_DIFFERENCES = 20


class UnknownScenario(Exception):
    """There is no checker for the scenario of a trace."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the trace says and Hindstream does not."""

    scenario: str
    case: str
    step: int
    field: str
    expected: object
    got: object

    def __str__(self) -> str:
        return (
            f"{self.scenario} / {self.case}, step {self.step}, {self.field}:\n"
            f"  expected {self.expected!r}\n"
            f"  got      {self.got!r}"
        )


@dataclass(slots=True)
class Outcome:
    """What came out of checking cases."""

    cases: int = 0
    steps: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: list[tuple[str, str, int, str]] = field(default_factory=list)
    """(scenario, case, steps, reason)."""

    def add(self, other: Outcome) -> None:
        """Adds another outcome's figures."""
        self.cases += other.cases
        self.steps += other.steps
        self.differences += other.differences
        self.skipped += other.skipped


def check_case(case: Case) -> Outcome:
    """Runs one case through the checker of its scenario.

    Raises:
        UnknownScenario: If there is no checker for it.
    """
    scenario = scenario_of(case)
    outcome = Outcome(cases=1, steps=len(case.steps))
    compared: set[int] = set()

    def differs(step: int, field: str, expected: object, got: object) -> None:
        outcome.differences.append(Difference(case.scenario, case.name, step, field, expected, got))

    def compare(step: int, field: str, expected: object, got: object) -> None:
        compared.add(step)
        if expected != got:
            differs(step, field, expected, got)

    try:
        scenario.check(case, compare)
    except UnsupportedCase as reason:
        return Outcome(skipped=[(case.scenario, case.name, len(case.steps), str(reason))])
    except Exception as error:  # noqa: BLE001 - a checker that fails is a difference, and the next case may pass
        traceback.print_exc()
        differs(max(compared, default=0), "the checker itself", "no error", repr(error))
        return outcome
    for step in range(len(case.steps)):
        if step not in compared:
            differs(step, "anything", "compared", "never compared")
    return outcome


def scenario_of(case: Case) -> Scenario:
    """The checker of the case's scenario."""
    known = sorted(module.name for module in pkgutil.iter_modules(scenarios.__path__))
    name = case.scenario.replace("-", "_")
    if name not in known:
        raise UnknownScenario(
            f"there is no checker for scenario {case.scenario!r}; "
            f"known: {', '.join(module.replace('_', '-') for module in known)}"
        )
    scenario: Scenario = importlib.import_module(f"{scenarios.__name__}.{name}")
    return scenario


def check_file(path: Path, every: int = 1) -> Outcome:
    """Runs all cases of a trace file, or every second, third ... of them."""
    outcome = Outcome()
    for case in islice(read_cases(path), 0, None, every):
        outcome.add(check_case(case))
    return outcome


def main(paths: Iterable[str]) -> int:
    """Checks the files and prints what came out; returns the exit code."""
    total = Outcome()
    for path in map(Path, paths):
        try:
            outcome = check_file(path)
        except (OSError, TraceError, UnknownScenario) as error:
            print(f"error: {path}: {error}", file=sys.stderr)
            return 2
        total.add(outcome)
        print(
            f"{path.name}: cases: {outcome.cases}, steps: {outcome.steps}, "
            f"differences: {len(outcome.differences)}, skipped cases: {len(outcome.skipped)}"
        )
    for scenario, case, steps, reason in total.skipped:
        print(f"skipped: {scenario} / {case} ({steps} steps): {reason}")
    for difference in total.differences[:PRINTED_DIFFERENCES]:
        print(difference)
    if len(total.differences) > PRINTED_DIFFERENCES:
        print(f"... and {len(total.differences) - PRINTED_DIFFERENCES} more")
    print(f"steps: {total.steps}, differences: {len(total.differences)}")
    return 1 if total.differences else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("usage: python -m tests.golden.check FILE...", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
