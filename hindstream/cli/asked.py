"""The command that is asked for, built alone: typer makes the options of every command from its signature, all at once.

For sixty commands that takes longer than most of them need for their work.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import typer


def only_what_is_asked_for(app: typer.Typer, arguments: Sequence[str], flags: Collection[str]) -> typer.Typer:
    """An app with one command or group of another app's.

    Args:
        app: That with all commands.
        arguments: Those of the command line, without the program.
        flags: Options that may come before the command, and have no value.

    Returns:
        The app itself where no command of its own comes first: it shows all of them, or what was meant.
    """
    name = next((argument for argument in arguments if argument not in flags), None)
    commands = [command for command in app.registered_commands if command.name == name]
    groups = [
        of for of in app.registered_groups if of.typer_instance is not None and of.typer_instance.info.name == name
    ]
    if not commands and not groups:
        return app
    one = copy(app)
    one.registered_commands, one.registered_groups = commands, groups
    return one
