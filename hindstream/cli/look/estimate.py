"""``hindstream estimate``: what a job will cost, and what that rests on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table

from hindstream.cli.replay.run import nothing_data
from hindstream.console.json_lines import print_json
from hindstream.console.numbers import bytes_text, count_text, percent_text, seconds_text, time_text
from hindstream.console.output import standard_output
from hindstream.estimate.calibrate import calibrate
from hindstream.estimate.calibration import FILE, keep_calibration
from hindstream.estimate.estimate import estimate
from statelib.commits import NothingToDo
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from hindstream.estimate.calibration import Calibration
    from hindstream.estimate.estimate import Asked, Estimated
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_PARTS = {
    "start": "start",
    "slices": "slices, whatever they hold",
    "read": "reading",
    "process": "operators",
    "write": "writing",
    "checkpoint": "checkpoints of state",
    "audit": "audits",
}

_NANOSECONDS = 1e9


def print_estimate(job: Job, settings: Settings, asked: Asked, output: Output) -> None:
    """Prints what a job will cost; raises as `hindstream.estimate.estimate.estimate` does."""
    found = estimate(job, settings, asked)
    if isinstance(found, NothingToDo):
        if output == "json":
            print_json(nothing_data(found))
        else:
            typer.echo(str(found))
    elif output == "json":
        print_json(_data(found))
    else:
        _print(found)


def measure(settings: Settings, file: Path | None, output: Output) -> None:
    """Measures this machine, keeps that in ``file`` or ``state_dir``, and prints where.

    Raises:
        ConfigurationError: See `hindstream.estimate.calibrate.calibrate`; or the file cannot be written.
    """
    measured, place = calibrate(settings), file or settings.local_state_dir / FILE
    keep_calibration(measured, place)
    if output == "json":
        print_json({"calibration": str(place), **measured.model_dump(mode="json")})
        return
    for engine, cost in measured.engines.items():
        start = f"{seconds_text(cost.start_seconds)}, {seconds_text(cost.start_cpu_seconds)} of CPU"
        typer.echo(f"A run with engine {engine} starts in {start}.")
    standard_output().print(_kinds_table(measured))
    typer.echo(f"Calibration: {place}")


def _data(found: Estimated) -> dict[str, Any]:
    told, evidence, calibration = found.prediction, found.evidence, found.calibration
    return {
        "job": found.job,
        "records": told.records,
        "bytes": told.size_bytes,
        "slices": found.resources.slices,
        "engine": found.resources.engine,
        "cores": found.resources.cores,
        "seconds": told.seconds,
        "cpu_seconds": told.cpu_seconds,
        "peak_memory_bytes": told.peak_memory_bytes,
        "state_bytes": told.state_bytes,
        "outputs": told.outputs,
        "limit": told.limit,
        "spills": told.spills,
        "cpu_seconds_by_part": told.cpu_seconds_by_part,
        "nodes": [
            {
                "node": node.node,
                "kind": node.kind,
                "records": node.records,
                "nanoseconds_a_record": node.record_seconds * _NANOSECONDS,
                "cpu_seconds": node.cpu_seconds,
            }
            for node in told.nodes
        ],
        "stages": told.stages,
        "evidence": None
        if evidence is None
        else {
            "from": evidence.origin,
            "runs": evidence.runs,
            "records": evidence.records,
            "hosts": evidence.hosts,
            "tells_costs": evidence.tells_costs,
        },
        "calibration": {
            "from": found.calibration_from,
            "measured_at_ms": calibration.measured_at_ms,
            "machine": calibration.machine,
        },
    }


def _print(found: Estimated) -> None:
    told, resources = found.prediction, found.resources
    place = "in one process" if resources.engine == "local" else f"on Spark with {counted(resources.cores, 'core')}"
    cut = "" if resources.slices == 1 else f" in {counted(resources.slices, 'slice')}"
    size = f"{_records(told.records)}, {bytes_text(told.size_bytes)}"
    typer.echo(f"{found.job}: {size}{cut}, {place}.")
    standard_output().print(_whole_table(found))
    standard_output().print(_parts_table(found))
    typer.echo(_limit_text(found))
    typer.echo(_basis_text(found))
    typer.echo("Nothing was changed.")


def _whole_table(found: Estimated) -> Table:
    told = found.prediction
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_row("time", seconds_text(told.seconds))
    table.add_row("CPU", seconds_text(told.cpu_seconds))
    table.add_row("memory at most", bytes_text(told.peak_memory_bytes))
    table.add_row("state", bytes_text(told.state_bytes))
    for output in told.outputs:
        table.add_row(f"topic {output.topic}", f"{_records(output.records)}, {bytes_text(output.size_bytes)}")
    return table


def _records(number: float) -> str:
    return counted(round(number), "record")


def _parts_table(found: Estimated) -> Table:
    """Where the CPU time goes: each node that takes something, and the parts that are no node's."""
    told = found.prediction
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("CPU time goes into", overflow="fold")
    for name in ("records", "ns a record", "CPU", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    for part in ("start", "slices"):
        _add_part(table, found, part)
    for node in told.nodes:
        name = f"{node.kind}: {node.node}"
        each = f"{node.record_seconds * _NANOSECONDS:,.0f}"
        share = percent_text(node.cpu_seconds, told.cpu_seconds)
        table.add_row(name, count_text(node.records), each, seconds_text(node.cpu_seconds), share)
    for part in ("checkpoint", "audit"):
        _add_part(table, found, part)
    return table


def _add_part(table: Table, found: Estimated, part: str) -> None:
    seconds = found.prediction.cpu_seconds_by_part[part]
    share = percent_text(seconds, found.prediction.cpu_seconds)
    table.add_row(_PARTS[part], "", "", seconds_text(seconds), share)


def _limit_text(found: Estimated) -> str:
    told, resources = found.prediction, found.resources
    longest = max(told.stages, key=lambda stage: stage.seconds)
    match told.limit:
        case "start and slices":
            return "What limits first: the start, and what a slice takes whatever it holds. Longer slices cost less."
        case "one process":
            return "What limits first: one process runs all tasks, one after the other. Spark runs them side by side."
        case "partitions":
            tasks = counted(longest.tasks, "task")
            return f"What limits first: partitions. {tasks} cannot use {counted(resources.cores, 'core')}."
        case "hot partition":
            share = percent_text(longest.hot_share, 1)
            return f"What limits first: a hot partition. One task of {longest.tasks} has {share} of the work."
        case "memory":
            needed, budget = bytes_text(told.task_state_bytes), bytes_text(resources.memory_budget_bytes)
            return (
                f"What limits first: memory_budget_bytes. A task's state takes {needed} in memory, the budget is "
                f"{budget}; the rest spills to disk. More memory or shorter slices help."
            )
        case "cores":
            return f"What limits first: {counted(resources.cores, 'core')}. More of them help."


def _basis_text(found: Estimated) -> str:
    evidence, calibration = found.evidence, found.calibration
    measured = f"measured {time_text(calibration.measured_at_ms)}, {counted(calibration.machine.cpus, 'core')}"
    costs = f"costs of the calibration ({found.calibration_from}, {measured})"
    if evidence is None:
        return (
            f"By {costs} alone. Where records go nobody knows: each node is taken to forward all that it gets, and "
            "each record to be a key of its own. A sample tells more: leave out --sample 0."
        )
    what = counted(evidence.runs, "former run") if evidence.origin == "runs" else "a sample"
    by = f"By {what} of {counted(evidence.records, 'record')}"
    if evidence.origin == "runs":
        by += f" on {', '.join(evidence.hosts)}"
    if not evidence.tells_costs:
        return f"{by}, too few to tell costs, and {costs}."
    return f"{by}; start, slices and audits by {costs}."


def _kinds_table(calibration: Calibration) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("operator", no_wrap=True)
    table.add_column("ns a record", justify="right", no_wrap=True)
    for kind, seconds in calibration.operators.items():
        table.add_row(kind, f"{seconds * _NANOSECONDS:,.0f}")
    return table
