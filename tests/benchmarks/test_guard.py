from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import guard


@pytest.mark.slow
def test_every_job_runs_and_gets_a_ratio() -> None:
    found = guard.ratios(1, guard.jobs(), replace(guard.PARAMETERS, records=3_000))
    assert list(found) == list(guard.jobs())
    assert min(found.values()) > 0


@pytest.mark.parametrize(("first", "again", "passes"), [(1.28, None, True), (1.32, 1.31, False), (1.32, 1.28, True)])
def test_what_is_slower_than_recorded_twice_fails(monkeypatch, tmp_path, capsys, first, again, passes) -> None:
    monkeypatch.setattr(guard, "RECORDED", tmp_path / "recorded.json")
    guard.RECORDED.write_text(json.dumps({"W1": 1.0, "W2": 1.0}), encoding="utf-8")
    found = iter([{"W1": first, "W2": 0.5, "new": 9.0}, {"W1": again}])
    asked = []
    monkeypatch.setattr(guard, "ratios", lambda _, names: asked.append([*names]) or next(found))
    monkeypatch.setattr(guard, "starts", lambda _: {})
    assert guard.check(3) is passes
    assert asked == [[*guard.jobs()], ["W1"]][: 1 if again is None else 2]
    said = capsys.readouterr().out
    assert ("slower than recorded: none" in said) is passes
    assert f"in the middle {(min(first, again or first) + 0.5) / 2:.2f} times what is recorded" in said


def test_all_that_is_recorded_is_still_measured() -> None:
    assert json.loads(guard.RECORDED.read_text(encoding="utf-8")).keys() == {*guard.jobs(), *guard.STARTS}


@pytest.mark.parametrize(("first", "again", "passes"), [(1.35, None, True), (1.45, 1.42, False), (1.45, 1.3, True)])
def test_a_start_may_scatter_more_and_is_measured_again_alone(monkeypatch, tmp_path, first, again, passes) -> None:
    monkeypatch.setattr(guard, "RECORDED", tmp_path / "recorded.json")
    guard.RECORDED.write_text(json.dumps({"W1": 1.0, "start": 1.0}), encoding="utf-8")
    jobs, found = [], iter([{"start": first}, {"start": again}])
    monkeypatch.setattr(guard, "ratios", lambda _, names: jobs.append([*names]) or {"W1": 1.0})
    monkeypatch.setattr(guard, "starts", lambda _: next(found))
    assert guard.check(3) is passes
    assert jobs == [[*guard.jobs()]]


@pytest.mark.long
def test_every_start_gets_a_ratio() -> None:
    found = guard.starts(1)
    assert tuple(found) == guard.STARTS
    assert found["start"] > 0
