"""``hindstream contract``: prints what a data contract is as expectations, and what a job is as a contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.console.json_lines import print_json
from hindstream.contracts.contract import chosen, load_contract
from hindstream.contracts.export import exported
from hindstream.runs import open_warehouse
from hindstream.spark.expectations.plan_time import topic_schemas

if TYPE_CHECKING:
    from pathlib import Path

    from hindstream.contracts.rules import LeftOut
    from statelib.job.job import Expectation, Job
    from statelib.settings.settings import Settings


def print_imported(file: Path, schema: str | None, at: str | None, output: str) -> None:
    """Prints the expectations of a contract as Python, and what is none as comments; or both as JSON.

    Raises:
        ConfigurationError: See `load_contract`; or it has no such object.
    """
    found = load_contract(file, at=at)
    topics = found.topics if schema is None else (chosen(found, schema),)
    left_out = [*found.left_out, *(each for topic in topics for each in topic.left_out)]
    if output == "json":
        expectations = {
            topic.topic: [{"type": e.type, "kwargs": e.kwargs, "severity": e.severity} for e in topic.expectations]
            for topic in topics
        }
        print_json({"expectations": expectations, "left_out": left_out})
        return
    lines = ["expectations = {"]
    for topic in topics:
        lines += [f"    {topic.topic!r}: (", *(f"        {_python(each)}," for each in topic.expectations), "    ),"]
    typer.echo("\n".join([*lines, "}", *map(_comment, left_out)]))


def _python(of: Expectation) -> str:
    given = [repr(of.type), *(f"{name}={value!r}" for name, value in of.kwargs.items())]
    if of.severity != "fail":
        given.append(f"severity={of.severity!r}")
    return f"expect({', '.join(given)})"


def _comment(of: LeftOut) -> str:
    return f"# not {'checked' if of.is_rule else 'a check'}: {of.place}: {of.why}"


def print_exported(job: Job, settings: Settings, output: str) -> None:
    """Prints the contract of a job, as YAML or JSON.

    Raises:
        ConfigurationError: A source has no archive; see also `exported`.
    """
    topics = [*job.topology.source_topics, *job.topology.sink_topics]
    schemas = topic_schemas(job, open_warehouse(settings), topics, settings.semantics)
    document = exported(job, schemas)
    if output == "json":
        print_json(document.model_dump(exclude_none=True, by_alias=True))
    else:
        typer.echo(document.to_yaml(), nl=False)
