from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import guard


@pytest.mark.slow
def test_every_job_runs_and_gets_a_ratio() -> None:
    found = guard.ratios(1, replace(guard.PARAMETERS, records=3_000))
    assert list(found) == list(guard.jobs())
    assert min(found.values()) > 0


@pytest.mark.parametrize(("now", "passes"), [(1.29, True), (1.31, False)])
def test_what_is_slower_than_recorded_fails(monkeypatch, tmp_path, capsys, now, passes) -> None:
    monkeypatch.setattr(guard, "RECORDED", tmp_path / "recorded.json")
    guard.RECORDED.write_text(json.dumps({"W1": 1.0, "W2": 1.0}), encoding="utf-8")
    monkeypatch.setattr(guard, "ratios", lambda _: {"W1": now, "W2": 0.5, "new": 9.0})
    assert guard.check(3) is passes
    assert ("slower than recorded: none" in capsys.readouterr().out) is passes


def test_all_that_is_recorded_is_still_measured() -> None:
    assert json.loads(guard.RECORDED.read_text(encoding="utf-8")).keys() == guard.jobs().keys()
