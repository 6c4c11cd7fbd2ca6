"""``hindstream promote``: its options; see `hindstream.cli.promote`."""

from __future__ import annotations

from typing import Annotated

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
    allow_behind: Annotated[
        bool, typer.Option("--allow-behind", help="Even if NEW has not come as far as what they read now.")
    ] = False,
    allow_other_fields: Annotated[
        bool, typer.Option("--allow-other-fields", help="Even if fields are missing, or of other types.")
    ] = False,
) -> None:
    """Promote a fork: readers who ask for the sinks of a job get those of the fork, in one step, with a way back.

    It is what hindstream.read follows. Neither job changes, and both can go on.

    Example: hindstream promote longer-grace --over flight-delays
    """
    from hindstream.cli.promote import promote_back, promote_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    if back == (new is not None):
        step = f"hindstream promote NEW --over {over}, or hindstream promote --back --over {over}"
        raise ConfigurationError("give either the fork to promote, or --back", job=over, next_step=step)
    if new is None:
        promote_back(over, given, output)
    else:
        promote_job(new, over, given, output, allow_behind=allow_behind, allow_other_fields=allow_other_fields)
