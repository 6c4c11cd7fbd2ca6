"""Runs the demo: archives its topics once, replays the year month by month through Airflow, and tells what came of it.

What is done is done: a later call looks at the commits, and runs the months that are missing, if any.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from hindstream.console.json_lines import print_json
from hindstream.console.output import standard_output
from hindstream.console.progress import Progress
from hindstream.demo import DELAYS, FLIGHTS, FLIGHTS_ONCE, LOCAL_TIME, NAME, REFERENCE, WEATHER
from hindstream.demo.summary import month_name, print_summary, summary_data
from hindstream.report.documents import load_runs
from hindstream.report.layout import report_path
from statelib.commits import CommitLog, JobLayout, late_topic, published_through, quarantine_topic, topic_path
from statelib.settings.settings import load_settings
from statelib.storage import Storage

if TYPE_CHECKING:
    from hindstream.airflow.embedded import SliceRun
    from hindstream.console.json_lines import Output

_YEAR = 2013

MONTH_ENDS_MS = tuple(
    int(datetime(_YEAR + month // 12, month % 12 + 1, 1, tzinfo=LOCAL_TIME).timestamp() * 1000)
    for month in range(1, 13)
)
"""Where the twelve slices end: midnight in New York before the first day of the next month, ms."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the demo keeps things: durable ones in the warehouse, others in a local folder."""

    warehouse: Storage
    local: Path

    @property
    def airflow_home(self) -> Path:
        return self.local / "airflow"

    @property
    def state_dir(self) -> Path:
        return self.local / "state"

    def clear(self) -> None:
        """Deletes what the demo has made, and nothing else."""
        folders = [
            JobLayout(NAME).root,
            *(topic_path(topic) for topic in (FLIGHTS, WEATHER, FLIGHTS_ONCE, DELAYS)),
            *(topic_path(topic_of(NAME)) for topic_of in (quarantine_topic, late_topic)),
        ]
        for folder in folders:
            self.warehouse.delete([entry.path for entry in self.warehouse.list(folder)])
            if (local := self.warehouse.local_path(folder)) is not None:
                shutil.rmtree(local, ignore_errors=True)
        for local in (self.airflow_home, self.state_dir):
            shutil.rmtree(local, ignore_errors=True)


def run_demo(warehouse: str, *, fresh: bool = False, console: Console | None = None, output: Output = "table") -> None:
    """Runs what is missing of the demo, and prints a summary.

    Args:
        warehouse: A directory, which then holds everything that the demo makes; or a URL.
        fresh: Delete first what the demo has made there before.
        console: Where to print; None: the standard output.
        output: How.

    Raises:
        HindstreamError: That of the phase that failed. The months before it are done.
    """
    if output == "json":
        console = Console(stderr=True)
    console = console or standard_output()
    places = _Places(Storage(warehouse), Path(".hindstream/demo") if "://" in warehouse else Path(warehouse))
    if fresh:
        places.clear()
    missing = _missing_months(places.warehouse)
    nothing_new = None
    if missing is None:
        console.print("All twelve months have been replayed: nothing is repeated. --fresh starts over.")
    else:
        nothing_new = _replay(places, missing, console)
        _write_report(places.warehouse)
    runs = load_runs(places.warehouse, NAME)
    print_summary(places.warehouse, runs, console)
    if output == "json":
        print_json(summary_data(places.warehouse, runs))
    if nothing_new is not None:
        console.print(nothing_new)


def _missing_months(warehouse: Storage) -> list[int] | None:
    """The ends of the months that have not been committed; None: everything is done, published and reported."""
    head = CommitLog(warehouse, NAME).head()
    everything = head is not None and head.until_ms is None
    done = head.until_ms or 0 if head is not None else 0
    missing = [] if everything else [end for end in MONTH_ENDS_MS if end > done]
    complete = head is not None and not missing and published_through(warehouse, NAME) >= head.commit
    return None if complete and warehouse.exists(report_path(NAME)) else missing


def _replay(places: _Places, missing: list[int], console: Console) -> str:
    """Archives the topics and runs the missing months, and then all that there is: which is nothing more."""
    with Progress("preparing", len(missing) + 1, unit="slices", console=console) as progress:
        from hindstream.demo.archives import prepare_topics  # noqa: PLC0415  (needless where all is done)
        from hindstream.spark.phases.data_docs import beside_by_default, write_beside  # noqa: PLC0415
        from hindstream.spark.session.session import start_ahead  # noqa: PLC0415

        given = {"warehouse": places.warehouse.uri(""), "state_dir": str(places.state_dir.absolute())}
        settings = beside_by_default(load_settings(given))
        if missing:
            start_ahead(settings)
        prepare_topics(places.warehouse, announce=progress.label)
        progress.label("starting Airflow and Spark")
        from hindstream.airflow.embedded import backfill  # noqa: PLC0415  (seconds, and needless where all is done)

        def advance(run: SliceRun) -> None:
            following = [end for end in missing if run.until_ms is not None and end > run.until_ms]
            what = f"replaying {month_name(following[0])}" if following else "looking for more"
            progress.advance()
            progress.label(what)

        runs = backfill(
            REFERENCE,
            [*missing, None],
            home=places.airflow_home,
            dag_id=NAME,
            settings={**given, "keep_commits": len(MONTH_ENDS_MS), "data_docs": settings.data_docs},
            task_per="run",
            on_slice=advance,
        )
        write_beside(NAME, settings)
    if runs[-1].run_id is None:
        return "One more run, of all that there is, found nothing new and changed nothing."
    return f"One more run, of all that there is, found more: {runs[-1].run_id}."


def _write_report(warehouse: Storage) -> None:
    """The job's page anew: the last run may have been reported by an earlier call, or not at all."""
    from hindstream.demo.job import job  # noqa: PLC0415  (needless where all is done)
    from hindstream.report.write import write_job_report  # noqa: PLC0415

    write_job_report(warehouse, job())
