"""The demo's summary in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from hindstream.demo import NAME
from hindstream.documents import RunDocuments, account_total, job_ledger
from hindstream.numbers import bytes_text, count_text, seconds_text, time_text
from statelib.commits import JobLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from statelib.metrics import NodeMetrics
    from statelib.storage import Storage


def print_summary(warehouse: Storage, runs: Sequence[RunDocuments], console: Console) -> None:
    """One line a slice, the totals, and where the report is."""
    committed = [run for run in runs if run.commit is not None]
    table = Table(title=f"{NAME}: each slice goes on from the state of the one before", title_justify="left")
    table.add_column("slice before")
    for name in ("records in", "duplicates", "late", "windows out", "open", "state", "checks", "time"):
        table.add_column(name, justify="right")
    for run in committed:
        table.add_row(time_text(run.plan.until_ms)[:10], *_ledger(run.plan.records, run.nodes), *_rest(run))
    total = job_ledger(committed)
    records_in = sum(run.plan.records for run in committed)
    seconds = sum(run.wall_seconds for run in committed)
    checks = sum(len(run.audit.checks) for run in committed if run.audit)
    table.add_section()
    table.add_row("total", *_ledger(records_in, total), "", count_text(checks), seconds_text(seconds))
    console.print(table)
    report = warehouse.uri(f"{JobLayout(NAME).root}/reports/index.html")
    console.print(f"Every record is accounted for: {count_text(_unaccounted(total))} are not.")
    console.print("The 2 % of flights that are delivered twice are made up; delays, disorder and weather are real.")
    console.print(f"Report: {report}", soft_wrap=True, highlight=False)


def _ledger(records_in: int, nodes: dict[str, NodeMetrics]) -> list[str]:
    written, held = account_total(nodes, "written"), sum(metrics.held_after for metrics in nodes.values())
    counts = (records_in, account_total(nodes, "duplicate"), account_total(nodes, "late"), written, held)
    return [count_text(count) for count in counts]


def _rest(run: RunDocuments) -> list[str]:
    checks = run.audit.checks if run.audit else ()
    return [bytes_text(run.state_bytes), count_text(len(checks)), seconds_text(run.wall_seconds)]


def _unaccounted(nodes: dict[str, NodeMetrics]) -> int:
    return sum(abs(metrics.unaccounted) for metrics in nodes.values())
