"""``hindstream contract ...``: data contracts, both ways; see `hindstream.cli.look.contract`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindstream.cli.arguments import Assignments, JobReference, JsonOrText, Warehouse, given_settings
from hindstream.cli.help import GroupedCommands

contract = typer.Typer(
    name="contract",
    cls=GroupedCommands,
    help="Make expectations of a data contract (Open Data Contract Standard, version 3), or a contract of a job.\n\n"
    "Example: hindstream contract import orders.odcs.yaml",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@contract.command("import")
def contract_import(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The contract.")],
    schema: Annotated[
        str | None, typer.Option(help="Only this object of the contract's schema. Default: all of them.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="The column whose fields the properties are. Default: value, unless they are columns."),
    ] = None,
    output: JsonOrText = "table",
) -> None:
    """Print the expectations of a contract, and name each rule that cannot be one.

    Example: hindstream contract import orders.odcs.yaml
    """
    from hindstream.cli.look.contract import print_imported  # noqa: PLC0415

    print_imported(file, schema, at, output)


@contract.command("export")
def contract_export(
    job: JobReference, output: JsonOrText = "table", warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """Print a contract of a job's sources and sinks: fields, types, expectations.

    Example: hindstream contract export jobs/orders.py:job > orders.odcs.yaml
    """
    from hindstream.cli.look.contract import print_exported  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    print_exported(load_job(job, fork=given.fork), given, output)
