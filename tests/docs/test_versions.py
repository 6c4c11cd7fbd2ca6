"""docs/tested-versions.md has what was tried of the ranges in pyproject.toml."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.campaigns.versions import COLUMNS, SHOWN, Row, record
from tests.conftest import ROOT
from tests.docs.named import wrong

VERSIONS = (ROOT / "docs" / "tested-versions.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("page", ["docs/kubernetes.md", "docs/tested-versions.md", "docs/versions.md"])
def test_what_the_page_names_is_there(page: str) -> None:
    assert wrong(page) == []


def ranges() -> dict[str, Requirement]:
    extras = PROJECT["optional-dependencies"]
    needs = [Requirement(text) for text in (*PROJECT["dependencies"], *extras["airflow"])]
    return {need.name: need for need in needs}


def rows() -> list[list[str]]:
    header = f"| {' | '.join(COLUMNS)} |\n"
    table = VERSIONS.split(header)[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


def test_what_was_tried_of_the_ranges_is_in_them_and_works() -> None:
    tried = [row for row in rows() if row[1] in {"locked", "lowest", "newest"}]
    assert {row[1] for row in tried} == {"locked", "lowest", "newest"}
    needs = ranges()
    for row in tried:
        versions = dict(zip(SHOWN, row[2:], strict=False))
        assert [name for name, version in versions.items() if version not in needs[name].specifier] == [], row
        assert row[-2] == "ok", row
        assert re.fullmatch(r"\d+ passed", row[-1]), row


def test_the_lowest_versions_are_those_that_the_ranges_begin_with() -> None:
    (lowest,) = (row for row in rows() if row[1] == "lowest")
    begins = {name: min(spec.version for spec in ranges()[name].specifier if spec.operator == ">=") for name in SHOWN}
    versions = dict(zip(SHOWN, lowest[2:], strict=False))
    assert {
        name: version for name, version in versions.items() if not f"{version}.".startswith(f"{begins[name]}.")
    } == {}


def test_what_is_recorded_takes_the_place_of_what_was_tried_before(tmp_path) -> None:
    table = tmp_path / "versions.md"
    header = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"
    table.write_text(f"# Before\n\n{header}\nAfter.\n")
    versions = tuple(str(n) for n in range(len(SHOWN)))
    record([Row("3.12.1", "lowest", versions, "fails", "1 failed")], table)
    record([Row("3.11.2", "locked", versions, "ok", "7 passed"), Row("3.12.4", "lowest", versions, "ok")], table)
    text = table.read_text()
    assert text.startswith(f"# Before\n\n{header}")
    assert text.endswith("|\n\nAfter.\n")
    lines = text.splitlines()[4:6]
    assert [line.split(" | ")[0] for line in lines] == ["| 3.11.2", "| 3.12.4"]
    assert lines[1].endswith("| ok | - |")
