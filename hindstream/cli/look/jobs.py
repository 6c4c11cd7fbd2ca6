"""``hindstream jobs``: the jobs of a warehouse, how far they have come, and what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from hindstream.console.json_lines import print_json
from hindstream.console.numbers import count_text, time_text
from hindstream.console.output import standard_output
from statelib.commits.job_summary import UnreadableJob, job_summaries
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.commits.job_summary import JobSummary
    from statelib.settings.settings import Settings


def print_jobs(settings: Settings, output: Output) -> None:
    """Prints a line for each job of the warehouse."""
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    found = job_summaries(warehouse)
    if output == "json":
        for one in found:
            print_json(_data(one))
        return
    console = standard_output()
    readable = [one for one in found if not isinstance(one, UnreadableJob)]
    if readable:
        console.print(_table(readable))
    elif not found:
        console.print(f"There are no jobs in {warehouse.uri('')}.", soft_wrap=True, highlight=False)
    for one in found:
        if isinstance(one, UnreadableJob):
            console.print(f"{one.job}: {one.error}", soft_wrap=True, highlight=False)


def _table(found: list[JobSummary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("job", overflow="fold")
    table.add_column("commits", justify="right", no_wrap=True)
    table.add_column("slice before", min_width=len("2013-01-01"))
    for name in ("read", "written"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("sinks", overflow="fold")
    table.add_column("state", overflow="fold")
    for one in found:
        table.add_row(
            one.job,
            count_text(one.commits),
            time_text(one.until_ms).removesuffix(" UTC") if one.commits else "",
            "?" if one.records_read is None else count_text(one.records_read),
            count_text(sum(one.sinks.values())),
            ", ".join(topic for topic, records in one.sinks.items() if records),
            _state(one),
        )
    return table


def _state(one: JobSummary) -> str:
    parts = (
        f"fork of {one.forked_from.job}@{one.forked_from.commit}" if one.forked_from else "",
        f"serves the readers of {', '.join(one.serves)}" if one.serves else "",
        f"held by {one.hold.holder}" if one.hold else "",
        f"run {one.open_run.run_id} {one.open_run.state}" if one.open_run else "",
        "sealed" if one.is_sealed else "",
    )
    return ", ".join(filter(None, parts))


def _data(one: JobSummary | UnreadableJob) -> Any:
    """A job as JSON data."""
    return {"job": one.job, "error": str(one.error)} if isinstance(one, UnreadableJob) else one
