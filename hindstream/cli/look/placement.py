"""``hindstream placement``: which host runs which task and keeps which copies, what they lack, and what moves why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import typer
from rich import box
from rich.table import Table

from hindstream.console.json_lines import print_json
from hindstream.console.numbers import bytes_text, count_text, seconds_text
from hindstream.console.output import standard_output
from hindstream.report.documents import RunDocuments, load_run
from hindstream.report.placement import host_rows, task_rows, waiting
from hindstream.runs import find_plan, open_warehouse
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from hindstream.report.placement import CopyRow, HostRow, TaskRow
    from statelib.settings.settings import Settings


def print_placement(job: str, run_id: str | None, settings: Settings, output: Literal["table", "json"]) -> None:
    """Prints the round of a run, and what has come of it so far.

    Args:
        job: The job's name.
        run_id: The run; None: the newest, committed or not.
        settings: See `Settings`.
        output: How.

    Raises:
        ConfigurationError: There is no such run, or it had no round: Spark was local, or it has not been replayed.
    """
    warehouse = open_warehouse(settings)
    run = load_run(warehouse, job, find_plan(warehouse, job, run_id).run_id)
    if run.placement is None:
        what = "the run had no round of placement: Spark was local, or it has not been replayed"
        step = (
            f"run it on a cluster (the setting spark_master), or name another run with --run (hindstream status {job})"
        )
        raise ConfigurationError(what, job=job, run=run.run_id, next_step=step)
    hosts, tasks = host_rows(run), task_rows(run)
    if output == "json":
        print_json({"run": run.run_id, "hosts": hosts, "tasks": tasks})
        return
    console = standard_output()
    typer.echo(_headline(run))
    console.print(_hosts_table(hosts))
    console.print(_tasks_table(tasks))
    for row in tasks:
        if row.why:
            typer.echo(f"{row.task_id} moves from {row.before or 'nowhere'} to {row.owner}: {row.why}")
        if row.is_elsewhere and row.ran_on:
            typer.echo(f"{row.task_id} was run by {row.ran_on} instead: Spark has waited too long for {row.owner}")
        for copy in row.copies:
            if copy.remark:
                typer.echo(f"{row.task_id}: its copy on {copy.host}: {copy.remark}")
    typer.echo(_footline(run))


def _headline(run: RunDocuments) -> str:
    placement = run.placement
    if placement is None:
        return ""
    state = f"the state of commit {placement.commit}" if placement.commit else "no state yet"
    end = "this is the target" if placement.is_final else "not the target yet, which waits for copies"
    return f"Run {run.run_id}, {placement.assignor} over {state}: {end}."


def _footline(run: RunDocuments) -> str:
    found = waiting(run)
    if found is None:
        return "The run has not been replayed yet."
    copied = f"{bytes_text(found.copied_bytes)} off it" if run.copies else "copies are not done"
    fetched = f"Fetched {bytes_text(found.fetched_bytes)} of state on the critical path, {copied}."
    if found.first_seconds is None or found.last_seconds is None:
        return fetched
    first, last = seconds_text(found.first_seconds), seconds_text(found.last_seconds)
    return f"{fetched} The first task processed {first} after the run's start, the last {last}."


def _hosts_table(rows: list[HostRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("host", "executors", "rack"):
        table.add_column(name)
    for name in ("slots", "active", "standby", "learning"):
        table.add_column(name, justify="right")
    for row in rows:
        numbers = (row.consumers, len(row.active), len(row.standby), len(row.learning))
        table.add_row(row.name, row.executors, row.rack, *map(count_text, numbers))
    return table


def _tasks_table(rows: list[TaskRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("task", "runs on"):
        table.add_column(name, no_wrap=True)
    for name in ("lag", "fetched"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("copies")
    for row in rows:
        copies = "; ".join(map(_copy_text, row.copies))
        table.add_row(row.task_id, row.owner, _lag_text(row.lag_bytes), bytes_text(row.fetched_bytes), copies)
    return table


def _copy_text(copy: CopyRow) -> str:
    kind = "learning, " if copy.is_learning else ""
    return f"{copy.host}: {kind}lag {_lag_text(copy.lag_bytes)}"


def _lag_text(lag_bytes: int | None) -> str:
    return "all" if lag_bytes is None else bytes_text(lag_bytes)
