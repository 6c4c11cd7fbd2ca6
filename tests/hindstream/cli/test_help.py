"""Help is whole at eighty columns, and says under which heading a command is and what exit codes mean."""

from __future__ import annotations

import re

import pytest
import typer.main
from typer.testing import CliRunner

from hindstream.cli.help import EXIT_CODES, PANELS
from hindstream.cli.main import app
from statelib.errors import kinds
from tests.command import hindstream
from tests.conftest import ROOT

ROOT_COMMAND = typer.main.get_command(app)


def commands(command, path=()):
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = dict(commands(ROOT_COMMAND))


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_nothing_is_cut(path: tuple[str, ...], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, [*path, "--help"], obj={}, terminal_width=80)
    assert result.exit_code == 0
    shown = words(result.output)
    command = ALL[path]
    assert words((command.help or "").split("\n\n", maxsplit=1)[0]) in shown
    for parameter in command.params:
        assert parameter.help, parameter.name
        assert words(parameter.help) in shown
    for inner in getattr(command, "commands", {}).values():
        assert words(inner.help.split("\n\n", maxsplit=1)[0]).partition(". ")[0].rstrip(".") in shown
    assert max(map(len, result.output.splitlines())) <= 80
    assert not re.search(r"[a-z,]\.\.\.", result.output), "a sentence is cut"


def test_every_command_has_a_heading(tmp_path) -> None:
    assert {command.rich_help_panel for command in ROOT_COMMAND.commands.values()} == set(PANELS)
    lines = hindstream("--help", cwd=tmp_path, COLUMNS="80").stdout.splitlines()
    headings = [line.rstrip(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options", *PANELS, "Exit codes"]


def test_the_exit_codes_are_those_of_errors() -> None:
    of_errors = {
        kind.exit_code
        for kind in vars(kinds).values()
        if isinstance(kind, type) and issubclass(kind, kinds.HindstreamError)
    }
    assert EXIT_CODES.keys() == of_errors | {0, 1, 2, 130}


def test_a_wrong_command_line_ends_with_code_2(tmp_path) -> None:
    assert hindstream("nothing", cwd=tmp_path).returncode == 2
    assert hindstream("run", cwd=tmp_path).returncode == 2
    assert hindstream("run", "x", "--nothing", cwd=tmp_path).returncode == 2


def test_a_group_without_a_command_means_its_first(tmp_path) -> None:
    assert "the job has no commits" in hindstream("state", "nobody", cwd=tmp_path).stderr
    assert "there is no topic archive" in hindstream("topic", "nothing", cwd=tmp_path).stderr


PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_page_has_every_command_under_its_heading() -> None:
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    for name, command in ROOT_COMMAND.commands.items():
        listed = re.findall(r"^\| `hindstream ([\w-]+)", sections[command.rich_help_panel], re.MULTILINE)
        assert name in listed, name
    assert {*re.findall(r"^\| `hindstream ([\w-]+)", PAGE, re.MULTILINE)} == ROOT_COMMAND.commands.keys()


def test_the_page_has_every_exit_code() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == EXIT_CODES.keys()
