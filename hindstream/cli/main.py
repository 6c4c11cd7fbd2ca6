"""The command line: the phases of a run as verbs, what drives them, and what looks at the result.

Every command is a thin layer over a function of `hindstream` or `statelib`, imported when it is called.
"""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hindstream.cli.arguments import (
    Assignments,
    JobName,
    JobReference,
    JsonOrText,
    RunId,
    Seal,
    Stopped,
    Until,
    Warehouse,
    given_settings,
    job_name,
    sealed,
)
from hindstream.cli.help import BEGIN, BRING, LIVE, LOOK, MEND, PHASES, REPLAY, RootCommands
from hindstream.cli.ingest_command import ingest
from hindstream.cli.migrate_commands import migrate
from hindstream.cli.state_commands import state
from hindstream.cli.topic_commands import topic
from statelib.errors.exhausted import exhaustion_told
from statelib.errors.kinds import ConfigurationError, HindstreamError

if TYPE_CHECKING:
    from statelib.settings.settings import Settings

app = typer.Typer(
    name="hindstream",
    cls=RootCommands,
    help="Replays historical Kafka topics through Kafka-Streams-grade state on Spark.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FEW_ROWS = 20


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
    """Runs the command line; a deliberate error is one message and its class's exit code.

    Modules are looked for in the current directory first, as with ``python -m hindstream``: a job may be
    ``PACKAGE.MODULE:NAME``.
    """
    if not sys.flags.safe_path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    state: dict[str, bool] = {}
    try:
        with exhaustion_told():
            app(obj=state)
    except HindstreamError as error:
        if state.get("debug"):
            raise
        sys.stderr.write(f"hindstream: {error}\n")
        sys.exit(error.exit_code)


@app.command(rich_help_panel=BEGIN)
def demo(
    warehouse: Annotated[str, typer.Option(help="Folder for all files of the demo.")] = "demo-warehouse",
    output: JsonOrText = "table",
    *,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the demo's files there, and start over.")] = False,
) -> None:
    """Replay a year of flights with the weather, month by month, through Airflow and Spark.

    Example: hindstream demo --fresh
    """
    from hindstream.demo.run import run_demo  # noqa: PLC0415

    logging.getLogger().setLevel(logging.WARNING)  # the summary says it all
    run_demo(warehouse, fresh=fresh, output=output)


@app.command(rich_help_panel=BEGIN)
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's folder; files that are there stay.")],
    template: Annotated[
        Literal["aggregation", "deduplication"],
        typer.Option(help="What the job does: add records up in windows, or drop those that come twice."),
    ] = "aggregation",
    topic: Annotated[
        str | None,
        typer.Option(
            "--from-topic", metavar="TOPIC", help="A topic of the warehouse to read; default: made-up orders."
        ),
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Make a project: a job, a test that passes, a DAG, settings, a README.

    With --from-topic it has the topic's real fields and types. Key, number and windows are chosen, and it says why.

    Example: hindstream init delays --from-topic flights --warehouse demo-warehouse
    """
    from hindstream.cli.init import make  # noqa: PLC0415

    make(name, template, topic, given_settings(settings, warehouse=warehouse), output)


@app.command(rich_help_panel=BRING)
def archive(
    topics: Annotated[
        str,
        typer.Argument(
            metavar="TOPICS", help="The topics to copy, with their serdes: FILE.py:NAME, PACKAGE.MODULE:NAME."
        ),
    ],
    until: Until = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Copy new records of Kafka topics, and new files of a data lake, into topic archives, exactly once.

    Example: hindstream archive jobs/clicks.py:topics --set kafka.bootstrap.servers=broker:9092
    """
    from hindstream.cli.archive import run_archive  # noqa: PLC0415
    from statelib.job.topics import load_topics  # noqa: PLC0415

    run_archive(load_topics(topics), given_settings(settings, warehouse=warehouse, until=until), output)


@app.command(rich_help_panel=LIVE)
def handover(
    what: Annotated[str, typer.Argument(metavar="HANDOVER", help="The Handover: FILE.py:NAME, PACKAGE.MODULE:NAME.")],
    commit: Annotated[int | None, typer.Option(help="The job's commit; default: the newest.")] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete existing changelog topics with all their records.")
    ] = False,
    stopped: Stopped = False,
) -> None:
    """Hand a job's state over to a Kafka Streams application: its changelogs and its group's offsets.

    Example: hindstream handover jobs/flights.py:handover --set kafka.bootstrap.servers=broker:9092
    """
    from hindstream.cli.handover import run_handover  # noqa: PLC0415
    from statelib.job.handover import load_handover  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    run_handover(load_handover(what), given, commit=commit, replace=replace, stopped=stopped, output=output)


@app.command(rich_help_panel=LIVE)
def takeover(
    job: JobReference,
    handover: Annotated[
        str | None, typer.Option(help="The Handover: FILE.py:NAME. Default: `handover` beside the job.")
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    stopped: Stopped = False,
) -> None:
    """Continue where a Kafka Streams application has stopped, from its changelogs and its group's offsets.

    Example: hindstream takeover jobs/flights.py:job --set kafka.bootstrap.servers=broker:9092
    """
    from hindstream.cli.takeover import run_takeover  # noqa: PLC0415
    from statelib.job.handover import load_handover  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    run_takeover(load_job(job), load_handover(handover or job.partition(":")[0]), given, stopped=stopped, output=output)


@app.command(rich_help_panel=REPLAY)
def run(
    job: JobReference,
    until: Until = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what would be read, whether expectations fit, how long it may take."),
    ] = False,
) -> None:
    """Run one slice in this process: plan, replay, audit, commit, publish, maintain, report.

    Example: hindstream run jobs/flights.py:job --until 2013-02-01T00:00Z
    """
    from hindstream.cli.run import print_preview  # noqa: PLC0415
    from hindstream.cli.run import run as run_one  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, until=until, end_of_input=sealed(seal))
    do = print_preview if dry_run else run_one
    do(load_job(job), given, output)


