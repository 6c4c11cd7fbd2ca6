"""The golden traces of the repository, and the checker's own behaviour."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden import check, scenarios
from tests.golden.scenario import UnsupportedCase
from tests.golden.trace import TraceError, read_cases

if TYPE_CHECKING:
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case

DATA = Path(__file__).parent / "data"
CHECKERS = sorted(path.stem for path in Path(scenarios.__path__[0]).glob("[a-z]*.py"))
HEADER = {"type": "header", "scenario": "echo", "case": "one", "params": {"p": 1}}
STEPS = [{"type": "step", "i": 0, "out": 5}, {"type": "step", "i": 1, "out": 6}]
END = {"type": "end", "steps": 2}


@pytest.mark.thorough
@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("scenario", CHECKERS)
def test_golden_trace(scenario: str, every: int) -> None:
    path = DATA / f"{scenario.replace('_', '-')}.jsonl.gz"
    outcome = check.check_file(path, every)
    assert outcome.steps > 0
    assert [str(difference) for difference in outcome.differences] == []


def trace(path: Path, *lines: dict[str, Any]) -> Path:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


class Echo:
    """A checker that gives back what it was told to."""

    def __init__(self, *got: object) -> None:
        self.got = got

    def check(self, case: Case, compare: Compare) -> None:
        for step, got in zip(case.steps, self.got, strict=False):
            if isinstance(got, Exception):
                raise got
            compare(step["i"], "out", step["out"], got)


def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], *got: object
) -> tuple[int, str]:
    monkeypatch.setattr(check, "scenario_of", lambda case: Echo(*got))
    code = check.main([str(trace(tmp_path / "echo.jsonl", HEADER, *STEPS, END))])
    return code, capsys.readouterr().out


def test_no_differences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(monkeypatch, tmp_path, capsys, 5, 6)
    assert code == 0
    assert out.splitlines()[-1] == "steps: 2, differences: 0"


def test_a_difference_names_case_step_expected_and_got(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(monkeypatch, tmp_path, capsys, 5, 7)
    assert code == 1
    assert "echo / one, step 1, out:\n  expected 6\n  got      7" in out
    assert out.splitlines()[-1] == "steps: 2, differences: 1"


def test_a_step_that_was_never_compared_is_a_difference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(monkeypatch, tmp_path, capsys, 5)
    assert code == 1
    assert "step 1" in out


def test_an_error_in_the_checker_is_a_difference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(monkeypatch, tmp_path, capsys, 5, ValueError("broken"))
    assert code == 1
    assert "ValueError('broken')" in out


def test_an_unsupported_case_is_skipped_by_name_and_not_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(monkeypatch, tmp_path, capsys, UnsupportedCase("sessions"))
    assert code == 0
    assert "skipped: echo / one (2 steps): sessions" in out
    assert out.splitlines()[-1] == "steps: 0, differences: 0"


def test_at_most_twenty_differences_are_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [{"type": "step", "i": i, "out": i} for i in range(25)]
    monkeypatch.setattr(check, "scenario_of", lambda case: Echo(*[-1] * 25))
    path = trace(tmp_path / "echo.jsonl", HEADER, *steps, {"type": "end", "steps": 25})
    assert check.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert out.count("expected") == 20
    assert out.splitlines()[-2:] == ["... and 5 more", "steps: 25, differences: 25"]


def test_an_unknown_scenario_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(trace(tmp_path / "echo.jsonl", HEADER, *STEPS, END))]) == 2
    assert "no checker for scenario 'echo'" in capsys.readouterr().err


def test_a_missing_file_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(tmp_path / "nothing.jsonl")]) == 2
    assert "nothing.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_trace_is_read(tmp_path: Path, name: str) -> None:
    (case,) = read_cases(trace(tmp_path / name, HEADER, *STEPS, END))
    assert (case.scenario, case.name, case.params, len(case.steps)) == ("echo", "one", {"p": 1}, 2)


@pytest.mark.parametrize(
    "lines",
    [
        [HEADER, *STEPS],
        [HEADER, STEPS[1], END],
        [HEADER, STEPS[0], END],
        [*STEPS, END],
        [HEADER, HEADER, *STEPS, END],
    ],
    ids=["cut off", "step missing", "too few steps", "no header", "two headers"],
)
def test_a_damaged_trace_is_refused(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    with pytest.raises(TraceError):
        list(read_cases(trace(tmp_path / "t.jsonl", *lines)))
