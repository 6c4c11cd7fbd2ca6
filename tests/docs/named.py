"""What a page names in code: tests, files, commands, settings and variables, each looked up in the project."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hindstream.cli.main import app
from statelib.settings.settings import Settings
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|py|toml|yml|lock)")
_OF_OTHERS = re.compile(r"(?:AIRFLOW|AWS|GX|JAVA|KAFKA|NUMBA|PYTHON|XDG)_")


def wrong(page: str) -> list[str]:
    """What a page of the project names and that is not there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [*_wrong_links(page, text), *_wrong_code(text)]


def _wrong_links(page: str, text: str) -> Iterator[str]:
    for target in _LINK.findall(text):
        if not ((ROOT / page).parent / target).exists():
            yield f"link {target}"


def _wrong_code(text: str) -> Iterator[str]:
    for named in _CODE.findall(re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        if not _is_there(named):
            yield named


def _is_there(named: str) -> bool:  # noqa: PLR0911 - one for each kind of name
    file, _, test = named.partition("::")
    if test:
        return test in _functions(ROOT / file)
    if named.startswith("hindstream "):
        return _is_command(named.split()[1:])
    if named.startswith("./dev "):
        return f"\n  {named.split()[1]} " in (ROOT / "dev").read_text(encoding="utf-8")
    if named.startswith("HINDSTREAM_"):
        return named.removeprefix("HINDSTREAM_").lower() in Settings.model_fields or named in _dev_variables()
    if re.fullmatch(r"(?:statelib|hindstream)(?:\.\w+)+", named):
        return _is_python(named)
    if _FILE.fullmatch(named) and not _OF_OTHERS.match(named):
        return named.endswith("/") or (ROOT / named).exists()
    return True


def _functions(file: Path) -> set[str]:
    if not file.exists():
        return set()
    return {node.name for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if hasattr(node, "name")}


def _is_command(words: list[str]) -> bool:
    """``migrate plan JOB``, ``--version``: as far as it is no argument."""
    command = typer.main.get_command(app)
    for word in words:
        commands = getattr(command, "commands", None)
        if word.startswith("--"):
            return word == "--help" or any(word in parameter.opts for parameter in command.params)
        if commands is None:
            return True
        if word not in commands:
            return False
        command = commands[word]
    return True


def _is_python(named: str) -> bool:
    """A module, or a name in one."""
    module, _, name = named.rpartition(".")
    with contextlib.suppress(ModuleNotFoundError):
        if importlib.util.find_spec(named):
            return True
    spec = importlib.util.find_spec(module)
    return spec is not None and name in Path(str(spec.origin)).read_text(encoding="utf-8")


def _dev_variables() -> set[str]:
    return set(re.findall(r"HINDSTREAM_[A-Z_]+", (ROOT / "dev").read_text(encoding="utf-8")))
