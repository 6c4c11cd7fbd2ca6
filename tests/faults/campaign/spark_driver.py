"""A driver of real Spark in a process of its own: ``python -m tests.faults.campaign.spark_driver VERB FOLDER [STEP]``.

It kills itself when it comes to the step, and notes each one in ``FOLDER/steps``. ``SPARK_CONF`` in the
environment is more of Spark's configuration, ``SPARK_MASTER`` the master.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from hindstream.runs import open_warehouse
from hindstream.spark.migration import migrate
from hindstream.spark.phases import pipeline
from statelib.commits.layout import topic_path
from statelib.errors.fault_points import observed
from statelib.job.job import load_job
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.faults.killer import killer
from tests.hindstream.spark.migration.test_migrate import CUT, rates
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from statelib.settings.settings import Settings

SLOW_JOB_FILE = Path(__file__).with_name("slow_orders_job.py")
RATES = 300
SLICES: dict[str, tuple[int | None, ...]] = {
    "slice": (2 * DAY_MS,),
    "first-day": (DAY_MS,),
    "two-days": (2 * DAY_MS, 3 * DAY_MS),
    "scheduled": (2 * DAY_MS,),
}
"""Verbs that run slices of the orders, and where these end."""


def settings_of(folder: Path) -> Settings:
    """Those of a warehouse below ``folder``."""
    conf = json.loads(os.environ.get("SPARK_CONF", "{}"))
    others = {"spark_master": os.environ.get("SPARK_MASTER", "local[2]"), "spark_conf": conf, "batch_records": 60}
    return make_settings(folder, **others).model_copy(update={"changelogs": ()})


def prepare(folder: Path) -> None:
    """Topics for all verbs; and a job whose store can be migrated."""
    settings = settings_of(folder)
    archive_orders(settings, orders())
    uri = open_warehouse(settings).uri(topic_path("rate"))
    records = pa.table(
        {
            "key": [f"k{n * n % 13}" for n in range(RATES)],
            "value": pa.array([None if n % 17 == 3 else n for n in range(RATES)], pa.int64()),
            "timestamp": pa.array([n * 6_000 for n in range(RATES)], pa.timestamp("ms", "UTC")),
        }
    )
    archive = TopicArchive.ensure(uri, topic_schema(pa.string(), pa.int64()), 2, topic="rate")
    append_records(archive, records, attempt="a1", app_id="test", app_version=1)
    pipeline.run_slice(rates(None), settings, CUT)


def run_slices(untils: tuple[int | None, ...], settings: Settings, folder: Path) -> None:
    """One after the other. After the n-th it notes in ``slices`` that it is done, and waits while ``wait<n>`` is."""
    for number, until_ms in enumerate(untils, start=1):
        pipeline.run_slice(load_job(f"{JOB_FILE}:job"), settings, until_ms)
        with (folder / "slices").open("a") as file:
            file.write(f"{number}\n")
        while (folder / f"wait{number}").exists():
            time.sleep(0.05)


def act(verb: str, folder: Path) -> None:
    """One verb, from wherever an earlier try has come to."""
    settings = settings_of(folder)
    if verb in SLICES:
        run_slices(SLICES[verb], settings, folder)
    elif verb == "slow-slice":
        pipeline.run_slice(load_job(f"{SLOW_JOB_FILE}:job"), settings)
    elif verb == "migrate":
        migrate.run(rates(5), settings, ["s"])
    elif verb == "take-back":
        migrate.take_back(rates(5), settings, ["s"])
    elif verb == "airflow":
        from hindstream.airflow.embedded import backfill  # noqa: PLC0415 - some seconds, which the others need not wait

        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "spark_master": "local[2]"}
        backfill(f"{JOB_FILE}:job", [2 * DAY_MS], home=folder / "airflow", dag_id="orders", settings=given)
    else:
        prepare(folder)


def main(verb: str, folder: Path, step: str | None = None) -> None:
    """See the module's docstring."""

    def note(name: str) -> None:
        with (folder / "steps").open("a") as file:
            file.write(f"{name}\n")

    with observed(killer((step, 1) if step else None, note)):
        act(verb, folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
