"""ARCHITECTURE.md draws the rooms that there are, and a record goes the way that it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.named import wrong
from tests.docs.passed import passed
from tests.docs.rooms import PAGE, Code, drawn, flowchart, house, reduced

TEXT = PAGE.read_text(encoding="utf-8")
STEP = re.compile(r"^\d+\. `(?P<file>[\w/]+\.py)` \(`(?P<function>[\w.]+)`\): (?P<says>.*)", re.MULTILINE)


def test_what_the_page_names_is_there() -> None:
    assert wrong("ARCHITECTURE.md") == []


def test_the_drawings_are_those_of_the_code() -> None:
    assert TEXT.count("```mermaid") == 3
    assert drawn(TEXT, house()) == TEXT, "python -m tests.docs.rooms draws them anew"


def code(folder: Path, files: dict[str, str]) -> Code:
    for name, source in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return Code(folder, ("house",))


def test_rooms_are_folders_and_files_beside_them(tmp_path: Path) -> None:
    files = {
        "house/__init__.py": "from house.attic.box import Box\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n  from house.cellar.wine import Wine",
        "house/attic/__init__.py": "",
        "house/attic/box.py": "def f():\n  import house.kitchen.pan",
        "house/kitchen/__init__.py": "",
        "house/kitchen/pan.py": "from house import Wine\nfrom house.door import key",
        "house/cellar/__init__.py": "",
        "house/cellar/wine.py": "import json",
        "house/door.py": "if TYPE_CHECKING:\n  from house.cellar import wine",
        "house/__main__.py": "import house.attic.box",
    }
    rooms = code(tmp_path, files).rooms("house")
    assert rooms == {"attic": {"kitchen"}, "kitchen": {"cellar", "door"}, "cellar": set(), "door": {"cellar"}}
    chart = flowchart(code(tmp_path, files), "house").splitlines()
    assert "    house_kitchen --> house_door" in chart
    assert "    house_kitchen --> house_cellar" not in chart


@pytest.mark.parametrize(
    ("rooms", "without"),
    [
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, {"a": {"b"}, "b": {"c"}, "c": set()}),
        ({"a": {"b"}, "b": {"a"}}, {"a": {"b"}, "b": {"a"}}),
        (
            {"top": {"a", "b", "c"}, "a": {"b", "c"}, "b": {"a", "c"}, "c": set()},
            {"top": {"a", "b"}, "a": {"b", "c"}, "b": {"a"}, "c": set()},
        ),
    ],
    ids=["a way round", "a circle", "a circle that stands on one"],
)
def test_what_others_imply_is_not_drawn(rooms: dict[str, set[str]], without: dict[str, set[str]]) -> None:
    assert reduced(rooms) == without


def functions(file: Path) -> set[str]:
    """Functions, methods and classes, each by its name within the file."""
    names = set()

    def collect(node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                names.add(within + child.name)
                collect(child, f"{within}{child.name}.")

    collect(ast.parse(file.read_text(encoding="utf-8")), "")
    return names


def test_a_record_goes_the_way_that_the_page_says(tmp_path: Path) -> None:
    way = TEXT.split("## A record's way\n")[1].split("\nThen ")[0]
    phases = {part.partition("\n")[0]: [*STEP.finditer(part)] for part in way.split("### ")[1:]}
    assert [len(steps) for steps in phases.values()] == [
        len(re.findall(r"^\d+\.", p, re.MULTILINE)) for p in way.split("### ")[1:]
    ]
    told = passed(tmp_path)
    assert list(phases) == list(told)
    for phase, steps in phases.items():
        named = [(step["file"], step["function"]) for step in steps]
        assert [name for name in named if name[1] not in functions(ROOT / name[0])] == []
        here = [f"{step['file']}:{step['function']}" for step in steps if not step["says"].startswith("*")]
        # A class is passed where one is made of it.
        order = [name for name in told[phase] if name in here or name.removesuffix(".__init__") in here]
        assert [name.removesuffix(".__init__") for name in order] == here, phase
