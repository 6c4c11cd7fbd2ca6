"""The command line: the phases of a run as verbs, what drives them, and what looks at the result.

Every command is a thin layer over a function of `hindstream` or `statelib`, imported when it is called. Its options
stand with those of its like in the room of its heading.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from hindstream.cli.asked import only_what_is_asked_for
from hindstream.cli.begin import commands as begin_commands
from hindstream.cli.begin.session_commands import session
from hindstream.cli.bring import commands as bring_commands
from hindstream.cli.help import BEGIN, BRING, LIVE, LOOK, MEND, PHASES, PORT, REPLAY, TRY, RootCommands
from hindstream.cli.live import commands as live_commands
from hindstream.cli.live.switch_commands import switch
from hindstream.cli.look import commands as look_commands
from hindstream.cli.look.contract_commands import contract
from hindstream.cli.look.topic_commands import topic
from hindstream.cli.mend import repair_commands
from hindstream.cli.mend.migrate_commands import migrate
from hindstream.cli.mend.state_commands import state
from hindstream.cli.port import commands as port_commands
from hindstream.cli.replay import commands as run_commands
from hindstream.cli.versions import fork_commands, promote_commands, try_commands
from statelib.errors.exhausted import exhaustion_told
from statelib.errors.kinds import HindstreamError

app = typer.Typer(
    name="hindstream",
    cls=RootCommands,
    help="Replays historical Kafka topics through Kafka-Streams-grade state on Spark.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if asked:
        import importlib.metadata  # noqa: PLC0415  (10 ms, which no other call waits for)

        typer.echo(f"hindstream {importlib.metadata.version('hindstream')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - done with when it is parsed
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
) -> None:
    """Options of all commands; they come before the command."""
    context.obj["debug"] = debug
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format="%(message)s")
    for library in ("py4j", "great_expectations"):
        logging.getLogger(library).setLevel(logging.ERROR)


def main() -> None:
    """Runs the command line in this process; a deliberate error is one message and its class's exit code."""
    state: dict[str, bool] = {}
    try:
        with exhaustion_told():
            only_what_is_asked_for(app, sys.argv[1:], _FLAGS)(obj=state)
    except HindstreamError as error:
        if state.get("debug"):
            raise
        sys.stderr.write(f"hindstream: {error}\n")
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            sys.stderr.write("hindstream: interrupted. Next: run the same command again, it continues\n")
        raise


_FLAGS = ("--debug", "--quiet", "-q")
"""Options of all commands that come before the command."""

INTERRUPTED = 130
"""The exit code that typer gives a command that Ctrl-C has ended."""

_COMMANDS = {
    BEGIN: (begin_commands.demo, begin_commands.init, begin_commands.doctor, begin_commands.settings),
    BRING: (bring_commands.ingest, bring_commands.archive),
    REPLAY: (run_commands.run, run_commands.backfill),
    LOOK: (
        look_commands.jobs,
        look_commands.topics,
        look_commands.show,
        look_commands.status,
        look_commands.placement,
        look_commands.describe,
        look_commands.estimate,
        look_commands.inspect,
        look_commands.explain,
    ),
    TRY: (
        try_commands.try_,
        fork_commands.fork,
        fork_commands.diff,
        promote_commands.promote,
        promote_commands.views,
        fork_commands.drop,
    ),
    MEND: (repair_commands.repair, run_commands.release, run_commands.data_docs),
    PORT: (port_commands.draft, port_commands.prove),
    LIVE: (live_commands.handover, live_commands.takeover),
    PHASES: (run_commands.plan,),
}
"""By heading of the help, in its order."""

for panel, commands in _COMMANDS.items():
    for command in commands:
        app.command(command.__name__.strip("_").replace("_", "-"), rich_help_panel=panel)(command)
for phase in run_commands.PHASES:
    app.command(phase, rich_help_panel=PHASES)(run_commands.phase_command(phase))
app.add_typer(session, rich_help_panel=BEGIN)
app.add_typer(topic, rich_help_panel=LOOK)
app.add_typer(contract, rich_help_panel=LOOK)
app.add_typer(state, rich_help_panel=MEND)
app.add_typer(migrate, rich_help_panel=MEND)
app.add_typer(switch, rich_help_panel=LIVE)
