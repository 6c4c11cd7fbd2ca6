"""A replayed run of the orders job, made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.spark.phases import plan, replay
from statelib.job.job import Job, load_job
from tests.hindstream.spark.orders import JOB_FILE, archive_orders, make_settings, orders
from tests.storage.s3 import s3 as s3  # noqa: PLC0414

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statelib.documents.manifests import Staged
    from statelib.documents.plans import Plan
    from statelib.settings.settings import Settings


@dataclass
class Replayed:
    """A run that has staged its result."""

    job: Job
    settings: Settings
    plan: Plan
    staged: Staged


@pytest.fixture(scope="session")
def orders_job() -> Job:
    return load_job(f"{JOB_FILE}:job")


@pytest.fixture
def settings(tmp_path: Path, spark: SparkSession) -> Settings:
    """A warehouse with the topic of orders."""
    settings = make_settings(tmp_path)
    archive_orders(settings, orders())
    return settings


@pytest.fixture
def replayed(settings: Settings, orders_job: Job) -> Replayed:
    planned = plan.run(orders_job, settings)
    assert not isinstance(planned, plan.NothingToDo)
    return Replayed(orders_job, settings, planned, replay.run(orders_job, settings, planned.run_id))
