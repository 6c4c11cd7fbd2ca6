"""What a user asks for, from a job and settings to a prediction, with what it rests on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.estimate.calibration import find_calibration
from hindstream.estimate.evidence import evidence_of_runs
from hindstream.estimate.history import archived, next_slice
from hindstream.estimate.prediction import Prediction, Resources, predict
from hindstream.estimate.sample import SAMPLE_RECORDS, sampled
from hindstream.estimate.shape import shape_of
from statelib.commits import NothingToDo
from statelib.commits.archives import open_archive
from statelib.errors.kinds import ConfigurationError
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from pathlib import Path

    from hindstream.estimate.calibration import Calibration
    from hindstream.estimate.evidence import Evidence
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


@dataclass(frozen=True)
class Asked:
    """What is to be told.

    Attributes:
        records: How much history; None: all that is archived, or what the next run to ``settings.until`` would replay.
        size_bytes: The same, by the size of its files.
        slices: Into which it is cut.
        cores: For tasks; None: those of this machine.
        calibration: A file; None: see `find_calibration`.
        sample: Records to replay where the job has no runs to tell by; 0: none.
    """

    records: float | None = None
    size_bytes: float | None = None
    slices: int = 1
    cores: int | None = None
    calibration: Path | None = None
    sample: int = SAMPLE_RECORDS


@dataclass(frozen=True)
class Estimated:
    """An estimate, and what it rests on.

    Attributes:
        job: Its name.
        prediction: What it will cost.
        resources: With what.
        calibration: Costs of the machine.
        calibration_from: ``recorded``, or its file.
        evidence: The runs that tell where records go; None: none.
    """

    job: str
    prediction: Prediction
    resources: Resources
    calibration: Calibration
    calibration_from: str
    evidence: Evidence | None


def estimate(job: Job, settings: Settings, asked: Asked) -> Estimated | NothingToDo:
    """Estimates; nothing is changed.

    Raises:
        ConfigurationError: Two amounts of history are given, or an amount of nothing; a source is not archived, the job
            does not fit its sources, the calibration cannot be read.
        HindstreamError: What a run over the sample, or the plan of the run, would raise.
    """
    _check(asked, settings)
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    calibration, origin = find_calibration(settings, asked.calibration)
    topics = job.topology.source_topics
    whole = archived(topics, warehouse)
    history = whole
    if settings.until_ms is not None:
        found = next_slice(job, settings, warehouse)
        if isinstance(found, NothingToDo):
            return found
        history = found
    history = history.scaled(records=asked.records, size_bytes=asked.size_bytes)
    evidence = evidence_of_runs(warehouse, job, whole.begin_ms)
    if evidence is None and asked.sample:
        evidence = sampled(job, settings, warehouse, whole, asked.sample)
    shape = shape_of(job.topology, {topic: open_archive(warehouse, topic) for topic in topics}, settings.semantics)
    resources = Resources(
        engine=settings.engine,
        cores=asked.cores or os.cpu_count() or 1,
        memory_budget_bytes=settings.memory_budget_bytes,
        batch_records=settings.batch_records,
        slices=asked.slices,
        checks={topic: len(expected) for topic, expected in job.expectations.items()},
    )
    return Estimated(
        job=job.name,
        prediction=predict(shape, history, calibration, evidence, resources),
        resources=resources,
        calibration=calibration,
        calibration_from=origin,
        evidence=evidence,
    )


def _check(asked: Asked, settings: Settings) -> None:
    given = [asked.records is not None, asked.size_bytes is not None, settings.until_ms is not None]
    if sum(given) > 1:
        step = "give one of --records, --bytes and --until"
        raise ConfigurationError("more than one amount of history is given", next_step=step)
    for name, amount in (("--records", asked.records), ("--bytes", asked.size_bytes)):
        if amount is not None and amount <= 0:
            raise ConfigurationError(f"{name} must be above 0", value=amount, next_step="give how much to plan for")
