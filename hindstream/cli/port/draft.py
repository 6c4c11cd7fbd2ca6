"""``hindstream draft``: the first draft of a port, on standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.cli.versions.diff import DIFFERENT
from hindstream.console.json_lines import print_json
from hindstream.porting.application import running
from hindstream.porting.draft.draft import draft
from hindstream.porting.draft.knowledge import Knowledge
from statelib.commits.job_names import check_job_name
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from hindstream.console.json_lines import Output
    from hindstream.porting.application import Application


def print_draft(describe: Path | None, application: Application | None, name: str, output: Output) -> None:
    """Prints a draft; sentences about it go to standard error.

    Args:
        describe: The text of a topology.
        application: Or whose topology it is.
        name: The job's.
        output: ``json``: the draft and the sentences as one object.

    Raises:
        ConfigurationError: Neither is given, or both; or it is no topology.
        Exit: With the code `DIFFERENT`: the draft describes another topology.
    """
    check_job_name(name)
    if (describe is None) == (application is None):
        step = "give --describe FILE, or --jar FILE and --topology CLASS::METHOD"
        raise ConfigurationError("a draft is made of a text or of a jar", setting="--describe", next_step=step)
    if application is not None:
        with running(application) as found:
            text, knowledge = found.ready.description, Knowledge(found.ready.processors)
            optimization = found.optimization
    else:
        text, knowledge, optimization = _text_of(describe), Knowledge(), None
    made = draft(text, knowledge, name, optimization)
    if output == "json":
        print_json({"text": made.text, "unknown": made.unknown, "differences": made.differences})
    else:
        typer.echo(made.text, nl=False)
    todos = made.text.count('todo("') + made.text.count('todo_processor("')
    typer.echo(f"{counted(todos, 'function is', 'functions are')} left to write.", err=True)
    if made.unknown:
        of = counted(len(made.unknown), "thing is", "things are")
        typer.echo(f"{of} not told by the {'jar' if application else 'text'}: a TODO says so at each place.", err=True)
    if made.differences:
        typer.echo("The draft does not describe the same topology yet:", err=True)
        typer.echo("\n".join(made.differences), err=True)
        raise typer.Exit(DIFFERENT)
    typer.echo("describe() prints what the application's prints.", err=True)


def _text_of(file: Path | None) -> str:
    try:
        return "" if file is None else file.read_text(encoding="utf-8")
    except OSError as error:
        step = "name a file with what Topology.describe() prints"
        raise ConfigurationError(f"the file cannot be read: {error.strerror}", file=str(file), next_step=step) from None
