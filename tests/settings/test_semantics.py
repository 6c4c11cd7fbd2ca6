"""Which versions of Kafka Streams a job can name, and whose rules each has."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from statelib.settings.semantics import Rules, Semantics, rules_of, semantics_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("rules", get_args(Rules))
def test_rules_are_semantics_with_rules_of_their_own(rules: Rules) -> None:
    assert rules_of(rules) == rules


def test_the_rules_of_each() -> None:
    assert {name: rules_of(name) for name in get_args(Semantics)} == {
        "kip": "kip",
        "kafka-4.3": "kafka-4.3",
        "kafka-4.4": "kafka-4.3",
    }


@pytest.mark.parametrize(
    ("version", "semantics"),
    [("3.9.1", "kafka-4.3"), ("4.3.0", "kafka-4.3"), ("4.4.0", "kafka-4.4"), ("5.0", "kafka-4.4")],
)
def test_a_version_of_kafka_streams_names_its_semantics(version: str, semantics: Semantics) -> None:
    assert semantics_of(version) == semantics


def test_no_code_asks_for_one_version_and_forgets_the_others() -> None:
    """It compares with ``kip``, or asks `rules_of`."""
    found = [place for folder in ("statelib", "hindstream") for place in _compared(ROOT / folder)]
    assert found == []


def _compared(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if any(isinstance(part, ast.Constant) and str(part.value).startswith("kafka-4") for part in parts):
                yield f"{path.relative_to(ROOT)}:{node.lineno}"  # type: ignore[attr-defined]
