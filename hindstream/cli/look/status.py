"""``hindstream status``: a job's runs, its stores and what still waits in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from hindstream.console.json_lines import print_json
from hindstream.console.numbers import bytes_text, count_text, time_text
from hindstream.console.output import standard_output
from hindstream.console.serving import serving_sentences
from hindstream.report.documents import RunDocuments, load_runs, open_windows, sealed
from statelib.commits import published_through
from statelib.commits.versions.promotion import served_by, serving
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings


def print_status(job: str, settings: Settings, output: Output = "table") -> None:
    """Prints a line for each run, and for each store of the newest commit.

    Raises:
        ConfigurationError: There is no such job in the warehouse.
    """
    warehouse = Storage(settings.warehouse, settings.store_options)
    runs = load_runs(warehouse, job)
    if not runs:
        step = "check --warehouse and the job's name, or run it: hindstream run FILE.py:NAME"
        raise ConfigurationError("the job has no runs", job=job, warehouse=warehouse.uri(""), next_step=step)
    if output == "json":
        print_json(_data(warehouse, job, runs))
        return
    console = standard_output()
    console.print(_runs_table(runs))
    replayed = _replayed(runs)
    if replayed:
        console.print(_stores_table(replayed[-1]))
        console.print(f"Published through commit {published_through(warehouse, job)}.")
    for sentence in serving_sentences(warehouse, job):
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)
    for record in runs[-1].plan.future_records:
        console.print(f"{record}. Next: {record.next_step}", highlight=False, soft_wrap=True, markup=False)


def _data(warehouse: Storage, job: str, runs: list[RunDocuments]) -> dict[str, Any]:
    """A job's runs, and the stores after the newest that counts, as JSON data."""
    committed = _replayed(runs)
    return {
        "job": job,
        "published_through": published_through(warehouse, job),
        "serves": served_by(warehouse, job),
        "served_by": serving(warehouse, job),
        "runs": [
            {
                "run": run.run_id,
                "commit": run.plan.commit,
                "until_ms": run.plan.until_ms,
                "status": run.status,
                "is_sealed": run.sealed,
                "records_in": run.plan.records,
                "records_out": run.records_out,
                "records_by_topic": run.records_by_topic,
                "late": _late(run),
                "held": sum(metrics.held_after for metrics in run.nodes.values()),
                "state_bytes": run.state_bytes,
                "checks": None if run.audit is None else len(run.audit.checks),
                "checks_passed": None if run.audit is None else sum(check.success for check in run.audit.checks),
                "warnings": None if run.audit is None else len(run.audit.warnings),
                "seconds": run.seconds,
            }
            for run in runs
        ],
        "stores": committed[-1].stores if committed else {},
        "nodes": {
            node: {"open_windows": open_windows(metrics), "held": metrics.held_after, "sealed": sealed(metrics)}
            for node, metrics in (committed[-1].nodes if committed else {}).items()
        },
        "future_records": runs[-1].plan.future_records,
    }


def _replayed(runs: list[RunDocuments]) -> list[RunDocuments]:
    """Those that count and tell of their stores: a repair does not."""
    return [run for run in runs if run.counts and run.staged is not None]


def _runs_table(runs: list[RunDocuments]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("run", "slice before", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("in", "out", "late", "held", "state", "checks"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        held = sum(metrics.held_after for metrics in run.nodes.values())
        checks = run.audit.checks if run.audit else ()
        passed = sum(check.success for check in checks)
        table.add_row(
            run.run_id,
            time_text(run.plan.until_ms).removesuffix(" UTC"),
            f"{run.status}, sealed" if run.sealed else run.status,
            count_text(run.plan.records),
            count_text(run.records_out),
            count_text(_late(run)),
            count_text(held),
            bytes_text(run.state_bytes),
            f"{passed}/{len(checks)}" if run.audit else "",
        )
    return table


def _late(run: RunDocuments) -> int:
    """How many records came to operators after their windows had closed."""
    return sum(metrics.accounts.get("late", 0) for metrics in run.nodes.values())


def _stores_table(run: RunDocuments) -> Table:
    """What each store holds; of each node how many windows are open, and what it holds back or has sealed."""
    title = f"After commit {run.plan.commit}"
    table = Table(
        "store or node", title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for name in ("size", "open windows", "held", "sealed"):
        table.add_column(name, justify="right")
    for store, size_bytes in sorted(run.stores.items()):
        table.add_row(store, bytes_text(size_bytes))
    for node, metrics in run.nodes.items():
        figures = (open_windows(metrics), metrics.held_after, sealed(metrics))
        if any(figures):
            table.add_row(node, "", *(count_text(figure) if figure else "" for figure in figures))
    return table
