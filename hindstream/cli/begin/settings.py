"""``hindstream settings``: every setting with its value, where that is from, and what it does."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import typer

from hindstream.console.json_lines import print_json
from hindstream.console.output import standard_output

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings

_INDENT = "    "
_MOST_COLUMNS = 120


def print_settings(settings: Settings, output: Output) -> None:
    """Prints a line for each setting, and what it does below it."""
    found = settings.explained()
    if output == "json":
        for one in found:
            print_json(one)
        return
    width = min(standard_output().width, _MOST_COLUMNS)
    names = max(len(one.name) for one in found)
    values = max(len(one.value) for one in found if one.origin == "default")
    for one in found:
        typer.echo(f"{one.name:<{names}}  {one.value:<{values}}  {one.origin}")
        typer.echo(textwrap.fill(one.description, width, initial_indent=_INDENT, subsequent_indent=_INDENT))
