"""The command line: the phases of a run as verbs, what drives them, and what looks at the result.

Every command is a thin layer over a function of `spark_jobs`, `dags` or `statelib`, imported when it is called.
"""

from __future__ import annotations

import importlib
import logging
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.core

from statelib.errors import ConfigurationError, HindstreamError

if TYPE_CHECKING:
    from statelib.config import Settings

app = typer.Typer(
    name="hindstream",
    help="Replays historical Kafka topics through Kafka-Streams-grade state on Spark.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FEW_ROWS = 20

JobReference = Annotated[str, typer.Argument(metavar="JOB", help="The job: FILE.py:NAME or PACKAGE.MODULE:NAME.")]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="The job's name, or FILE.py:NAME, or PACKAGE.MODULE:NAME.")]
Warehouse = Annotated[str | None, typer.Option(help="Root of all durable data: a directory or URL.")]
Until = Annotated[str | None, typer.Option(help="End of the slice: ISO 8601 with time zone; none: all there is.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any setting; see 'hindstream settings'.")
]
Seal = Annotated[
    bool, typer.Option("--seal", help="Let everything go that still waits: the job is at its end after that.")
]
RunId = Annotated[str | None, typer.Option("--run", metavar="RUN_ID", help="The run; none: the newest.")]


@app.callback()
def options(
    context: typer.Context,
    *,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")] = False,
) -> None:
    """Options of all commands; they come before the command."""
    context.obj["debug"] = debug
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format="%(message)s")
    for library in ("py4j", "great_expectations"):
        logging.getLogger(library).setLevel(logging.ERROR)


def main() -> None:
    """Runs the command line; a deliberate error is one message and its class's exit code."""
    state: dict[str, bool] = {}
    try:
        app(obj=state)
    except HindstreamError as error:
        if state.get("debug"):
            raise
        sys.stderr.write(f"hindstream: {error}\n")
        sys.exit(error.exit_code)


@app.command()
def demo(
    warehouse: Annotated[str, typer.Option(help="Where everything of the demo goes.")] = "demo-warehouse",
    *,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete what the demo made there, and start over.")] = False,
) -> None:
    """Replay a year of flights with the weather, month by month, through Airflow and Spark.

    Example: hindstream demo --fresh
    """
    from hindstream.demo.run import run_demo  # noqa: PLC0415

    logging.getLogger().setLevel(logging.WARNING)  # the summary says it all
    run_demo(warehouse, fresh=fresh)


@app.command()
def run(
    job: JobReference,
    until: Until = None,
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
) -> None:
    """Run one slice in this process: plan, replay, audit, commit, publish, maintain, report.

    Example: hindstream run jobs/flights.py:job --until 2013-02-01T00:00Z
    """
    from spark_jobs.pipeline import run_slice  # noqa: PLC0415
    from statelib.commits import NothingToDo  # noqa: PLC0415
    from statelib.job import load_job  # noqa: PLC0415

    given = _settings(settings, warehouse=warehouse, until=until, end_of_input=_sealed(seal))
    result = run_slice(load_job(job), given)
    typer.echo(str(result) if isinstance(result, NothingToDo) else f"Report: {result.report}")


@app.command()
def backfill(
    job: JobReference,
    start: Annotated[str, typer.Option("--from", help="Where the first slice begins: ISO 8601 with time zone.")],
    end: Annotated[str, typer.Option("--to", help="Where the last slice ends.")],
    every: Annotated[Literal["hour", "day", "week", "month"], typer.Option(help="The length of a slice.")] = "day",
    airflow_home: Annotated[
        str, typer.Option(help="Airflow's home, with its database and log.")
    ] = ".hindstream/airflow",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
) -> None:
    """Run many slices, one after the other, through an Airflow in this process; with --seal the last one seals.

    Example: hindstream backfill jobs/flights.py:job --from 2013-01-01T00:00Z --to 2014-01-01T00:00Z --every month
    """
    from hindstream.backfill import run_backfill  # noqa: PLC0415

    given = _settings(settings, warehouse=warehouse, end_of_input=_sealed(seal))
    run_backfill(job, start, end, every, airflow_home, given)


