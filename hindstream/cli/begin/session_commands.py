"""``hindstream session ...``: commands that start at once."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

import hindstream
from hindstream.cli.arguments import JsonOrText
from hindstream.session import messages
from hindstream.session.place import is_ours, socket_path
from statelib.errors.kinds import ConfigurationError

session = typer.Typer(
    name="session",
    help="Let commands start at once: a process that has imported everything runs them.\n\n"
    "Example: hindstream session start",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@session.command("start")
def session_start(
    idle_minutes: Annotated[float, typer.Option(help="End it when no command has run for so long.", min=0.01)] = 60,
    output: JsonOrText = "table",
) -> None:
    """Start the session of this environment; commands use it from then on.

    Example: hindstream session start
    """
    path = socket_path()
    step = "set XDG_RUNTIME_DIR to a folder that only you can open"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_ours(path):
            raise ConfigurationError("others can open the folder of the session", file=path.parent, next_step=step)
        with path.with_suffix(".start").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # another start may be under way
            found = _asked("status") or _started(path, idle_minutes)
    except OSError as error:
        message = f"the folder of the session cannot be used: {error.strerror or error}"
        raise ConfigurationError(message, file=path.parent, next_step=step) from error
    _show(found, output)


def _started(path: Path, idle_minutes: float) -> dict[str, Any]:
    """What a new session says of itself.

    Raises:
        ConfigurationError: It has not started.
    """
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing does
    command = [sys.executable, *flags, "-m", "hindstream.session.server", str(idle_minutes * 60)]
    packages = Path(hindstream.__file__).parents[1]
    nothing_else = path.parent if Path.cwd() != packages else packages  # modules of this directory are not of others
    with path.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=nothing_else,
            start_new_session=True,
        )
        assert process.stdout is not None  # noqa: S101 - asked for
        said = process.stdout.readline()
    found = _asked("status")
    if said != b"ready\n" or found is None:
        lines = path.with_suffix(".log").read_text(errors="replace").strip().splitlines() or ["it says nothing"]
        step = f"look at {path.with_suffix('.log')}; commands run as before without a session"
        raise ConfigurationError(f"the session has not started: {lines[-1]}", next_step=step)
    return found


@session.command("status")
def session_status(output: JsonOrText = "table") -> None:
    """Say whether there is a session, and since when.

    Example: hindstream session status
    """
    _show(_asked("status"), output)


@session.command("stop")
def session_stop(output: JsonOrText = "table") -> None:
    """Stop the session; commands that run in it come to their end first.

    Example: hindstream session stop
    """
    _asked("stop")
    _show(None, output)


def _asked(what: str) -> dict[str, Any] | None:
    """What the session answers; None: there is none."""
    path = socket_path()
    connection = messages.connect(str(path)) if is_ours(path) else None
    if connection is None:
        return None
    with connection:
        messages.send(connection, {"do": what})
        return messages.receive(connection)[0]


def _show(found: dict[str, Any] | None, output: str) -> None:
    if output == "json":
        from hindstream.console.json_lines import print_json  # noqa: PLC0415

        print_json({"running": found is not None, **(found or {})})
    elif found is None:
        typer.echo("No session runs: each command is a process of its own.")
    else:
        since = datetime.fromtimestamp(found["started"], UTC)
        which = f"session {found['pid']}, since {since:%Y-%m-%d %H:%M} UTC, {found['commands']} so far"
        typer.echo(f"Commands start at once ({which}).")
        typer.echo(f"It ends when idle for {found['idle_seconds'] / 60:g} minutes, or with: hindstream session stop")
