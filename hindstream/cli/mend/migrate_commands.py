"""``hindstream migrate ...``: stores of tables made anew; see `hindstream.cli.mend.migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindstream.cli.arguments import (
    Assignments,
    JobName,
    JobReference,
    JsonOrText,
    Stopped,
    Warehouse,
    given_settings,
    job_name,
)
from hindstream.cli.help import GroupedCommands

if TYPE_CHECKING:
    from hindstream.kafka.live_migration import LiveStore

migrate = typer.Typer(
    name="migrate",
    cls=GroupedCommands,
    help="Migrate a table's store: to versioned or plain, to another retention, or to another name.\n\n"
    "Change the job's topology first; then plan, run and, if needed, rollback.\n\n"
    "Example: hindstream migrate plan jobs/rates.py:job --store rates",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Stores = Annotated[
    list[str], typer.Option("--store", metavar="NAME", help="A store to migrate, or FORMER=NAME; may be repeated.")
]


@migrate.command("plan")
def migrate_plan(
    job: JobReference,
    store: Stores,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Show what a migration would do, and change nothing.

    Example: hindstream migrate plan jobs/rates.py:job --store rates
    """
    from hindstream.cli.mend.migrate import print_plan  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    print_plan(load_job(job, fork=given.fork), given, store, output)


