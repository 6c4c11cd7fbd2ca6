"""Measures this machine with the real engine, in less than a minute: `Calibration`."""

from __future__ import annotations

import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.estimate import typical
from hindstream.estimate.calibration import Calibration, ColumnCost, EngineCost, Machine
from hindstream.estimate.history import archived
from hindstream.estimate.probe import MANY, SLICES, TICKS, WRITTEN, Probed
from hindstream.estimate.sample import sampled
from hindstream.estimate.shape import shape_of
from hindstream.runs import now_ms
from statelib.commits.archives import open_archive
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage

if TYPE_CHECKING:
    from hindstream.estimate.calibration import Engine
    from hindstream.estimate.evidence import Evidence
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_log = logging.getLogger(__name__)

_MANY = 300_000
_CALLED = 20_000
_LEAST_SECONDS = 1e-9
_LAST_LINES = 5
_PROBES = 2


@dataclass(frozen=True)
class _Work:
    """Where the records to measure with are."""

    folder: Path
    settings: Settings

    def warehouse(self, name: str) -> Storage:
        return Storage(str(self.folder / name))

    def replayed(self, job: Job, warehouse: Storage) -> Evidence:
        """What a job takes, all code loaded."""
        whole = archived(job.topology.source_topics, warehouse)
        found = sampled(job, self.settings, warehouse, whole, round(whole.records), slices=1)
        if found is None:
            raise ConfigurationError("there is nothing to measure with", job=job.name)
        return found


def calibrate(settings: Settings) -> Calibration:
    """Measures.

    Args:
        settings: Of which Spark's master and the semantics count.

    Raises:
        ConfigurationError: Spark, or a process to measure, does not start.
    """
    with tempfile.TemporaryDirectory(prefix="hindstream-calibrate-") as folder:
        work = _Work(Path(folder), settings)
        _log.info("measuring operators")
        operators, call_seconds = _operators(work)
        _log.info("measuring columns, state and tasks")
        read, write = _columns(work)
        once = work.replayed(typical.deduplicating(), work.warehouse("typical"))
        state = once.states[-1]
        task_seconds = _task_seconds(work)
        _log.info("measuring the start of a local run, memory, audits")
        local, of_local = _engine(work, "local")
        _log.info("measuring the start of Spark")
        spark, _ = _engine(work, "spark")
    return Calibration(
        measured_at_ms=now_ms(),
        machine=Machine(cpus=os.cpu_count() or 1, platform=platform.platform(), python=platform.python_version()),
        engines={"spark": spark, "local": local},
        task_seconds=task_seconds,
        check_seconds=of_local.check_seconds,
        checked_record_seconds=of_local.checked_record_seconds,
        read=read,
        write=write,
        operators=operators,
        call_seconds=call_seconds,
        state_byte_seconds=once.seconds["checkpoint"] / state.size_bytes,
        state_entry_bytes=state.size_bytes / state.records,
        batch_bytes=of_local.batch_bytes,
    )