@app.command()
def status(job: JobName, warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """Show a job's runs: commits, slices, records, size of the state, open windows.

    Example: hindstream status flight-delays --warehouse demo-warehouse
    """
    from hindstream.status import print_status  # noqa: PLC0415

    print_status(_job_name(job), _settings(settings, warehouse=warehouse))


@app.command()
def describe(job: JobReference) -> None:
    """Show a job's topology as text, as Kafka Streams describes it; the job's report has it as a picture.

    Example: hindstream describe hindstream.demo.job:job
    """
    from statelib.job import load_job  # noqa: PLC0415

    typer.echo(load_job(job).topology.describe(), nl=False)


@app.command()
def inspect(
    job: JobName,
    store: Annotated[str | None, typer.Argument(help="The store's name; none: the stores are listed.")] = None,
    key: Annotated[str | None, typer.Argument(help="The key: text, or JSON if it is no text; none: all keys.")] = None,
    as_of: Annotated[str | None, typer.Option(help="As of this time: ISO 8601 with time zone; none: latest.")] = None,
    commit: Annotated[int | None, typer.Option(help="As of this commit; none: the newest.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many rows; none: 20, or all that a key has.")] = None,
    output: Annotated[Literal["table", "json", "csv"], typer.Option(help="How rows are shown.")] = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    history: Annotated[bool, typer.Option("--history", help="All versions of a versioned store.")] = False,
) -> None:
    """Show what a store holds, or of a key, as of a commit and a time. The job's code is not needed.

    Example: hindstream inspect flight-delays weather-by-origin JFK --as-of 2013-06-01T12:00Z
    """
    from hindstream.inspect import print_rows, print_stores  # noqa: PLC0415

    name, given = _job_name(job), _settings(settings, warehouse=warehouse)
    if store is None:
        print_stores(name, commit, given, output)
        return
    most = limit or (_FEW_ROWS if key is None else None)
    print_rows(name, store, key, as_of, commit, given, history=history, limit=most, output=output)


class _StateGroup(typer.core.TyperGroup):
    """``hindstream state JOB`` is ``hindstream state list JOB``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts ``list`` before what is neither a command nor an option."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["list", *args]
        return super().parse_args(ctx, args)


state = typer.Typer(
    name="state",
    cls=_StateGroup,
    help="Show the commits of a job: 'hindstream state JOB'; verify every byte of them, or go back to one.\n\n"
    "Example: hindstream state flight-delays --warehouse demo-warehouse",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(state)


@state.command("list")
def state_list(job: JobName, warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """List commits: size of the state, shared and unique bytes, and what maintenance would free.

    Example: hindstream state flight-delays --warehouse demo-warehouse
    """
    from hindstream.state import print_commits  # noqa: PLC0415

    print_commits(_job_name(job), _settings(settings, warehouse=warehouse))


@state.command("verify")
def state_verify(
    job: JobName,
    commit: Annotated[int | None, typer.Option(help="The commit; none: the newest.")] = None,
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="All commits, and all that the sinks hold of them.")
    ] = False,
) -> None:
    """Read every byte of a commit: documents, state files, the sinks' files. Exit code 74 if anything is damaged.

    Example: hindstream state verify flight-delays --all
    """
    from hindstream.state import print_verification  # noqa: PLC0415

    if everything and commit is not None:
        raise ConfigurationError("--all and --commit exclude each other", next_step="give one of them")
    print_verification(_job_name(job), _settings(settings, warehouse=warehouse), commit, everything=everything)


@state.command("rollback")
def state_rollback(
    job: JobName,
    to: Annotated[int, typer.Option(help="The commit to go back to.")],
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be taken back.")] = False,
    supersede: Annotated[bool, typer.Option("--supersede", help="Give up a run that is open.")] = False,
) -> None:
    """Make an earlier commit the head again, by a new commit; the records of those after it leave the sinks.

    Example: hindstream state rollback flight-delays --to 6 --dry-run
    """
    from hindstream.state import roll_back  # noqa: PLC0415

    given = _settings(settings, warehouse=warehouse)
    roll_back(_job_name(job), given, to, yes=yes, dry_run=dry_run, supersede=supersede)


migrate = typer.Typer(
    name="migrate",
    help="Make the store of a table anew: versioned, plain again, or with another retention.\n\n"
    "Change the job's topology first; then plan, run, and if need be rollback.\n\n"
    "Example: hindstream migrate plan jobs/rates.py:job --store rates",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(migrate)

Stores = Annotated[list[str], typer.Option("--store", metavar="NAME", help="A store to migrate; may be repeated.")]


@migrate.command("plan")
def migrate_plan(job: JobReference, store: Stores, warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """Show what a migration would do; nothing is changed.

    Example: hindstream migrate plan jobs/rates.py:job --store rates
    """
    from hindstream.migrate import print_plan  # noqa: PLC0415
    from statelib.job import load_job  # noqa: PLC0415

    print_plan(load_job(job), _settings(settings, warehouse=warehouse), store)


@migrate.command("run")
def migrate_run(
    job: JobReference,
    store: Stores,
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Hold the job, make the stores anew in a commit of its own, compare latest values, let the job go.

    Killed at any moment, the same command goes on.

    Example: hindstream migrate run jobs/rates.py:job --store rates
    """
    from hindstream.migrate import run  # noqa: PLC0415
    from statelib.job import load_job  # noqa: PLC0415

    run(load_job(job), _settings(settings, warehouse=warehouse), store, yes=yes)


@migrate.command("verify")
def migrate_verify(
    job: JobName,
    commit: Annotated[int | None, typer.Option(help="The commit of the migration; none: the newest.")] = None,
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Compare the latest values of the migrated stores with those before. Exit code 74 if any differs.

    Example: hindstream migrate verify rates --commit 13
    """
    from hindstream.migrate import print_verified  # noqa: PLC0415
    from spark_jobs.migrate import verify  # noqa: PLC0415
    from spark_jobs.runs import open_warehouse  # noqa: PLC0415
    from statelib.commits import CommitLog  # noqa: PLC0415

    given, name = _settings(settings, warehouse=warehouse), _job_name(job)
    log = CommitLog(open_warehouse(given), name)
    print_verified(verify(name, given, log.read(commit or log.head_number())), name)


@migrate.command("rollback")
def migrate_rollback(
    job: JobReference, store: Stores, warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """Take back a migration that is the newest commit or has not come so far, and let the job go.

    Example: hindstream migrate rollback jobs/rates.py:job --store rates
    """
    from spark_jobs.migrate import take_back  # noqa: PLC0415
    from statelib.job import load_job  # noqa: PLC0415

    loaded = load_job(job)
    head = take_back(loaded, _settings(settings, warehouse=warehouse), store)
    typer.echo(f"{loaded.name}: commit {head.commit} is the head.")


@app.command()
def release(job: JobName, holder: str, warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """Let a job go that somebody holds who is no longer at work on it.

    Example: hindstream release rates migration-of-rates
    """
    from spark_jobs.runs import open_warehouse  # noqa: PLC0415
    from statelib.commits import release_hold  # noqa: PLC0415

    release_hold(open_warehouse(_settings(settings, warehouse=warehouse)), _job_name(job), holder)


@app.command()
def settings(warehouse: Warehouse = None, until: Until = None, assignments: Assignments = None) -> None:
    """Show every setting, its value, and where that comes from.

    Example: HINDSTREAM_SPARK_MASTER=local[4] hindstream settings
    """
    typer.echo(_settings(assignments, warehouse=warehouse, until=until).explain())


@app.command()
def plan(
    job: JobReference,
    until: Until = None,
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
) -> None:
    """First phase: fix what the next run will replay.

    Example: hindstream plan jobs/flights.py:job --until 2013-02-01T00:00Z
    """
    given = _settings(settings, warehouse=warehouse, until=until, end_of_input=_sealed(seal))
    planned = _phase("plan", job, given, None)
    typer.echo(getattr(planned, "run_id", None) or str(planned))


def _phase_command(name: str, description: str) -> None:
    """Adds the command of a phase that works on a planned run."""

    def command(
        job: JobReference, run_id: RunId = None, warehouse: Warehouse = None, settings: Assignments = None
    ) -> None:
        _phase(name, job, _settings(settings, warehouse=warehouse), run_id)

    app.command(name, help=f"{description}\n\nExample: hindstream {name} jobs/flights.py:job")(command)


_phase_command("replay", "Second phase: replay the planned slice on Spark, and stage the result.")
_phase_command("audit", "Third phase: check what was staged. A run that fails is quarantined.")
_phase_command("commit", "Fourth phase: make the audited run true.")
_phase_command("publish", "Fifth phase: add the committed files to the sink topics.")
_phase_command("maintain", "Sixth phase: expire old state and leftovers.")
_phase_command("report", "Last phase: write the pages of the run and of the job.")


def _phase(name: str, job: str, settings: Settings, run_id: str | None) -> Any:
    from statelib.job import load_job  # noqa: PLC0415

    return importlib.import_module(f"spark_jobs.{name}").run(load_job(job), settings, run_id)


def _settings(assignments: list[str] | None, **given: str | None) -> Settings:
    """The settings, those of the command line first.

    Raises:
        ConfigurationError: See `statelib.config.load_settings`; or ``--set`` without ``=``.
    """
    from statelib.config import load_settings  # noqa: PLC0415

    values: dict[str, Any] = {}
    for assignment in assignments or []:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigurationError("--set takes NAME=VALUE", setting=assignment, next_step=f"--set {name}=VALUE")
        name, dot, inner = name.replace("-", "_").partition(".")
        if dot:  # one entry of a mapping: --set spark_conf.spark.executor.memory=2g
            values.setdefault(name, {})[inner] = value
        else:
            values[name] = value
    return load_settings({**values, **{name: value for name, value in given.items() if value is not None}})


def _sealed(seal: bool) -> str | None:  # noqa: FBT001
    """The setting that ``--seal`` stands for."""
    return "seal" if seal else None


def _job_name(reference: str) -> str:
    """The name of a job that is given by name or by where it is."""
    if ":" not in reference and not reference.endswith(".py"):
        return reference
    from statelib.job import load_job  # noqa: PLC0415

    return load_job(reference).name


if __name__ == "__main__":
    main()
