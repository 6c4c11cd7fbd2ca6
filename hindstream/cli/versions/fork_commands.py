"""``hindstream fork`` and ``drop``: their options; see `hindstream.cli.versions.fork`."""

from __future__ import annotations

from typing import Annotated

import typer

from hindstream.cli.arguments import (
    AllStores,
    Assignments,
    By,
    Examples,
    Ignored,
    JsonOrText,
    Page,
    RowsUntil,
    Since,
    Sinks,
    StoreNames,
    Tolerances,
    Warehouse,
    given_settings,
    job_and_commit,
    named_job,
)
from statelib.errors.kinds import ConfigurationError


def fork(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB[@COMMIT]", help="The job: its name, or FILE.py:NAME; and the commit."),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The fork's name.")],
    commit: Annotated[int | None, typer.Option(help="The commit to go on from; default: the newest.")] = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Fork a job: NEW goes on from a commit of it, and shares its state. Takes seconds, whatever the state's size.

    Run it with --fork NEW: its sinks are <sink>.NEW. The job that it stands on does not change.

    Example: hindstream fork flight-delays longer-grace --commit 6
    """
    from hindstream.cli.versions.fork import fork_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    name, at = job_and_commit(job, given)
    if at is not None and commit is not None and at != commit:
        step = f"give one of them: {name}@{at}, or --commit {commit}"
        raise ConfigurationError("two commits are given", job=name, next_step=step)
    fork_job(name, new, at if commit is None else commit, given, output)


def drop(
    fork: Annotated[str, typer.Argument(metavar="FORK", help="The fork's name.")],
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    supersede: Annotated[bool, typer.Option("--supersede", help="Abandon an open run.")] = False,
) -> None:
    """Drop a fork: its commits, its sinks' topics, and the state that only it needs. Other jobs are refused.

    Example: hindstream drop longer-grace
    """
    from hindstream.cli.versions.fork import drop_job  # noqa: PLC0415

    drop_job(fork, given_settings(settings, warehouse=warehouse), yes=yes, supersede=supersede, output=output)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="JOB or JOB@COMMIT; the job: its name, or FILE.py:NAME.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What A is compared with; the same.")],
    sinks: Sinks = None,
    by: By = None,
    tolerances: Tolerances = None,
    ignored: Ignored = None,
    stores: StoreNames = None,
    limit: Examples = 3,
    since: Since = None,
    until: RowsUntil = None,
    page: Page = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the first difference. Replays; jobs as FILE.py:NAME.")
    ] = False,
    all_stores: AllStores = False,
    on_spark: Annotated[
        bool, typer.Option("--on-spark", help="Match the records of sinks on Spark: for hundreds of millions of them.")
    ] = False,
) -> None:
    """Compare the sinks of two jobs, or of two commits. The exit code is 0 if they are equal, and 1 if they differ.

    Records that a fork and its job share are not read. The warehouse is only read.

    Example: hindstream diff flight-delays longer-grace
    """
    from hindstream.cli.versions.diff import Asked, interval_of, print_difference, rules_of  # noqa: PLC0415
    from hindstream.runs import split_commit  # noqa: PLC0415
    from statelib.comparison.sinks import JobCommit  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    of_a = named_job(split_commit(a)[0], None)
    of_b = named_job(split_commit(b)[0], given.fork)  # the new version is what the setting is about
    asked = Asked(
        sinks or (),
        by,
        rules_of(tolerances or (), ignored or ()),
        limit,
        page,
        stores or (() if all_stores else None),
        interval_of(since, until),
        (of_a[1], of_b[1]) if explain else None,
        on_spark=on_spark,
    )
    one, other = JobCommit(of_a[0], split_commit(a)[1]), JobCommit(of_b[0], split_commit(b)[1])
    print_difference(one, other, asked, given, output=output)
