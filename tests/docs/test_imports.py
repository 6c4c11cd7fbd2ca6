"""What users read and copy imports from ``hindstream`` alone, and names that it offers."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess

import pytest

from tests.conftest import ROOT

FACES = {f"hindstream{face}" for face in ("", ".airflow", ".kafka", ".report", ".spark", ".testing")}
DEPLOYED = ("dags/", "docker/", "examples/")
DEMO = "hindstream/demo/job.py"
IMPORT = re.compile(
    r"^\s*(?:from +(?P<module>[\w.]+) +import +(?P<names>\([^)]*\)|[^\n#]+)|import +(?P<whole>[\w.]+))", re.MULTILINE
)
_TRACKED = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
PAGES = [name for name in _TRACKED if name.endswith(".md") and not name.startswith(("CHANGELOG", "tests/"))]
FILES = [name for name in _TRACKED if name.endswith(".py") and name.startswith(DEPLOYED)] + [DEMO]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_imports_from_hindstream(page: str) -> None:
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        for found in IMPORT.finditer(block):
            names = re.findall(r"\w+(?: as \w+)?", found["names"] or "")
            check(found["module"] or found["whole"], [name.partition(" ")[0] for name in names])


@pytest.mark.parametrize("file", FILES)
def test_a_file_to_copy_imports_from_hindstream(file: str) -> None:
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            check(node.module, [alias.name for alias in node.names], own=file.startswith(("docker/", DEMO)))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                check(alias.name, [])


def check(module: str, names: list[str], *, own: bool = False) -> None:
    """``own``: the demo and the stack may use modules of Hindstream's, which are made for them."""
    assert module.partition(".")[0] not in {"dags", "spark_jobs", "statelib"}
    if module.partition(".")[0] == "hindstream" and not (own and module.startswith("hindstream.")):
        assert module in FACES
        assert set(names) <= set(importlib.import_module(module).__all__)


def test_a_wrong_import_is_found() -> None:
    for module, name in (("statelib", "Job"), ("hindstream.spark.phases", "plan"), ("hindstream", "Jobs")):
        with pytest.raises(AssertionError):
            check(module, [name])
