"""The demo's summary in the terminal."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from hindstream.console.numbers import bytes_text, count_text, seconds_text
from hindstream.demo import DELAYS, LOCAL_TIME, NAME
from hindstream.report.documents import RunDocuments, account_total, job_ledger
from hindstream.report.layout import report_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from statelib.storage import Storage


def print_summary(warehouse: Storage, runs: Sequence[RunDocuments], console: Console) -> None:
    """One line a month, the totals, and where the report is."""
    committed = [run for run in runs if run.counts]
    title = "2013, month by month: each continues from the state of the one before"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    table.add_column("month", no_wrap=True)
    for name in ("records", "twice", "late", "windows", "open", "state", "checks", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in committed:
        table.add_row(month_name(run.plan.until_ms), *_counts([run]), *_rest(run))
    seconds = sum(_seconds(run) for run in committed)
    checks = sum(len(run.audit.checks) for run in committed if run.audit)
    table.add_section()
    table.add_row("year", *_counts(committed), "", count_text(checks), seconds_text(seconds))
    console.print(table)
    report = warehouse.uri(report_path(NAME))
    unaccounted = sum(abs(metrics.unaccounted) for metrics in job_ledger(committed).values())
    console.print(f"Records that are not accounted for: {count_text(unaccounted)}.")
    console.print("Made up: that 2 % of the flights come twice. Delays, disorder, weather: real.")
    console.print(f"Report: {report}", soft_wrap=True, highlight=False)


def summary_data(warehouse: Storage, runs: Sequence[RunDocuments]) -> dict[str, Any]:
    """The summary as JSON data."""
    committed = [run for run in runs if run.counts]
    nodes = job_ledger(committed)
    return {
        "job": NAME,
        "commits": len(committed),
        "records": sum(run.plan.records for run in committed),
        "duplicates": account_total(nodes, "duplicate"),
        "late": account_total(nodes, "late"),
        "windows": sum(run.records_by_topic[DELAYS] for run in committed),
        "unaccounted": sum(abs(metrics.unaccounted) for metrics in nodes.values()),
        "checks": sum(len(run.audit.checks) for run in committed if run.audit),
        "seconds": sum(_seconds(run) for run in committed),
        "report": warehouse.uri(report_path(NAME)),
    }


def _counts(runs: Sequence[RunDocuments]) -> list[str]:
    """What became of the records of successive runs."""
    nodes = job_ledger(runs)
    records = sum(run.plan.records for run in runs)
    windows = sum(run.records_by_topic[DELAYS] for run in runs)
    held = sum(metrics.held_after for metrics in nodes.values())
    counts = (records, account_total(nodes, "duplicate"), account_total(nodes, "late"), windows, held)
    return [count_text(count) for count in counts]


def _rest(run: RunDocuments) -> list[str]:
    checks = run.audit.checks if run.audit else ()
    return [bytes_text(run.state_bytes), count_text(len(checks)), seconds_text(_seconds(run))]


def _seconds(run: RunDocuments) -> float:
    """Of replay and audit, as in the report: what lay between them may have been a night after a failure."""
    return sum(run.seconds.values())


def month_name(end_ms: int | None) -> str:
    """The month that ends then in New York, such as ``Feb``."""
    if end_ms is None:
        return "the rest"
    return f"{datetime.fromtimestamp(end_ms / 1000 - 1, LOCAL_TIME):%b}"
