"""A process that is measured: slices of hardly any records on an engine, and in one process memory and audits too.

``python -m hindstream.estimate.probe ENGINE WAREHOUSE STATE_DIR [MASTER]`` prints what it has seen as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from hindstream.estimate import typical
from hindstream.estimate.usage import usage
from hindstream.spark.phases.pipeline import SliceResult, run_slice
from statelib.errors.kinds import InternalError
from statelib.metrics.peak_memory import peak_memory_bytes
from statelib.settings.settings import load_settings

if TYPE_CHECKING:
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

TICKS, MANY = "ticks", "many"
"""Topics: hardly any records, and as many as fill a batch."""

CHECKS = 8
FEW = 2
WRITTEN = (f"{TICKS}-again", f"{MANY}-again", "checked-1", f"checked-{FEW}", f"checked-{CHECKS}")
"""The topics that the slices write."""

SLICES = 3


@dataclass(frozen=True)
class Probed:
    """What a process has seen of itself.

    Attributes:
        slice_seconds: Of a slice of hardly any records, of the last ones the median.
        slice_cpu_seconds: The same, of all processes.
        cpu_seconds: Of all slices and what came before.
        memory_bytes: See `hindstream.estimate.usage.Usage`; after these slices.
        worker_bytes: The same.
        batch_bytes: What a full batch of records added to the peak; 0: not measured.
        check_seconds: Of an expectation over hardly any records; 0: not measured.
        checked_record_seconds: Of an expectation, for each record; 0: not measured.
        seconds_after_start: That it went on behind these slices, to measure more.
    """

    slice_seconds: float
    slice_cpu_seconds: float
    cpu_seconds: float
    memory_bytes: int
    worker_bytes: int
    batch_bytes: int = 0
    check_seconds: float = 0.0
    checked_record_seconds: float = 0.0
    seconds_after_start: float = 0.0


def probe(engine: str, warehouse: str, state_dir: str, master: str) -> Probed:
    """Runs the slices; the warehouse has the topics."""
    given = {"engine": engine, "warehouse": warehouse, "state_dir": state_dir, "data_docs": "failed"}
    settings = load_settings({**given, "spark_master": master})
    walls, cpus = [], []
    for until in range(1, SLICES + 1):
        before, began = usage().cpu_seconds, time.perf_counter()
        _slice(typical.passing(TICKS), settings, typical.START_MS + until * typical.TICK_MS)
        walls.append(time.perf_counter() - began)
        cpus.append(usage().cpu_seconds - before)
    seen, began = usage(), time.perf_counter()
    more = _in_one_process(settings) if engine == "local" else {}
    return Probed(
        slice_seconds=median(walls[1:]),
        slice_cpu_seconds=median(cpus[1:]),
        cpu_seconds=seen.cpu_seconds,
        memory_bytes=seen.memory_bytes,
        worker_bytes=seen.worker_bytes,
        seconds_after_start=time.perf_counter() - began,
        **more,
    )


def _in_one_process(settings: Settings) -> dict[str, Any]:
    """Memory first, since a peak does not go down again."""
    idle = peak_memory_bytes()
    _slice(typical.passing(MANY), settings)
    batch = peak_memory_bytes() - idle
    _slice(typical.checked(1), settings, typical.START_MS + 1_000)  # loads what audits need
    few = [_cpu_seconds(typical.checked(n), settings, typical.START_MS + 1_000) for n in (FEW, CHECKS)]
    many = [_cpu_seconds(typical.checked(n), settings) for n in (FEW, CHECKS)]
    asked = CHECKS - FEW
    return {
        "batch_bytes": batch,
        "check_seconds": max(few[1] - few[0], 0) / asked,
        "checked_record_seconds": max(many[1] - many[0], 0) / asked / typical.RECORDS,
    }


def _cpu_seconds(job: Job, settings: Settings, until_ms: int | None = None) -> float:
    began = time.process_time()
    _slice(job, settings, until_ms)
    return time.process_time() - began


def _slice(job: Job, settings: Settings, until_ms: int | None = None) -> SliceResult:
    result = run_slice(job, settings, until_ms)
    if not isinstance(result, SliceResult):
        raise InternalError("a slice to measure had no records", job=job.name)
    return result


def main() -> None:
    """See the module's docstring."""
    engine, warehouse, state_dir, master = sys.argv[1:]
    sys.stdout.write(json.dumps(asdict(probe(engine, warehouse, state_dir, master))) + "\n")


if __name__ == "__main__":
    main()