@app.command(rich_help_panel=REPLAY)
def backfill(
    job: JobReference,
    start: Annotated[str, typer.Option("--from", help="Start of the first slice: ISO 8601.")],
    end: Annotated[str, typer.Option("--to", help="End of the last slice.")],
    every: Annotated[Literal["hour", "day", "week", "month"], typer.Option(help="The length of a slice.")] = "day",
    timezone: Annotated[
        str | None,
        typer.Option(help="Time zone of days, weeks and months, and of times without an offset: America/New_York."),
    ] = None,
    airflow_home: Annotated[
        str, typer.Option(help="Airflow's home, with its database and log.")
    ] = ".hindstream/airflow",
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
) -> None:
    """Run many slices one after the other, through an Airflow in this process. --seal seals the last one.

    Example: hindstream backfill jobs/flights.py:job --from 2013-01-01 --to 2014-01-01 --every month --timezone UTC
    """
    from hindstream.cli.backfill import run_backfill  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, end_of_input=sealed(seal))
    run_backfill(job, start, end, every, timezone, airflow_home, given, output)


@app.command(rich_help_panel=LOOK)
def jobs(output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """Show the jobs of the warehouse: commits, end of the newest slice, records, sinks, who holds it, open runs.

    Example: hindstream jobs --warehouse demo-warehouse
    """
    from hindstream.cli.jobs import print_jobs  # noqa: PLC0415

    print_jobs(given_settings(settings, warehouse=warehouse), output)


@app.command(rich_help_panel=LOOK)
def topics(
    name: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="A topic, in detail; default: a line for each of them.")
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    scan: Annotated[
        bool, typer.Option(help="Whether to read TOPIC's timestamps where its log leaves open which records are late.")
    ] = True,
) -> None:
    """Show the topics of the warehouse: records, partitions, times, late records, size, fields.

    A record is late if its timestamp is below the largest one before it in its partition.

    Example: hindstream topics flights --warehouse demo-warehouse
    """
    from hindstream.cli.topics import print_topic, print_topics  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    if name is None:
        print_topics(given, output)
    else:
        print_topic(name, given, output, scan=scan)


