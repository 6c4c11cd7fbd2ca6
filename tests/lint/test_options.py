"""No command guesses which option a part of its name means: a misspelt one ran for minutes as another."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "dags", "docker", "examples", "hindstream", "spark_jobs", "statelib", "tests")
FILES = [
    file
    for folder in FOLDERS
    for file in (ROOT / folder).rglob("*.py")
    if "ArgumentParser" in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_options_are_given_by_their_whole_names(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ArgumentParser"):
            assert {"allow_abbrev"} & {option.arg for option in node.keywords}, f"line {node.lineno}"
