"""Which methods of which of our classes the tests use: read from their text, as far as it says what a value is.

A name is of a class where it is annotated, made by a call of the class, or returned by a method whose annotation says
so. What a helper without an annotation gives is unknown, and a method of it counts for no class.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import statelib
from statelib.testing import topics

if TYPE_CHECKING:
    from collections.abc import Mapping

TESTS = Path(__file__).parents[1]
_OTHERS = {"TestInputTopic": topics.TestInputTopic, "TestOutputTopic": topics.TestOutputTopic}
_Types = dict[str, type]


@cache
def used_in_tests() -> frozenset[tuple[str, str]]:
    """Names of classes and of what is used of them; what is inherited counts for the class that has it, too."""
    found: set[tuple[str, str]] = set()
    for file in TESTS.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "completeness" not in file.parts and ("statelib" in text or "hindstream" in text):
            found |= _Reader().read(ast.parse(text))
    return frozenset(found)


@cache
def names_in_tests() -> frozenset[str]:
    """Attributes, methods that tests define, and arguments by name, of whatever class."""
    texts = (file.read_text(encoding="utf-8") for file in TESTS.rglob("*.py") if "completeness" not in file.parts)
    return frozenset(name for text in texts for name in re.findall(r"(?<=\.)\w+|(?<=def )\w+|\w+(?==)", text))


@cache
def _classes() -> Mapping[str, type]:
    public = {name: getattr(statelib, name) for name in statelib.__all__}
    return {name: of for name, of in public.items() if isinstance(of, type)} | _OTHERS


class _Reader(ast.NodeVisitor):
    """Walks through a module; ``_scopes`` are the names that are known, the innermost last."""

    def __init__(self) -> None:
        self._found: set[tuple[str, str]] = set()
        self._scopes: list[_Types] = [{}]
        self._returned: _Types = {}

    def read(self, module: ast.Module) -> set[tuple[str, str]]:
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and (made := _annotated(node.returns)):
                self._returned[node.name] = made
        self.visit(module)
        return self._found

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self._scopes.append({one.arg: of for one in arguments if (of := _annotated(one.annotation))})
        self.generic_visit(node)
        self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A user's class: what it defines is called by the task."""
        bases = [of for base in node.bases if isinstance(base, ast.Name) and (of := _classes().get(base.id))]
        for of in bases:
            for one in node.body:
                if isinstance(one, ast.FunctionDef):
                    self._use(of, one.name)
        self._scopes.append({"self": bases[0]} if bases else {})
        self.generic_visit(node)
        self._scopes.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        of = _annotated(node.annotation)
        if of and isinstance(node.target, ast.Name):
            self._scopes[-1][node.target.id] = of

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars:
                self._assign(item.optional_vars, item.context_expr)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        of = self._class_of(node.value)
        if of is not None:
            self._use(of, node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and (of := _classes().get(node.func.id)):
            for keyword in node.keywords:
                self._use(of, keyword.arg or "")
        self.generic_visit(node)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, of_one in zip(target.elts, value.elts, strict=False):
                self._assign(one, of_one)
        elif isinstance(target, ast.Name):
            self._scopes[-1].pop(target.id, None)
            if (of := self._class_of(value)) is not None:
                self._scopes[-1][target.id] = of

    def _class_of(self, node: ast.expr) -> type | None:
        """Of what class it is, or which class it is: methods of both are used in the same way."""
        if isinstance(node, ast.Name):
            known = next((scope[node.id] for scope in reversed(self._scopes) if node.id in scope), None)
            return known or _classes().get(node.id)
        if isinstance(node, ast.Attribute):
            of = self._class_of(node.value)
            if isinstance(node.value, ast.Name) and node.value.id in {"hindstream", "statelib"}:
                return _classes().get(node.attr)
            return of and _returned(of, node.attr)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                return self._returned.get(node.func.id) or _classes().get(node.func.id)
            return self._class_of(node.func)
        return None

    def _use(self, of: type, name: str) -> None:
        self._found |= {(base.__name__, name) for base in of.__mro__}


def _returned(of: type, name: str) -> type | None:
    """What a method gives, or an attribute is."""
    member: Any = getattr(of, name, None)
    member = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    of_attribute = next((vars(base).get("__annotations__", {}).get(name) for base in of.__mro__), None)
    annotation = str(of_attribute or getattr(member, "__annotations__", {}).get("return", ""))
    return of if annotation == "Self" else _named(annotation)


def _annotated(annotation: ast.expr | None) -> type | None:
    return _named(ast.unparse(annotation)) if annotation is not None else None


def _named(annotation: str) -> type | None:
    return next((found for name in re.findall(r"\w+", annotation) if (found := _classes().get(name))), None)