def _operators(work: _Work) -> tuple[dict[str, float], float]:
    """Seconds of a record by kind, and of a call of a Python function."""
    warehouse, few = work.warehouse("typical"), work.warehouse("few")
    typical.archive_typical(warehouse, typical.RECORDS, typical.RECORDS // 20)
    typical.archive_typical(few, _CALLED, 100)
    found: dict[str, float] = {}
    for job in typical.TYPICAL:
        found |= _by_kind(work, job(), warehouse)
    calls = _by_kind(work, typical.of_calls(), few)
    # A call, and what is done to give a function its arguments and to take its results.
    call_seconds = max(calls.pop("map_values") - found["map_values"], _LEAST_SECONDS)
    others = calls.keys() - found.keys()  # what calls nothing was measured over more records
    found |= {kind: max(calls[kind] - call_seconds, _LEAST_SECONDS) for kind in others}
    return dict(sorted(found.items())), call_seconds


def _by_kind(work: _Work, job: Job, warehouse: Storage) -> dict[str, float]:
    evidence = work.replayed(job, warehouse)
    archives = {topic: open_archive(warehouse, topic) for topic in job.topology.source_topics}
    seconds: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for node in shape_of(job.topology, archives, work.settings.semantics).nodes:
        if node.role == "operator" and (metrics := evidence.nodes.get(node.name)) and metrics.records_in:
            seconds[node.kind] += evidence.node_seconds.get(node.name, 0.0)  # type: ignore[assignment]
            records[node.kind] += metrics.records_in
    return {kind: max(seconds[kind] / records[kind], _LEAST_SECONDS) for kind in records}


def _columns(work: _Work) -> tuple[ColumnCost, ColumnCost]:
    """From topics of one number, of nine, and of one with four texts."""
    warehouse = work.warehouse("columns")
    one, nine, text = (
        _passed(work, warehouse, topic, numbers=numbers, texts=texts)
        for topic, numbers, texts in (("one", 1, 0), ("nine", 9, 0), ("text", 1, 4))
    )
    costs = []
    for phase in ("read", "write"):
        number = max(nine[phase] - one[phase], 0) / 8
        of_text = max(text[phase] - one[phase], 0) / 4
        record = max(one[phase] - number, _LEAST_SECONDS)
        costs.append(ColumnCost(record_seconds=record, number_seconds=number, text_seconds=of_text))
    return costs[0], costs[1]


def _passed(work: _Work, warehouse: Storage, topic: str, *, numbers: int, texts: int) -> dict[str, float]:
    """Seconds of a record, by phase."""
    typical.archive_columns(warehouse, topic, typical.RECORDS, numbers=numbers, texts=texts)
    evidence = work.replayed(typical.passing(topic), warehouse)
    return {phase: evidence.seconds[phase] / evidence.records for phase in ("read", "write")}


def _task_seconds(work: _Work) -> float:
    """Of a task with hardly any records, all its phases."""
    warehouse = work.warehouse("tasks")
    typical.archive_typical(warehouse, 1_000, 10)
    evidence = work.replayed(typical.deduplicating(), warehouse)
    return sum(evidence.seconds.values()) / evidence.tasks_run


def _engine(work: _Work, engine: Engine) -> tuple[EngineCost, Probed]:
    """Of two processes the better one: what else a machine does makes a start slower, never faster."""
    warehouse = work.warehouse(f"probe-{engine}")
    typical.archive_ticks(warehouse, TICKS, SLICES)
    if engine == "local":
        typical.archive_columns(warehouse, MANY, _MANY, numbers=3, texts=2)
        typical.archive_typical(warehouse, typical.RECORDS, 10)
    seen = [_probed(work, engine, warehouse) for _ in range(_PROBES)]
    start_seconds, found = min(seen, key=itemgetter(0))
    return (
        EngineCost(
            start_seconds=start_seconds,
            start_cpu_seconds=min(max(one.cpu_seconds - SLICES * one.slice_cpu_seconds, 0) for _, one in seen),
            slice_seconds=min(one.slice_seconds for _, one in seen),
            slice_cpu_seconds=min(one.slice_cpu_seconds for _, one in seen),
            memory_bytes=found.memory_bytes,
            worker_bytes=found.worker_bytes,
        ),
        found,
    )


def _probed(work: _Work, engine: Engine, warehouse: Storage) -> tuple[float, Probed]:
    """The seconds of the start, and what the process has seen."""
    root = warehouse.uri("").removeprefix("file://")
    command = [sys.executable, "-m", "hindstream.estimate.probe", engine, root]
    command += [str(work.folder / f"state-{engine}"), work.settings.spark_master]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - this program's own
    whole = time.perf_counter() - began
    for left in ("jobs", *(f"topics/{topic}" for topic in WRITTEN)):
        shutil.rmtree(Path(root) / left, ignore_errors=True)
    shutil.rmtree(work.folder / f"state-{engine}", ignore_errors=True)
    if done.returncode:
        said = "; ".join(done.stderr.strip().splitlines()[-_LAST_LINES:])
        step = "look what this machine lacks: hindstream doctor"
        raise ConfigurationError(f"a run to measure has failed: {said}", engine=engine, next_step=step)
    found = Probed(**json.loads(done.stdout.splitlines()[-1]))
    return max(whole - found.seconds_after_start - SLICES * found.slice_seconds, 0), found
