"""``hindstream state ...``: the commits of a job; see `hindstream.cli.mend.state`."""

from __future__ import annotations

from typing import Annotated

import typer

from hindstream.cli.arguments import Assignments, JobName, JsonOrText, Warehouse, given_settings, job_name
from hindstream.cli.help import CommandByDefault
from statelib.errors.kinds import ConfigurationError

state = typer.Typer(
    name="state",
    cls=CommandByDefault,
    help="Show the commits of a job: 'hindstream state JOB'; verify every byte, roll back to a commit, rebuild"
    " the newest state, republish a topic, or let changelogs keep more.\n\n"
    "Example: hindstream state flight-delays --warehouse demo-warehouse",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@state.command("list")
def state_list(
    job: JobName, output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """List commits: size of the state, shared and unique bytes, and what maintenance would free.

    Example: hindstream state flight-delays --warehouse demo-warehouse
    """
    from hindstream.cli.mend.state import print_commits  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    print_commits(job_name(job, given), given, output)


@state.command("verify")
def state_verify(
    job: JobName,
    commit: Annotated[int | None, typer.Option(help="The commit; default: the newest.")] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All commits, and all their files in the sinks.")] = False,
) -> None:
    """Read every byte of a commit: documents, state files, the sinks' files. Exit code 74 if anything is damaged.

    Example: hindstream state verify flight-delays --all
    """
    from hindstream.cli.mend.state import print_verification  # noqa: PLC0415

    if everything and commit is not None:
        raise ConfigurationError("--all and --commit exclude each other", next_step="give one of them")
    given = given_settings(settings, warehouse=warehouse)
    print_verification(job_name(job, given), given, commit, everything=everything, output=output)


@state.command("rollback")
def state_rollback(
    job: JobName,
    to: Annotated[int, typer.Option(help="The commit to roll back to.")],
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    supersede: Annotated[bool, typer.Option("--supersede", help="Abandon an open run.")] = False,
) -> None:
    """Roll back to an earlier commit, with a new commit. Records of later commits are removed from the sinks.

    Example: hindstream state rollback flight-delays --to 6 --dry-run
    """
    from hindstream.cli.mend.state import roll_back  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    roll_back(job_name(job, given), given, to, yes=yes, dry_run=dry_run, supersede=supersede, output=output)


@state.command("rebuild")
def state_rebuild(
    job: JobName,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also rebuild undamaged tasks.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be rebuilt.")] = False,
    supersede: Annotated[bool, typer.Option("--supersede", help="Abandon an open run.")] = False,
) -> None:
    """Rebuild damaged state from the stores' changelogs, with a new commit.

    Example: hindstream state rebuild flight-delays --dry-run
    """
    from hindstream.cli.mend.state import rebuild_state  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    rebuild_state(
        job_name(job, given), given, everything=everything, yes=yes, dry_run=dry_run, supersede=supersede, output=output
    )


@state.command("republish")
def state_republish(
    job: JobName,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The sink's topic, or a changelog.")],
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be changed.")] = False,
) -> None:
    """Republish a topic: its archive then holds exactly what the job's commits have written to it.

    For an archive that has lost its log, or that another program has changed. Nothing is replayed.

    Example: hindstream state republish flight-delays delays-by-hour --dry-run
    """
    from hindstream.cli.mend.state import publish_anew  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    publish_anew(job_name(job, given), given, topic, yes=yes, dry_run=dry_run, output=output)


@state.command("lag")
def state_lag(
    job: JobName,
    store: Annotated[str, typer.Argument(metavar="STORE", help="The store.")],
    to: Annotated[str | None, typer.Option(help="Set the lag: 8d, 36h, 90min or ISO 8601.")] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Show how far a store's changelog is compacted, and its min.compaction.lag.ms; with --to, set that.

    The lag is never less than restorable states need. Records that are already compacted do not come back.

    Example: hindstream state lag rates rates --to 8d
    """
    from hindstream.cli.mend.changelog_lag import print_lag  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    print_lag(job_name(job, given), given, store, to, output)


@state.command("clean")
def state_clean(
    job: JobName, output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """Delete a job's files below state_dir that the newest commit does not name; on a cluster, on all hosts.

    Safe beside runs and readers: they fetch missing files again.

    Example: hindstream state clean flight-delays
    """
    from hindstream.cli.mend.state import clean  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    clean(job_name(job, given), given, output)
