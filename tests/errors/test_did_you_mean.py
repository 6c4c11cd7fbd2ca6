"""Mistyped names: the nearest ones, or all of them, each once."""

from __future__ import annotations

import ast

from statelib.errors.did_you_mean import did_you_mean
from tests.conftest import ROOT


def test_the_nearest_names_or_all_of_them() -> None:
    assert did_you_mean("flihts", ["flights", "weather"], "one of:") == "did you mean flights?"
    assert did_you_mean("x", ["flights", "weather"], "one of:") == "one of: flights, weather"
    assert did_you_mean("x", [], "one of:") == "one of: none"
    twice = ["flights", "weather", "flights"]
    assert did_you_mean("flihts", twice, "one of:") == "did you mean flights?"
    assert did_you_mean("x", twice, "one of:") == "one of: flights, weather"


def test_no_caller_lists_the_names_itself() -> None:
    """All names follow ``otherwise``: a text that is computed would have them, or a sentence, before the list."""
    calls = {
        f"{file.relative_to(ROOT)}:{call.lineno}": call.args[2]
        for package in ("hindstream", "statelib")
        for file in (ROOT / package).rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "did_you_mean"
    }
    assert len(calls) > 10
    assert [place for place, text in calls.items() if not isinstance(text, ast.Constant)] == []
