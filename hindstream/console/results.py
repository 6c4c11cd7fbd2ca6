"""Where a command puts what it has to say: for a person all of it, for a program one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.console.json_lines import print_json
from hindstream.console.output import standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from hindstream.console.json_lines import Output


class Results:
    """What a command says, as it is asked to (``--output``).

    Args:
        output: ``table``: sentences and tables on standard output. ``json``: the result alone there, sentences on
            standard error, so that a person who is asked something knows what.
    """

    def __init__(self, output: Output = "table") -> None:
        self._is_json = output == "json"

    def say(self, sentence: str) -> None:
        """A sentence for a person."""
        typer.echo(sentence, err=self._is_json)

    def table(self, table: Table) -> None:
        """A table for a person; what is in it is in the result too."""
        if not self._is_json:
            standard_output().print(table)

    def result(self, data: object) -> None:
        """The result, or the next of several, for a program; see `print_json`."""
        if self._is_json:
            print_json(data)
