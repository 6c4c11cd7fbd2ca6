"""``hindstream try``: its options; see `hindstream.cli.versions.try_version`."""

from __future__ import annotations

from typing import Annotated

import typer

from hindstream.cli.arguments import (
    AllStores,
    Assignments,
    By,
    Engine,
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
)


def try_(
    new: Annotated[str, typer.Argument(metavar="NEW", help="The other version: FILE.py:NAME or PACKAGE.MODULE:NAME.")],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="JOB[@COMMIT]",
            help="The job: its name, or FILE.py:NAME of the version that has run. Default: the one of NEW's name.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Go on from the job's last commit before: ISO 8601. Default: the beginning."
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Compare here. Default: where the commit has ended.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="NAME", help="Keep the fork, under this name. Default: it is dropped.")
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample-keys", metavar="SHARE", help="Replay and compare a part of the keys: 1% or 0.01. Default: all."
        ),
    ] = None,
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
    engine: Engine = None,
    *,
    all_stores: AllStores = False,
) -> None:
    """Try another version of a job: replay its history with it, and compare. Exit codes as for diff.

    A fork replays what the job has replayed, is compared with the job, and is dropped.

    Example: hindstream try longer_grace.py:job --against flight-delays --from 2013-07-01
    """
    import secrets  # noqa: PLC0415

    from hindstream.cli.versions.diff import Asked, interval_of, rules_of  # noqa: PLC0415
    from hindstream.cli.versions.try_version import Tried, try_version  # noqa: PLC0415
    from hindstream.trials.forks import FORK_PREFIX  # noqa: PLC0415
    from hindstream.trials.wanted import share_of  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, engine=engine)
    rules = rules_of(tolerances or (), ignored or ())
    of_stores = stores or (() if all_stores else None)
    asked = Asked(sinks or (), by, rules, limit, page, of_stores, interval_of(since, until))
    fork = keep or f"{FORK_PREFIX}{secrets.token_hex(4)}"
    share = None if sample is None else share_of(sample)
    try_version(Tried(new, against, start, end, fork, keep is not None, share), asked, given, output=output)
