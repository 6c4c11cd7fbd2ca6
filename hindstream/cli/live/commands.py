"""``hindstream handover`` and ``takeover``: their options."""

from __future__ import annotations

from typing import Annotated

import typer

from hindstream.cli.arguments import (
    Assignments,
    JobReference,
    JsonOrText,
    StateDirToWrite,
    Stopped,
    Warehouse,
    given_settings,
)


def handover(
    what: Annotated[str, typer.Argument(metavar="HANDOVER", help="The Handover: FILE.py:NAME, PACKAGE.MODULE:NAME.")],
    commit: Annotated[int | None, typer.Option(help="The job's commit; default: the newest.")] = None,
    state_dir: StateDirToWrite = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete existing changelog topics, and the application in --state-dir.")
    ] = False,
    stopped: Stopped = False,
) -> None:
    """Hand a job's state over to a Kafka Streams application: its changelogs and its group's offsets.

    Example: hindstream handover jobs/flights.py:handover --set kafka.bootstrap.servers=broker:9092

    With the state directory: hindstream handover jobs/flights.py:handover --state-dir /mnt/flights-state
    """
    from hindstream.cli.live.handover import run_handover  # noqa: PLC0415
    from statelib.job.handover import load_handover  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    run_handover(
        load_handover(what), given, commit=commit, replace=replace, stopped=stopped, state_dir=state_dir, output=output
    )


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
    from hindstream.cli.live.takeover import run_takeover  # noqa: PLC0415
    from statelib.job.handover import load_handover  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    run_takeover(load_job(job), load_handover(handover or job.partition(":")[0]), given, stopped=stopped, output=output)
