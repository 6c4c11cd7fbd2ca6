"""What a page names in code: tests, files, commands, settings and variables, each looked up in the project."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hindstream.cli.main import app
from statelib.settings.settings import Settings
from tests.campaigns.__main__ import CAMPAIGNS
from tests.conftest import OF_TESTS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODE = re.compile(r"`([^`\n]+)`")
_BLOCK = re.compile(r"^```.*?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#([^)]*))?\)")
_FILE = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:md|py|toml|yml|lock)")
_ELSEWHERE = {"dist/", "jobs/", "topics/"}  # what a build makes, and folders of a warehouse
_OF_OTHERS = re.compile(r"(?:AIRFLOW|AWS|GX|JAVA|KAFKA|NUMBA|PYTHON|XDG)_")


def wrong(page: str) -> list[str]:
    """What a page of the project names and that is not there."""
    return wrong_in((ROOT / page).read_text(encoding="utf-8"), (ROOT / page).parent)


def wrong_in(text: str, folder: Path = ROOT) -> list[str]:
    """What the text of a page in ``folder`` names and that is not there: links, names in code, commands in blocks."""
    typed = [line.removeprefix("$ ") for block in _BLOCK.findall(text) for line in block.splitlines()]
    commands = [line.split("#")[0].strip() for line in typed if line.startswith(("./dev ", "hindstream "))]
    return [
        *_wrong_links(text, folder),
        *(named for named in [*_CODE.findall(_BLOCK.sub("", text)), *commands] if not _is_there(named)),
    ]


def _wrong_links(text: str, folder: Path) -> Iterator[str]:
    for target, anchor in _LINK.findall(text):
        page = folder / target
        if not page.exists() or (anchor and anchor not in _anchors(page)):
            yield f"link {target}"


def _anchors(page: Path) -> set[str]:
    """Those that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _is_there(named: str) -> bool:  # noqa: PLR0911 - one for each kind of name
    file, _, test = named.partition("::")
    if test:
        return test in _functions(ROOT / file)
    if named.startswith("hindstream "):
        return _is_command(named.split()[1:])
    if named.startswith("./dev "):
        return _is_of_dev(named.split()[1:])
    if named.startswith("python -m "):
        return importlib.util.find_spec(named.split()[2]) is not None
    if named.startswith("HINDSTREAM_"):
        name = named.partition("=")[0]
        setting = name.removeprefix("HINDSTREAM_")
        return setting.lower() in Settings.model_fields or name in _dev_variables() or setting in OF_TESTS
    if re.fullmatch(r"(?:statelib|hindstream)(?:\.\w+)+", named):
        return is_python(named)
    if _FILE.fullmatch(named) and not _OF_OTHERS.match(named):
        return (ROOT / named).exists() or named in _ELSEWHERE
    return True


def _is_of_dev(words: list[str]) -> bool:
    """``test PATH``, ``campaign NAME``, ``run hindstream status``."""
    command, *arguments = words
    if f"\n  {command} " not in (ROOT / "dev").read_text(encoding="utf-8"):
        return False
    if command == "campaign" and arguments:
        return arguments[0] in CAMPAIGNS
    if command == "run" and arguments[:1] == ["hindstream"]:
        return _is_command(arguments[1:])
    paths = [argument for argument in arguments if "/" in argument and command in {"campaign", "test"}]
    return all((ROOT / path).exists() for path in paths)


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


def is_python(named: str) -> bool:
    """A module, or a name in one, or in a class of one."""
    try:
        pkgutil.resolve_name(named)
    except (AttributeError, ImportError):
        return False
    return True


def _dev_variables() -> set[str]:
    return set(re.findall(r"HINDSTREAM_[A-Z_]+", (ROOT / "dev").read_text(encoding="utf-8")))
