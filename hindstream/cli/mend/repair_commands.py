"""``hindstream repair``: its options; see `hindstream.cli.mend.repair`."""

from __future__ import annotations

from typing import Annotated

import typer

from hindstream.cli.arguments import (
    Assignments,
    Engine,
    Examples,
    JobReference,
    JsonOrText,
    Page,
    Warehouse,
    given_settings,
)


def repair(
    job: JobReference,
    start: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="Since when the job is wrong: ISO 8601 with time zone."),
    ],
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TIME",
            help="Until when: before --from and after --to the job's own file counts. Default: until now.",
        ),
    ] = None,
    then: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="The job's own file, as FILE.py:NAME, if it is not JOB."),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys",
            metavar="KEY",
            help="A key that may change, in each of its windows; may be given more than once. If another would change,"
            " nothing is published. Default: any may.",
        ),
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="NAME", help="Keep the fork, under this name. Default: it is dropped.")
    ] = None,
    limit: Examples = 3,
    page: Page = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    engine: Engine = None,
    *,
    late: Annotated[
        bool,
        typer.Option("--late", help="JOB is the job's own file: let in what came too late for its windows."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    supersede: Annotated[bool, typer.Option("--supersede", help="Abandon an open run.")] = False,
) -> None:
    """Repair a job that was wrong: replay with the corrected file, and publish what is different as one commit.

    A fork goes on from the job's last commit before TIME, and replays what the job has replayed since. After a question
    the job takes its state, and records that correct its sinks.

    Example: hindstream repair flights.py:job --from 2013-07-01T00:00Z
    """
    import secrets  # noqa: PLC0415

    from hindstream.cli.mend.repair import Wanted, repair_job  # noqa: PLC0415
    from hindstream.cli.versions.diff import Asked, rules_of  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, engine=engine)
    fork = keep or f"repair-{secrets.token_hex(4)}"
    wanted = Wanted(
        job=job,
        start=start,
        end=end,
        then=then,
        keys=tuple(keys or ()),
        late=late,
        fork=fork,
        keep=keep is not None,
        yes=yes,
        supersede=supersede,
    )
    repair_job(wanted, Asked((), None, rules_of((), ()), limit, page), given, output=output)
