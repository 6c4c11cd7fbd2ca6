"""Rows as tables, JSON and CSV."""

from __future__ import annotations

import json

import pytest

from hindstream.console.rows import write_rows

ROW = {"text": b"a reason", "bytes": b"\x00\xff", "inner": {"list": [b"x", b"\n", None]}}


def printed(capsys: pytest.CaptureFixture[str], output: str) -> str:
    write_rows(iter([ROW]), list(ROW), "title", output)
    return capsys.readouterr().out


def test_a_table_shows_bytes_that_are_text_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(capsys, "table").splitlines()[-2]
    assert line.rstrip().split(maxsplit=3) == ["a", "reason", "AP8=", '{"list": ["x", "Cg==", null]}']


def test_programs_get_bytes_as_base64_whatever_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "json"))["text"] == "YSByZWFzb24="
    assert printed(capsys, "csv").splitlines()[1].split(",")[:2] == ["YSByZWFzb24=", "AP8="]


def test_a_table_shows_doubles_without_what_rounding_leaves(capsys) -> None:
    row = {"sum": 0.1 + 0.2, "large": 1e300, "none": float("nan"), "inner": {"x": 1822.8400000000001}, "whole": 3.0}
    write_rows(iter([row]), list(row), "title", "table")
    assert capsys.readouterr().out.splitlines()[4].split() == ["0.3", "1e+300", "NaN", '{"x":', "1822.84}", "3.0"]
    write_rows(iter([row]), list(row), "title", "json")
    assert '"sum": 0.30000000000000004' in capsys.readouterr().out
