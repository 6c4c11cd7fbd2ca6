"""``hindstream run``: one slice, or what it would do."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table

from hindstream.console.json_lines import print_json
from hindstream.console.numbers import bytes_text, count_text, seconds_text, time_text
from hindstream.console.output import standard_output
from hindstream.console.result_log import result_is_printed
from hindstream.report.documents import add_ledgers
from hindstream.report.losses import losses
from statelib.commits import NothingToDo
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from hindstream.spark.phases.pipeline import SliceResult
    from hindstream.spark.phases.preview import Preview
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.settings.settings import Settings


def run(job: Job, settings: Settings, output: Output) -> None:
    """Runs a slice, and prints where its report is. Raises as `hindstream.spark.phases.pipeline.run_slice` does."""
    from hindstream.spark.phases.data_docs import beside_by_default, write_beside  # noqa: PLC0415
    from hindstream.spark.phases.pipeline import run_slice  # noqa: PLC0415 - a preview does without

    settings = beside_by_default(settings)
    with nullcontext() if output == "json" else result_is_printed():
        result = run_slice(job, settings)
    if not isinstance(result, NothingToDo):
        write_beside(job.name, settings)
    if output == "json":
        print_json(
            nothing_data(result) if isinstance(result, NothingToDo) else _result_data(result, _dropped(job, result))
        )
    elif isinstance(result, NothingToDo):
        typer.echo(str(result))
    else:
        if dropped := ", ".join(f"{count_text(count)} {reason}" for reason, count in _dropped(job, result).items()):
            typer.echo(f"Records that are not in the results: {dropped}.")
        if (cost := result.staged.fill) is not None and result.plan.evolution is not None:
            typer.echo(
                f"Filled {', '.join(result.plan.evolution.filled)} from history:"
                f" {counted(cost.records, 'record')} replayed in {seconds_text(cost.seconds)}."
            )
        typer.echo(f"Report: {result.report}")


def _dropped(job: Job, result: SliceResult) -> dict[str, int]:
    """Records of the slice that a reader of the results would miss, by reason: ``late``, ``duplicate``, ..."""
    nodes: dict[str, NodeMetrics] = {}
    for task in result.staged.tasks:
        add_ledgers(nodes, task.metrics)
    return {account.name: count for account, count in losses(job.topology, nodes).items()}


def print_planned(planned: Plan | NothingToDo, output: Output) -> None:
    """Prints the run that was planned, or that there is none."""
    if output == "json":
        print_json(nothing_data(planned) if isinstance(planned, NothingToDo) else _planned_data(planned))
    else:
        typer.echo(str(planned) if isinstance(planned, NothingToDo) else planned.run_id)


def print_preview(job: Job, settings: Settings, output: Output) -> None:
    """Prints what a run would do; nothing is changed.

    Raises:
        HindstreamError: See `hindstream.spark.phases.preview.preview`.
        typer.Exit: With the code of `ConfigurationError`: an expectation cannot be asked of its sink.
    """
    from hindstream.spark.phases.preview import preview  # noqa: PLC0415

    found = preview(job, settings)
    if output == "json":
        print_json(_preview_data(found))
    else:
        _print_preview(job, found)
    if found.problems:
        raise typer.Exit(found.problems[0].exit_code)


def nothing_data(result: NothingToDo) -> dict[str, Any]:
    """That there is nothing to do, as JSON data."""
    return {
        "job": result.job,
        "nothing_to_do": result.reason,
        "commit": result.head,
        "message": str(result),
        "future_records": result.future_records,
    }


def _result_data(result: SliceResult, dropped: dict[str, int]) -> dict[str, Any]:
    written: dict[str, int] = {}
    for sink in result.commit.sinks:
        written[sink.topic] = written.get(sink.topic, 0) + sink.file.rows
    return {
        "job": result.plan.job,
        "run": result.plan.run_id,
        "commit": result.commit.commit,
        "until_ms": result.plan.until_ms,
        "records_read": result.plan.records,
        "records_written": written,
        "records_dropped": dropped,
        "filled": result.plan.evolution.filled if result.plan.evolution is not None else (),
        "fill": result.staged.fill,
        "checks": len(result.audit.checks),
        "warnings": len(result.audit.warnings),
        "report": result.report,
        "seconds": result.seconds,
    }


def _planned_data(planned: Plan) -> dict[str, Any]:
    return {
        "job": planned.job,
        "run": planned.run_id,
        "commit": planned.commit,
        "until_ms": planned.until_ms,
        "records": planned.records,
        "changes": planned.evolution.changes if planned.evolution else (),
        "future_records": planned.future_records,
    }


def _preview_data(found: Preview) -> dict[str, Any]:
    planned = found.planned
    if isinstance(planned, NothingToDo):
        what = nothing_data(planned)
    else:
        what = {**_planned_data(planned), "is_resumed": found.is_resumed}
    return {
        **what,
        "reads": found.reads,
        "expectations": found.expectations,
        "problems": [problem.message for problem in found.problems],
        "unpublished_from_commit": found.unpublished,
        "estimate": found.estimate,
    }


def _print_preview(job: Job, found: Preview) -> None:
    planned = found.planned
    if isinstance(planned, NothingToDo):
        typer.echo(planned)
    else:
        _print_plan(job, planned, found)
    for record in planned.future_records:
        typer.echo(f"{record}. Next: {record.next_step}")
    if found.unpublished is not None:
        typer.echo(f"Commit {found.unpublished} is not published yet: a run does that first.")
    for problem in found.problems:
        typer.echo(problem.message)
    asked = found.expectations - len(found.problems)
    typer.echo(f"Expectations that can be asked: {asked} of {found.expectations}.")
    if found.estimate is not None:
        by = counted(found.estimate.runs, "former run")
        typer.echo(f"Replay and audit may take {seconds_text(found.estimate.seconds)}, by {by}.")
    elif not isinstance(planned, NothingToDo):
        typer.echo("How long it may take: there is no former run to tell by.")
    typer.echo("Nothing was changed.")


def _print_plan(job: Job, planned: Plan, found: Preview) -> None:
    verb = "would go on with" if found.is_resumed else "would make"
    end = "" if planned.until_ms is None else f", before {time_text(planned.until_ms)}"
    replayed = counted(planned.records, "record")
    typer.echo(f"{job.name} {verb} run {planned.run_id}, for commit {planned.commit}: {replayed}{end}.")
    if found.reads:
        standard_output().print(_reads_table(found))
    if idle := found.partitions - len(found.reads):
        typer.echo(f"Nothing new in {counted(idle, 'partition')} of the sources.")
    for change in planned.evolution.changes if planned.evolution else ():
        typer.echo(f"The topology has changed: {change}.")
    for change in planned.unseen:
        typer.echo(change)


def _reads_table(found: Preview) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("topic", overflow="fold")
    for name in ("partition", "from offset", "to before", "records", "files", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for part in found.reads:
        numbers = (part.start_offset, part.end_offset, part.records, part.files)
        table.add_row(part.topic, str(part.partition), *map(count_text, numbers), bytes_text(part.size_bytes))
    return table
