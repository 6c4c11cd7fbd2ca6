"""``hindstream demo``, ``init``, ``doctor``, ``settings``: their options."""

from __future__ import annotations

import logging
from typing import Annotated, Literal

import typer

from hindstream.cli.arguments import (
    Assignments,
    JsonOrText,
    Until,
    Warehouse,
    given_settings,
)
from statelib.errors.kinds import ConfigurationError


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


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's folder; files that are there stay.")],
    template: Annotated[
        Literal["aggregation", "deduplication", "table"] | None,
        typer.Option(
            help="What the job does: add records up in windows (the default), drop those that come twice, or add up the"
            " rows of a table (the default where the topic has deletions)."
        ),
    ] = None,
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
    from hindstream.cli.begin.init import make  # noqa: PLC0415

    make(name, template, topic, given_settings(settings, warehouse=warehouse), output)


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

    given = given_settings(settings, warehouse=warehouse)
    findings = examine(
        given,
        job=load_job(job, fork=given.fork) if job and (":" in job or job.endswith(".py")) else job,
        topics=load_topics(topics) if topics else (),
        handover=load_handover(handover) if handover else None,
        connection=connection,
        with_spark=spark,
    )
    if not print_findings(findings, output):
        raise typer.Exit(ConfigurationError.exit_code)


def settings(
    output: JsonOrText = "table", warehouse: Warehouse = None, until: Until = None, assignments: Assignments = None
) -> None:
    """Show every setting, its value, where the value comes from, and what the setting does.

    Example: HINDSTREAM_SPARK_MASTER=local[4] hindstream settings
    """
    from hindstream.cli.begin.settings import print_settings  # noqa: PLC0415

    print_settings(given_settings(assignments, warehouse=warehouse, until=until), output)
