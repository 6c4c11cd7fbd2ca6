"""The command that is asked for is built alone, and is the same one."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import pytest
import typer

from hindstream.cli import main
from hindstream.cli.asked import only_what_is_asked_for
from hindstream.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL: Any = typer.main.get_command(app)
NAMES = sorted(ALL.commands)


def built(*arguments: str) -> Any:
    return typer.main.get_command(only_what_is_asked_for(app, arguments, ("--debug", "-q")))


def help_of(root: Any, *arguments: str) -> str:
    shown = io.StringIO()
    with redirect_stdout(shown), pytest.raises(SystemExit):
        root([*arguments, "--help"], prog_name="hindstream", obj={})
    return shown.getvalue()


def nested(name: str) -> Iterator[list[str]]:
    yield [name]
    for inner in getattr(ALL.commands[name], "commands", {}):
        yield [name, inner]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_alone_says_of_itself_what_it_says_among_all(name: str) -> None:
    alone = built("-q", name, "--help")
    assert [*alone.commands] == [name]
    for arguments in nested(name):
        assert help_of(alone, *arguments) == help_of(ALL, *arguments) != ""


@pytest.mark.parametrize("arguments", [(), ("--help",), ("--version",), ("rnu",), ("--help", "run"), ("-q", "--debug")])
def test_without_a_command_all_are_there(arguments: tuple[str, ...]) -> None:
    assert sorted(built(*arguments).commands) == NAMES


def test_the_program_builds_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str | None] = []
    real = typer.main.get_command_from_info

    def seen(command_info: Any, **more: Any) -> Any:
        made.append(command_info.name)
        return real(command_info, **more)

    monkeypatch.setattr(typer.main, "get_command_from_info", seen)
    monkeypatch.setattr(sys, "argv", ["hindstream", "--debug", "jobs", "--help"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert (ended.value.code, made) == (0, ["jobs"])
