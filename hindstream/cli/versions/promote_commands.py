"""``hindstream promote`` and ``views``: their options; see `hindstream.cli.versions.promote`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hindstream.cli.arguments import Assignments, JsonOrText, Warehouse, given_settings
from statelib.errors.kinds import ConfigurationError


def promote(
    over: Annotated[str, typer.Option(metavar="JOB", help="The job whose readers are moved.")],
    new: Annotated[
        str | None, typer.Argument(metavar="[NEW]", help="The fork that they read from now on; or the job itself.")
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    back: Annotated[bool, typer.Option("--back", help="Undo the last promotion.")] = False,
    publish: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME", help="The job that they read then: its topics in Kafka follow at once."),
    ] = None,
    allow_behind: Annotated[
        bool, typer.Option("--allow-behind", help="Even if NEW has not come as far as what they read now.")
    ] = False,
    allow_other_fields: Annotated[
        bool, typer.Option("--allow-other-fields", help="Even if fields are missing, or of other types.")
    ] = False,
) -> None:
    """Promote a fork: readers who ask for the sinks of a job get those of the fork, in one step, with a way back.

    It is what hindstream.read follows, and views of SQL when 'hindstream views' has made them again. Topics in Kafka
    get what differs, and no more. Neither job changes, and both can go on.

    Example: hindstream promote longer-grace --over flight-delays
    """
    from hindstream.cli.versions.promote import promote_back, promote_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    if back == (new is not None):
        step = f"hindstream promote NEW --over {over}, or hindstream promote --back --over {over}"
        raise ConfigurationError("give either the fork to promote, or --back", job=over, next_step=step)
    if new is None:
        promote_back(over, given, output, published=publish)
    else:
        promote_job(
            new,
            over,
            given,
            output,
            allow_behind=allow_behind,
            allow_other_fields=allow_other_fields,
            published=publish,
        )


def views(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")],
    dialect: Annotated[Literal["duckdb", "spark"], typer.Option(help="The engine that is to make them.")],
    schema: Annotated[
        str | None, typer.Option(metavar="SCHEMA", help="Where: SCHEMA or CATALOG.SCHEMA. Default: its current one.")
    ] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Print the SQL that makes a view SINK_current of each sink, for readers that follow promotions.

    The views have what hindstream.read gives: the records of the job, or of the fork that was promoted over it.

    Example: hindstream views flight-delays --dialect duckdb | duckdb lake.duckdb
    """
    from hindstream.cli.versions.promote import print_views  # noqa: PLC0415

    print_views(job, dialect, schema, given_settings(settings, warehouse=warehouse), output)
