"""Commands that look at jobs, topics and state: their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hindstream.cli.arguments import (
    Assignments,
    Engine,
    Fork,
    JobName,
    JobReference,
    JsonOrText,
    RunId,
    Until,
    Warehouse,
    given_settings,
    job_name,
    no_more_than_indices,
)
from statelib.errors.kinds import ConfigurationError

_FEW_ROWS = 20


def jobs(output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """Show the jobs of the warehouse: commits, end of the newest slice, records, sinks, who holds it, open runs.

    Example: hindstream jobs --warehouse demo-warehouse
    """
    from hindstream.cli.look.jobs import print_jobs  # noqa: PLC0415

    print_jobs(given_settings(settings, warehouse=warehouse), output)


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
    from hindstream.cli.look.topics import print_topic, print_topics  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    if name is None:
        print_topics(given, output)
    else:
        print_topic(name, given, output, scan=scan)


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
        int | None,
        typer.Option(
            min=1, callback=no_more_than_indices, help="Number of records; default: 20, or all records of a key."
        ),
    ] = None,
    output: Annotated[Literal["table", "json", "csv"], typer.Option(help="Output format.")] = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Show records of a topic: a source, a sink, a job's late or quarantined records, a changelog.

    A key is looked for where Kafka's partitioner puts it, and elsewhere only if it is not there.

    Example: hindstream show flights JFK --from 2013-02-01T00:00Z --to 2013-02-02T00:00Z
    """
    from hindstream.cli.look.show import print_records  # noqa: PLC0415

    most = limit or (_FEW_ROWS if key is None else None)
    given = given_settings(settings, warehouse=warehouse)
    print_records(topic, key, given, start=start, end=end, partition=partition, limit=most, output=output)


def status(
    job: JobName, output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """Show a job's runs: commits, slices, records, size of the state, open windows.

    Example: hindstream status flight-delays --warehouse demo-warehouse
    """
    from hindstream.cli.look.status import print_status  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    print_status(job_name(job, given), given, output)


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
    from hindstream.cli.look.placement import print_placement  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    print_placement(job_name(job, given), run_id, given, output)


def describe(job: JobReference, output: JsonOrText = "table") -> None:
    """Show a job's topology as text, as Kafka Streams describes it. The job's report shows it as a picture.

    Example: hindstream describe hindstream.demo.job:job
    """
    from hindstream.cli.look.describe import print_topology  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    print_topology(load_job(job), output)


def estimate(
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="The job: FILE.py:NAME or PACKAGE.MODULE:NAME.")
    ] = None,
    records: Annotated[
        float | None, typer.Option(help="Records to plan for, such as 10e9; default: all that is archived.")
    ] = None,
    size_bytes: Annotated[
        float | None, typer.Option("--bytes", help="The same by size: bytes of files of the sources.")
    ] = None,
    until: Until = None,
    slices: Annotated[int, typer.Option(min=1, help="Slices that the history is cut into.")] = 1,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores for tasks on Spark; default: those of this machine.")
    ] = None,
    sample: Annotated[
        int,
        typer.Option(min=0, help="Records to replay in a temporary folder if the job has not run yet; 0: none."),
    ] = 200_000,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The calibration to use, or to write with --calibrate; default: state_dir's."
        ),
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    engine: Engine = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure this machine first, in less than a minute, and keep that.")
    ] = False,
) -> None:
    """Estimate what a job will cost: time, CPU, memory, state, outputs, and what limits first. Changes nothing.

    It goes by the job's former runs. Before the first run it replays a sample of its input in a temporary folder.

    Example: hindstream estimate jobs/flights.py:job --records 10e9 --slices 24 --cores 16
    """
    from pathlib import Path  # noqa: PLC0415

    from hindstream.cli.look.estimate import measure, print_estimate  # noqa: PLC0415
    from hindstream.estimate.estimate import Asked  # noqa: PLC0415
    from statelib.errors.kinds import ConfigurationError  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, until=until, engine=engine)
    file = None if calibration is None else Path(calibration)
    if job is None and not calibrate:
        step = "hindstream estimate FILE.py:NAME, or hindstream estimate --calibrate"
        raise ConfigurationError("there is no job to estimate", next_step=step)
    if calibrate:
        measure(given, file, output)
    if job is not None:
        asked = Asked(records, size_bytes, slices, cores, file, sample)
        print_estimate(load_job(job, fork=given.fork), given, asked, output)


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
    limit: Annotated[
        int | None,
        typer.Option(min=1, callback=no_more_than_indices, help="Number of rows; default: 20, or all rows of a key."),
    ] = None,
    output: Annotated[Literal["table", "json", "csv"], typer.Option(help="Output format.")] = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    history: Annotated[bool, typer.Option("--history", help="All versions of a versioned store.")] = False,
) -> None:
    """Show the content of a store or a key, at a commit and a time. The job's code is not needed.

    Example: hindstream inspect flight-delays weather-by-origin JFK --as-of 2013-06-01T12:00Z
    """
    from hindstream.cli.look.inspect import print_rows, print_stores  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    name = job_name(job, given)
    if store is None:
        print_stores(name, commit, given, output)
        return
    most = limit or (_FEW_ROWS if key is None else None)
    print_rows(name, store, key, as_of, commit, given, history=history, limit=most, output=output)


def explain(
    job: JobReference,
    sink: Annotated[str, typer.Argument(metavar="SINK", help="The topic that has the result.")],
    key: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="The result's key: text, or JSON if it is not text. Its newest record."),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Start of the key's window: ISO 8601 with time zone, or ms; default: any.")
    ] = None,
    commit: Annotated[int | None, typer.Option(help="As of this commit; default: the newest.")] = None,
    record: Annotated[
        str | None, typer.Option("--record", metavar="PARTITION:OFFSET", help="This record of the sink, not a key's.")
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=1, callback=no_more_than_indices, help="Number of source records to show of each kind."),
    ] = _FEW_ROWS,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write the explanation as a page, with a drawing.")
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    fork: Fork = None,
) -> None:
    """Show which source records made a result, which were dropped on the way, and how it went through the topology.

    The history up to the commit is replayed in a temporary folder, in this process. The warehouse is only read.

    Example: hindstream explain hindstream.demo.job:job delays-by-hour EWR --window 2013-02-08T18:00Z
    """
    from hindstream.cli.look.explain import Asked, print_explanation  # noqa: PLC0415
    from hindstream.runs import split_commit  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    reference, at = split_commit(job)
    if at is not None and commit is not None and at != commit:
        raise ConfigurationError("two commits are given", job=job, commit=commit, next_step="leave one of them out")
    asked = Asked(sink, key, window, commit if at is None else at, record)
    given = given_settings(settings, warehouse=warehouse, fork=fork)
    print_explanation(load_job(reference, fork=given.fork), asked, given, limit=limit, output=output, page=page)
