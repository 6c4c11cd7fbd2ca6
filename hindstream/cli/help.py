"""Help in plain text, whole at any width: commands by what a person wants to do, and what exit codes mean.

Typer's own help with panels needs rich's boxes; its plain help cuts what commands do after some words.
"""

from __future__ import annotations

from typing import Any

import typer.core

BEGIN = "Begin"
BRING = "Bring records in"
REPLAY = "Replay"
LOOK = "Look at jobs, topics and state"
TRY = "Try another version of a job"
MEND = "Change, repair, go back"
PORT = "Port a Kafka Streams application"
LIVE = "Exchange state with a live application"
PHASES = "Run one phase of a slice"

PANELS = (BEGIN, BRING, REPLAY, LOOK, TRY, MEND, PORT, LIVE, PHASES)
"""In the order of the help; a command names one of them as its ``rich_help_panel``."""

EXIT_CODES = {
    0: "Done, or there was nothing to do.",
    1: "A difference (diff, try, prove, draft), a lag, an answer of no, or an unknown error, with its traceback.",
    2: "The command line is wrong: no such command, option or argument.",
    65: "Records or files of the input are wrong: fix or quarantine them.",
    70: "A defect of Hindstream: report it.",
    73: "Another driver of the job was first; its result counts.",
    74: "A file is damaged: restore it from another copy.",
    75: "A fault that passes: run the same command again.",
    78: "A setting, a topology or the command cannot work: change it.",
    130: "Interrupted.",
}
"""What a command ends with; those from 65 to 78 are of `statelib.errors.kinds`."""


class GroupedCommands(typer.core.TyperGroup):
    """A group whose help lists commands under the headings of `PANELS`, with their whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the headings that have commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in found if command is not None and not command.hidden]
        longest = max((len(name) for name, _ in shown), default=0)
        sections: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        for name, command in shown:
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(str(panel), []).append((name.ljust(longest), _first_sentence(command.help or "")))
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class RootCommands(GroupedCommands):
    """That of ``hindstream`` itself: says what exit codes mean as well."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the headings that have commands, and the exit codes."""
        super().format_commands(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


class CommandByDefault(GroupedCommands):
    """A group of which the first command is meant where none is named: ``hindstream state JOB``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the first command before what is neither a command nor an option."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    sentence, end, _ = paragraph.partition(". ")
    return sentence + end.strip()
