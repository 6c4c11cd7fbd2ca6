"""``hindstream switch ...``: another version takes a live application's place; see `hindstream.cli.live.switch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hindstream.cli.arguments import (
    Assignments,
    By,
    Examples,
    Ignored,
    JobReference,
    JsonOrText,
    RowsUntil,
    Since,
    StateDirToWrite,
    Stopped,
    Tolerances,
    Warehouse,
    given_settings,
)
from hindstream.cli.help import GroupedCommands

if TYPE_CHECKING:
    from hindstream.cli.live.switch import Switch
    from statelib.settings.settings import Settings

switch = typer.Typer(
    name="switch",
    cls=GroupedCommands,
    help="Let another version take the place of a live Kafka Streams application: no record lost, none twice.\n\n"
    "Hand over to a shadow application, watch its lag, compare what both write, stop the old one, switch over.\n\n"
    "Example: hindstream switch lag jobs/delays.py:job",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Reference = Annotated[
    str | None, typer.Option("--switch", metavar="SWITCH", help="The SwitchOver. Default: `switch` beside the job.")
]
OfCommit = Annotated[
    int | None, typer.Option("--commit", help="The commit that was handed over, or a later one; default: the newest.")
]


@switch.command("lag")
def switch_lag(
    job: JobReference,
    reference: Reference = None,
    commit: OfCommit = None,
    max_lag: Annotated[int, typer.Option(min=0, help="Offsets that the shadow may be behind in a partition.")] = 100,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Show how far both applications are behind, measured on the broker. Exit code 1 if the shadow has not caught up.

    Example: hindstream switch lag jobs/delays.py:job --max-lag 1000
    """
    from hindstream.cli.live.switch import print_lag  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    print_lag(_switch(job, reference, given, commit), max_lag, output)


@switch.command("diff")
def switch_diff(
    job: JobReference,
    reference: Reference = None,
    commit: OfCommit = None,
    by: By = None,
    tolerances: Tolerances = None,
    ignored: Ignored = None,
    limit: Examples = 3,
    since: Since = None,
    until: RowsUntil = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Compare what the old application and the shadow have written. The exit code is 1 if they differ.

    By default from where the shadow has begun to where both have come. Both may be at work.

    Example: hindstream switch diff jobs/delays.py:job --tolerance 1e-9
    """
    from hindstream.cli.live.switch import print_outputs  # noqa: PLC0415
    from hindstream.cli.versions.diff import interval_of, rules_of  # noqa: PLC0415
    from hindstream.kafka.live_outputs import OutputsAsked  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    rules, within = rules_of(tolerances or (), ignored or ()), interval_of(since, until)
    print_outputs(_switch(job, reference, given, commit), OutputsAsked(by, rules, limit, within), output)


@switch.command("over")
def switch_over(
    job: JobReference,
    reference: Reference = None,
    state_dir: StateDirToWrite = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an earlier hand-over; the new application never started.")
    ] = False,
    stopped: Stopped = False,
) -> None:
    """Replay to where the old application has stopped, and hand over to the new one, which goes on there.

    Stop the old application and archive its topics before; start the new one after. If it is killed, run it again.

    Example: hindstream switch over jobs/delays.py:job
    """
    from hindstream.cli.live.switch import run_switch_over  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    run_switch_over(
        _switch(job, reference, given), replace=replace, stopped=stopped, state_dir=state_dir, output=output
    )


def _switch(job: str, reference: str | None, settings: Settings, commit: int | None = None) -> Switch:
    from hindstream.cli.live.switch import Switch  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415
    from statelib.job.switch_over import load_switch_over  # noqa: PLC0415

    found = load_switch_over(reference or job.partition(":")[0])
    return Switch(load_job(job, fork=settings.fork), found, settings, commit)
