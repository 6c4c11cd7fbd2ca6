"""Files of a lake: whether they can be found, and become records as it is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.doctor.finding import Finding
from hindstream.runs import open_warehouse
from hindstream.spark.lake.query_results import query_samples
from statelib.errors.counted import counted
from statelib.ingest.plan import plan_load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.job.lake_topic import LakeTopic
    from statelib.settings.settings import Settings


def check_lake(topic: LakeTopic, settings: Settings) -> Iterator[Finding]:
    """How many files are new."""
    with query_samples(settings) as run_query:
        plan, _, ledger = plan_load(topic, open_warehouse(settings), settings.source_store_options, run_query)
    new, known = (0, len(ledger.files())) if plan is None else (len(plan.files), plan.known)
    yield Finding(f"topic {topic.name}", "ok", f"{counted(new, 'new file')}, {counted(known, 'file')} loaded before")
