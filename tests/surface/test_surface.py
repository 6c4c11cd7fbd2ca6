"""The surface is complete: nobody adds an operator and forgets it there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.conftest import ROOT
from tests.surface.topology import surface

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_A_SPECIFICATION = {"build", "describe", "state_stores"}


def specifications() -> Iterator[str]:
    """Classes that are an `OperatorSpec`."""
    for file in (ROOT / "statelib" / "operators").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases):
                methods = {method.name for method in node.body if isinstance(method, ast.FunctionDef)}
                if methods >= OF_A_SPECIFICATION:
                    yield node.name


def test_every_operator_is_in_it() -> None:
    used = {type(node.spec).__name__ for sub in surface().sub_topologies for node in sub.processors}
    assert {*specifications()} == used
