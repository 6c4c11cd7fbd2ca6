"""``hindstream backfill``: slices one after the other through an Airflow in this process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.airflow.embedded import backfill
from hindstream.console.json_lines import print_json
from hindstream.console.numbers import time_text
from hindstream.console.output import standard_output
from hindstream.console.progress import Progress
from hindstream.slices import Every, slice_ends_ms, time_of, time_zone
from hindstream.spark.phases.data_docs import beside_by_default, write_beside
from statelib.job.job import load_job
from statelib.settings.local_dir import for_all_hosts

if TYPE_CHECKING:
    from hindstream.airflow.embedded import SliceRun
    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings


def run_backfill(
    job: str,
    start: str,
    end: str,
    every: Every,
    timezone: str | None,
    airflow_home: str,
    settings: Settings,
    output: Output = "table",
) -> None:
    """Runs the slices from ``start`` to ``end``; prints a line for each. Only the last one may seal the job.

    Days, weeks and months are those of ``timezone``, or else of the offset that ``start`` has.

    Raises:
        ConfigurationError: A time or the time zone is none, or the backfill would end before it begins.
        HindstreamError: That of the phase that failed; the slices before it are done.
    """
    zone = time_zone(timezone) if timezone else None
    ends = slice_ends_ms(time_of("from", start, zone), time_of("to", end, zone), every)
    console = standard_output()
    settings, name = beside_by_default(settings), load_job(job, fork=settings.fork).name
    with Progress("replaying slices", len(ends), unit="slices", console=console) as progress:

        def tell(run: SliceRun) -> None:
            if output == "json":
                print_json({"until_ms": run.until_ms, "run": run.run_id, "future_records": run.future_records})
                progress.advance()
                return
            what = f"run {run.run_id}" if run.run_id else "nothing to do"
            console.print(f"before {time_text(run.until_ms)}: {what}", highlight=False, soft_wrap=True)
            for record in run.future_records:
                console.print(f"  {record}", highlight=False, soft_wrap=True)
            progress.advance()

        backfill(
            job,
            ends,
            home=Path(airflow_home),
            dag_id=re.sub(r"[^\w.-]+", "-", name),
            settings=_given(settings),
            task_per="run",
            seal=settings.end_of_input == "seal",
            on_slice=tell,
        )
    write_beside(name, settings)


def _given(settings: Settings) -> dict[str, object]:
    """What is not a default, as JSON data; paths absolute, because a DAG's tasks run anywhere."""
    given = json.loads(settings.model_dump_json())
    of_a_slice = {"until", "end_of_input"}
    fixed = {name: given[name] for name in given if settings.origin(name) != "default" and name not in of_a_slice}
    fixed["data_docs"] = settings.data_docs
    fixed["state_dir"] = for_all_hosts(settings.state_dir)
    if "://" not in settings.warehouse:
        fixed["warehouse"] = str(Path(settings.warehouse).absolute())
    return fixed