@migrate.command("run")
def migrate_run(
    job: JobReference,
    store: Stores,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Hold the job, rebuild the stores in a separate commit, compare latest values, release the job.

    If it is killed, run the same command again to continue.

    Example: hindstream migrate run jobs/rates.py:job --store rates
    """
    from hindstream.cli.mend.migrate import run  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    run(load_job(job, fork=given.fork), given, store, yes=yes, output=output)


@migrate.command("fill")
def migrate_fill(
    job: JobReference,
    store: Annotated[list[str], typer.Option("--store", metavar="NAME", help="A store to fill; may be repeated.")],
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Fill stores by a replay of the job's history, in a separate commit without new records.

    Afterwards they hold what they would hold if the job had always had them. Without a changed topology as well.

    Example: hindstream migrate fill jobs/rates.py:job --store rates
    """
    from hindstream.cli.mend.migrate import fill  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    fill(load_job(job, fork=given.fork), given, store, yes=yes, output=output)


@migrate.command("verify")
def migrate_verify(
    job: JobName,
    commit: Annotated[int | None, typer.Option(help="The commit of the migration; default: the newest.")] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Compare the latest values of the migrated stores with those before. Exit code 74 if any differs.

    Example: hindstream migrate verify rates --commit 13
    """
    from hindstream.cli.mend.migrate import print_verified  # noqa: PLC0415
    from hindstream.runs import open_warehouse  # noqa: PLC0415
    from hindstream.spark.migration.migrate import verify  # noqa: PLC0415
    from statelib.commits import CommitLog  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    name = job_name(job, given)
    log = CommitLog(open_warehouse(given), name)
    made = log.read(commit or log.head_number())
    print_verified(verify(name, given, made), name, made.commit, output)


@migrate.command("rollback")
def migrate_rollback(
    job: JobReference,
    store: Stores,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Undo a migration that is the newest commit or is not committed yet, and release the job.

    Example: hindstream migrate rollback jobs/rates.py:job --store rates
    """
    from hindstream.console.results import Results  # noqa: PLC0415
    from hindstream.spark.migration.migrate import take_back  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    loaded = load_job(job, fork=given.fork)
    head = take_back(loaded, given, store)
    out = Results(output)
    out.say(f"{loaded.name}: commit {head.commit} is the head.")
    out.result({"job": loaded.name, "commit": head.commit})


live = typer.Typer(
    name="live",
    cls=GroupedCommands,
    help="Make the store of a live Kafka Streams application versioned: KIP-889's procedure.\n\n"
    "Stop the application, prepare, start it with its new store, stop it, verify, start it.\n\n"
    "Example: hindstream migrate live plan rates-app rates --history-retention 7d --state-dir /var/lib/kafka-streams",
    no_args_is_help=True,
    rich_markup_mode=None,
)
migrate.add_typer(live)

Application = Annotated[str, typer.Argument(metavar="APPLICATION", help="The application.id.")]
Store = Annotated[str, typer.Argument(metavar="STORE", help="The store's name.")]
Retention = Annotated[str, typer.Option(help="History retention of the versioned store: 7d, 36h, 90min or ISO 8601.")]
StateDir = Annotated[Path, typer.Option(help="The application's state.dir on this host.")]
ChangelogTopic = Annotated[
    str | None, typer.Option("--changelog", help="The store's changelog topic, if it has another name.")
]


@live.command("plan")
def live_plan(
    application: Application,
    store: Store,
    history_retention: Retention,
    state_dir: StateDir,
    changelog: ChangelogTopic = None,
    output: JsonOrText = "table",
    settings: Assignments = None,
) -> None:
    """Show what the changelog still has and what would be done. Changes nothing; the application may run.

    Example: hindstream migrate live plan rates-app rates --history-retention 7d --state-dir /var/lib/kafka-streams
    """
    from hindstream.cli.live.live_migration import print_plan  # noqa: PLC0415

    print_plan(_live(application, store, history_retention, state_dir, changelog), given_settings(settings), output)


@live.command("prepare")
def live_prepare(
    application: Application,
    store: Store,
    history_retention: Retention,
    state_dir: StateDir,
    changelog: ChangelogTopic = None,
    output: JsonOrText = "table",
    settings: Assignments = None,
    *,
    stopped: Stopped = False,
) -> None:
    """Delete the store's local state on this host, and set min.compaction.lag.ms. Run it on each host.

    Example: hindstream migrate live prepare rates-app rates --history-retention 7d --state-dir /var/lib/kafka-streams
    """
    from hindstream.cli.live.live_migration import run_prepare  # noqa: PLC0415

    run_prepare(
        _live(application, store, history_retention, state_dir, changelog, stopped=stopped),
        given_settings(settings),
        output,
    )


@live.command("verify")
def live_verify(
    application: Application,
    store: Store,
    history_retention: Retention,
    state_dir: StateDir,
    changelog: ChangelogTopic = None,
    output: JsonOrText = "table",
    settings: Assignments = None,
    *,
    stopped: Stopped = False,
) -> None:
    """Compare the latest values that this host has restored with the changelog. Exit code 74 if any differs.

    Example: hindstream migrate live verify rates-app rates --history-retention 7d --state-dir /var/lib/kafka-streams
    """
    from hindstream.cli.live.live_migration import run_verify  # noqa: PLC0415

    run_verify(
        _live(application, store, history_retention, state_dir, changelog, stopped=stopped),
        given_settings(settings),
        output,
    )


@live.command("rollback")
def live_rollback(
    application: Application,
    store: Store,
    state_dir: StateDir,
    changelog: ChangelogTopic = None,
    former_lag: Annotated[
        int | None, typer.Option(help="The former min.compaction.lag.ms; default: the broker's.")
    ] = None,
    output: JsonOrText = "table",
    settings: Assignments = None,
    *,
    stopped: Stopped = False,
) -> None:
    """Delete the store's local state on this host, and reset min.compaction.lag.ms.

    Example: hindstream migrate live rollback rates-app rates --state-dir /var/lib/kafka-streams
    """
    from hindstream.cli.live.live_migration import run_rollback  # noqa: PLC0415

    of = _live(application, store, "0s", state_dir, changelog, stopped=stopped)
    run_rollback(of, given_settings(settings), former_lag, output)


def _live(
    application: str, store: str, retention: str, state_dir: Path, changelog: str | None, *, stopped: bool = False
) -> LiveStore:
    from hindstream.kafka.live_migration import LiveStore  # noqa: PLC0415
    from statelib.settings.settings import time_span_ms  # noqa: PLC0415

    topic = changelog or f"{application}-{store}-changelog"
    retention_ms = time_span_ms(retention, "--history-retention")
    return LiveStore(application, store, state_dir, retention_ms, topic, stopped)
