"""Nothing is called that the oldest supported Python lacks, in code that no test runs either.

mypy and ruff know what came with a 3.12, not what came with a 3.11.4; so what is imported is looked up in the Python
that runs the tests, which in continuous integration is the oldest one (`.ci/run`).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LATER_ARGUMENTS = {"extract": {"filter"}, "extractall": {"filter"}, "unpack_archive": {"filter"}}
"""Arguments of methods that later versions of a supported Python have: tarfile's and shutil's came with 3.11.4."""


def lacking(source: str) -> Iterator[str]:
    """Each name of the standard library that is not there, and each argument that a function does not take."""
    nodes = [node for node in ast.walk(ast.parse(source)) if hasattr(node, "lineno")]
    modules: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names if _is_standard(alias.name)}
    for node in nodes:  # a variable or a parameter may have a module's name
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else getattr(node, "arg", None)
        modules.pop(name or "", None)
    yield from (f"line {node.lineno}: {lack}" for node in nodes for lack in _lacking(node, modules))


def _lacking(node: ast.AST, modules: Mapping[str, str]) -> Iterator[str]:
    match node:
        case ast.ImportFrom(module=str(module), names=names) if _is_standard(module):
            yield from (f"{module}.{alias.name}" for alias in names if not _has(module, alias.name))
        case ast.Attribute(value=value, attr=name) if module := modules.get(ast.unparse(value)):
            if not _has(module, name):
                yield f"{module}.{name}"
        case ast.Call(func=ast.Attribute(value=value, attr=name), keywords=keywords):
            given = {keyword.arg for keyword in keywords if keyword.arg}
            unknown = given & LATER_ARGUMENTS.get(name, set())
            module = modules.get(ast.unparse(value))
            if module and _has(module, name):
                unknown |= given - _arguments(getattr(importlib.import_module(module), name), given)
            yield from (f"{ast.unparse(node.func)}({argument}=)" for argument in sorted(unknown))
        case _:
            pass


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names - {"__future__"}


def _has(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


def _arguments(function: object, given: set[str]) -> set[str]:
    """What it takes by keyword; all that is given, where that cannot be known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return given
    return given if any(p.kind is p.VAR_KEYWORD for p in parameters) else {p.name for p in parameters}


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        ("import os\nos.gone()", ["line 2: os.gone"]),
        ("from os import gone", ["line 1: os.gone"]),
        ("import os.path\nos.path.gone", ["line 2: os.path.gone"]),
        ("import shutil as s\ns.copy('a', 'b', gone=1)", ["line 2: s.copy(gone=)"]),
        ("archive.extractall('a', filter='data')", ["line 1: archive.extractall(filter=)"]),
        ("import shutil\nshutil.copy('a', 'b', follow_symlinks=False)", []),
        ("import concurrent.futures\nfrom concurrent import futures\nconcurrent.futures.wait", []),
        ("gone.gone(gone=1)", []),
        ("import time\ntime = 1\ntime.gone", []),
    ],
)
def test_what_is_lacking_is_found(source: str, lacks: list[str]) -> None:
    assert list(lacking(source)) == lacks


@pytest.mark.thorough
def test_all_that_is_used_is_there() -> None:
    listed = subprocess.check_output(["git", "ls-files", "-z", "*.py"], cwd=ROOT, text=True).split("\0")[:-1]
    files = [ROOT / name for name in listed if (ROOT / name).exists()]
    assert [f"{file.relative_to(ROOT)}: {lack}" for file in files for lack in lacking(file.read_text("utf-8"))] == []