@app.command(rich_help_panel=LOOK)
def show(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="KEY",
            help="Only records with this key: text, or JSON if it is not text; of a window the plain key.",
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="The first offset, or the least timestamp: ISO 8601 with time zone.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="The offset or timestamp before which records are shown.")
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of records; default: 20, or all records of a key.")
    ] = None,
    output: Annotated[Literal["table", "json", "csv"], typer.Option(help="Output format.")] = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Show records of a topic: a source, a sink, a job's late or quarantined records, a changelog.

    A key is looked for where Kafka's partitioner puts it, and elsewhere only if it is not there.

    Example: hindstream show flights JFK --from 2013-02-01T00:00Z --to 2013-02-02T00:00Z
    """
    from hindstream.cli.show import print_records  # noqa: PLC0415

    most = limit or (_FEW_ROWS if key is None else None)
    given = given_settings(settings, warehouse=warehouse)
    print_records(topic, key, given, start=start, end=end, partition=partition, limit=most, output=output)


@app.command(rich_help_panel=LOOK)
def status(
    job: JobName, output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """Show a job's runs: commits, slices, records, size of the state, open windows.

    Example: hindstream status flight-delays --warehouse demo-warehouse
    """
    from hindstream.cli.status import print_status  # noqa: PLC0415

    print_status(job_name(job), given_settings(settings, warehouse=warehouse), output)


@app.command(rich_help_panel=LOOK)
def placement(
    job: JobName,
    run_id: RunId = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Show which hosts run which tasks and keep which copies of state, with lags, and which tasks move and why.

    Example: hindstream placement flight-delays
    """
    from hindstream.cli.placement import print_placement  # noqa: PLC0415

    print_placement(job_name(job), run_id, given_settings(settings, warehouse=warehouse), output)


@app.command(rich_help_panel=LOOK)
def describe(job: JobReference, output: JsonOrText = "table") -> None:
    """Show a job's topology as text, as Kafka Streams describes it. The job's report shows it as a picture.

    Example: hindstream describe hindstream.demo.job:job
    """
    from hindstream.cli.describe import print_topology  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    print_topology(load_job(job), output)


