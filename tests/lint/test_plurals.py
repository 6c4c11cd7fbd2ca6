"""No message says "1 commits": where a number is followed by a noun, `counted` puts the two together."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from statelib.errors.counted import counted
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

NOUNS = (
    "checks|commits|consumers|days|entries|files|folders|hosts|hours|keys|members|months|nodes|offsets|packages|partitions"
    "|records|rows|runs|slices|snapshots|stores|tasks|topics|versions|windows"
)
AFTER_A_NUMBER = re.compile(rf" (?:[a-z]+ )?(?:{NOUNS})\b(?! of the )")
IN_A_FORMAT = re.compile(rf"%d (?:{NOUNS})\b")
ARE_MANY = re.compile(r"^(?:_?[A-Z_]+( // 2)?|limit|n|count|counts\[row\])$")
"""Constants, and internal errors whose numbers are never one."""
IN_A_TEMPLATE = re.compile(rf"(?:count|length) \}}\}} (?:{NOUNS})\b")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (12_000, "12,000 records")]
)
def test_a_number_and_its_noun(number: int, text: str) -> None:
    assert counted(number, "record") == text


def test_a_noun_of_its_own_and_a_verb() -> None:
    assert [counted(n, "entry is", "entries are") for n in (0, 1, 2)] == [
        "0 entries are",
        "1 entry is",
        "2 entries are",
    ]


def wrong_when_one(source: str) -> Iterator[str]:
    """Texts in which a noun is plural, whatever the number before it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for number, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(number, ast.FormattedValue) and isinstance(text, ast.Constant):
                    found = AFTER_A_NUMBER.match(str(text.value))
                    if found and not ARE_MANY.match(ast.unparse(number.value)):
                        yield f"line {number.lineno}: {{{ast.unparse(number.value)}}}{found[0]}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (f"line {node.lineno}: {found}" for found in IN_A_FORMAT.findall(node.value))


def test_what_is_found() -> None:
    assert list(wrong_when_one('f"{n} x"\nf"{len(a)} new records, {b} rows"')) == [
        "line 2: {len(a)} new records",
        "line 2: {b} rows",
    ]
    assert list(wrong_when_one('log("%d tasks", 1)')) == ["line 1: %d tasks"]


def test_no_message_has_one_of_several() -> None:
    files = [
        file for package in ("dags", "hindstream", "spark_jobs", "statelib") for file in (ROOT / package).rglob("*.py")
    ]
    wrong = [
        f"{file.relative_to(ROOT)}: {where}" for file in files for where in wrong_when_one(file.read_text("utf-8"))
    ]
    for template in (ROOT / "hindstream").rglob("*.j2"):
        wrong += [f"{template.name}: {found}" for found in IN_A_TEMPLATE.findall(template.read_text("utf-8"))]
    assert wrong == []
