"""Each room says what it is and which file to open first (docs/decisions/0039-rooms.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACES = [face for package in ("hindstream", "statelib") for face in (ROOT / package).rglob("*/__init__.py")]


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.parent.relative_to(ROOT).as_posix())
def test_a_room_says_where_to_begin(face: Path) -> None:
    docstring = ast.get_docstring(ast.parse(face.read_text(encoding="utf-8"))) or ""
    (begin,) = re.findall(r"Begin\s+with\s+(.*?)(?:\.(?:\s|$)|\Z)", docstring, re.DOTALL)
    named = re.findall(r"`(\w+)`", begin)
    assert named
    below = {path.stem for path in face.parent.rglob("*.py")} | {path.name for path in face.parent.iterdir()}
    assert {*named} <= below


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.parent.relative_to(ROOT).as_posix())
def test_a_list_of_modules_names_those_that_there_are(face: Path) -> None:
    docstring = ast.get_docstring(ast.parse(face.read_text(encoding="utf-8"))) or ""
    items = re.findall(r"^- .*\n(?:  .*\n)*", f"{docstring}\n", re.MULTILINE)
    named = {name for item in items for name in re.findall(r"`(\w+)`", item)}
    rooms = {path.parent.name for path in face.parent.glob("*/__init__.py")}
    assert named <= rooms | {path.stem for path in face.parent.glob("*.py")}