@app.command(rich_help_panel=LOOK)
def inspect(
    job: JobName,
    store: Annotated[
        str | None, typer.Argument(metavar="STORE", help="The store's name; default: list the stores.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="The key: text, or JSON if it is not text; default: all keys."),
    ] = None,
    as_of: Annotated[str | None, typer.Option(help="At this time: ISO 8601 with time zone; default: latest.")] = None,
    commit: Annotated[int | None, typer.Option(help="At this commit; default: the newest.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of rows; default: 20, or all rows of a key.")] = None,
    output: Annotated[Literal["table", "json", "csv"], typer.Option(help="Output format.")] = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    history: Annotated[bool, typer.Option("--history", help="All versions of a versioned store.")] = False,
) -> None:
    """Show the content of a store or a key, at a commit and a time. The job's code is not needed.

    Example: hindstream inspect flight-delays weather-by-origin JFK --as-of 2013-06-01T12:00Z
    """
    from hindstream.cli.inspect import print_rows, print_stores  # noqa: PLC0415

    name, given = job_name(job), given_settings(settings, warehouse=warehouse)
    if store is None:
        print_stores(name, commit, given, output)
        return
    most = limit or (_FEW_ROWS if key is None else None)
    print_rows(name, store, key, as_of, commit, given, history=history, limit=most, output=output)


@app.command(rich_help_panel=BEGIN)
def doctor(
    job: Annotated[
        str | None,
        typer.Argument(metavar="JOB", help="A job: its name, or FILE.py:NAME, which also checks its sinks in Kafka."),
    ] = None,
    topics: Annotated[str | None, typer.Option(help="Topics to archive: FILE.py:NAME.")] = None,
    handover: Annotated[str | None, typer.Option(help="A hand-over to a live application: FILE.py:NAME.")] = None,
    connection: Annotated[str | None, typer.Option(help="Airflow's connection for the object store.")] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    spark: Annotated[bool, typer.Option(help="Whether to start Spark.")] = True,
) -> None:
    """Check everything that a run needs. Shows what is wrong and the command that fixes it; changes nothing.

    Exit code 78 if anything is wrong.

    Example: hindstream doctor jobs/flights.py:job --topics jobs/flights.py:topics
    """
    from hindstream.doctor.examine import examine, print_findings  # noqa: PLC0415
    from statelib.job.handover import load_handover  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415
    from statelib.job.topics import load_topics  # noqa: PLC0415

    findings = examine(
        given_settings(settings, warehouse=warehouse),
        job=load_job(job) if job and (":" in job or job.endswith(".py")) else job,
        topics=load_topics(topics) if topics else (),
        handover=load_handover(handover) if handover else None,
        connection=connection,
        with_spark=spark,
    )
    if not print_findings(findings, output):
        raise typer.Exit(ConfigurationError.exit_code)


@app.command(rich_help_panel=MEND)
def release(
    job: JobName,
    holder: Annotated[str, typer.Argument(metavar="HOLDER", help="Who holds it, as the refused command says.")],
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Release a job that is still held by a command that nobody is running any more.

    Example: hindstream release rates migration-of-rates
    """
    from hindstream.runs import open_warehouse  # noqa: PLC0415
    from statelib.commits import release_hold  # noqa: PLC0415

    release_hold(open_warehouse(given_settings(settings, warehouse=warehouse)), job_name(job), holder)


@app.command(rich_help_panel=BEGIN)
def settings(
    output: JsonOrText = "table", warehouse: Warehouse = None, until: Until = None, assignments: Assignments = None
) -> None:
    """Show every setting, its value, where the value comes from, and what the setting does.

    Example: HINDSTREAM_SPARK_MASTER=local[4] hindstream settings
    """
    from hindstream.cli.settings import print_settings  # noqa: PLC0415

    print_settings(given_settings(assignments, warehouse=warehouse, until=until), output)


@app.command(rich_help_panel=PHASES)
def plan(
    job: JobReference,
    until: Until = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
) -> None:
    """First phase: decide what the next run replays.

    Example: hindstream plan jobs/flights.py:job --until 2013-02-01T00:00Z
    """
    from hindstream.cli.run import print_planned  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, until=until, end_of_input=sealed(seal))
    planned = _phase("plan", job, given, None)
    print_planned(planned, output)


def _phase_command(name: str, description: str) -> None:
    """Adds the command of a phase that works on a planned run."""

    def command(
        job: JobReference, run_id: RunId = None, warehouse: Warehouse = None, settings: Assignments = None
    ) -> None:
        _phase(name, job, given_settings(settings, warehouse=warehouse), run_id)

    app.command(name, rich_help_panel=PHASES, help=f"{description}\n\nExample: hindstream {name} jobs/flights.py:job")(
        command
    )


_phase_command("replay", "Second phase: replay the planned slice on Spark, and stage the result.")
_phase_command("audit", "Third phase: check what was staged. A run that fails is quarantined.")
_phase_command("commit", "Fourth phase: make the audited run true.")
_phase_command("publish", "Fifth phase: add the committed files to the sink topics.")
_phase_command("maintain", "Sixth phase: expire old state and leftovers.")
_phase_command("report", "Last phase: write the pages of the run and of the job.")

app.command(rich_help_panel=BRING)(ingest)
app.add_typer(topic, rich_help_panel=LOOK)
app.add_typer(state, rich_help_panel=MEND)
app.add_typer(migrate, rich_help_panel=MEND)


def _phase(name: str, job: str, settings: Settings, run_id: str | None) -> Any:
    from statelib.job.job import load_job  # noqa: PLC0415

    return importlib.import_module(f"hindstream.spark.phases.{name}").run(load_job(job), settings, run_id)


if __name__ == "__main__":
    main()
