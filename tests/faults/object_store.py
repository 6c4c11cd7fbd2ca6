"""A job whose object store fails by chance: one case for each seed."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statelib.commits import CommitLog, Retention, maintain, publish
from statelib.commits.archives import open_archive
from statelib.errors import RetryableError
from statelib.storage_options import RequestLimits
from tests.faults.proxy import Fault, FaultProxy, SeededFaults
from tests.task.pipeline import Pipeline
from tests.task.test_run import TYPES, outputs, sales, topology

if TYPE_CHECKING:
    from tests.storage.s3 import S3Server

CUTS = (3_600_000, 9_000_000, None)
_IMPATIENT = RequestLimits(request_timeout_ms=500, retries=2, retry_backoff_ms=1, retry_backoff_max_ms=5)
_TRIES = 3
"""Of a slice while the store fails; the next one meets a store that works."""

_SHARES = (0.01, 0.03, 0.1, 0.4)


@dataclass(frozen=True)
class Outcome:
    """What a case has come to.

    Attributes:
        seed: Of the case.
        faults: How often each was met.
        failed_tries: What the tries that failed said.
        result: All that a reader or the next run can see.
    """

    seed: int
    faults: Counter[Fault]
    failed_tries: tuple[str, ...]
    result: dict[str, Any]


def run_case(seed: int, server: S3Server, folder: Path) -> Outcome:
    """Replays a job slice by slice over a store that fails, each slice until it has been done.

    Any error but a `RetryableError` ends the case.

    Args:
        seed: Decides how often the store fails, in which ways, and at what.
        server: Has the warehouse, below ``faults/<folder's name>-<seed>``.
        folder: For local state; must be empty.
    """
    chance = random.Random(seed)
    kinds = tuple(chance.sample(list(Fault), chance.randint(1, len(Fault))))
    faults = SeededFaults(seed, chance.choice(_SHARES), kinds)
    root = f"s3://warehouse/faults/{folder.name}-{seed}"
    calm = _pipeline(folder, root, server.options, "calm")
    calm.archive("sales", sales(5, 200), TYPES, partitions=2)
    errors = []
    with FaultProxy(server.endpoint, faults, slow_seconds=0.6) as proxy:
        options = server.options | {"aws_endpoint_url": proxy.endpoint} | _IMPATIENT.options()
        for number, cut in enumerate(CUTS):
            for attempt in range(_TRIES):
                try:
                    _run(_pipeline(folder, root, options, f"s{number}a{attempt}-"), cut)
                except RetryableError as error:
                    errors.append(str(error))
                    if chance.random() < 0.3:
                        shutil.rmtree(folder, ignore_errors=True)  # the next try is on another host
                else:
                    break
            else:
                _run(_pipeline(folder, root, server.options, f"s{number}calm-"), cut)
    return Outcome(seed, proxy.happened, tuple(errors), result_of(calm))


def undisturbed(folder: Path) -> dict[str, Any]:
    """The result on a local disk."""
    pipeline = _pipeline(folder, None, {}, "local")
    pipeline.archive("sales", sales(5, 200), TYPES, partitions=2)
    for cut in CUTS:
        _run(pipeline, cut)
    return result_of(pipeline)


def result_of(pipeline: Pipeline) -> dict[str, Any]:
    """All but the names of attempts and of tries."""
    history = list(CommitLog(pipeline.warehouse, pipeline.name).history())
    sinks = {topic: open_archive(pipeline.warehouse, topic) for topic in ("once", "by-hour")}
    published = {
        f"topics/{topic}/{file.path}" for topic, sink in sinks.items() for p in range(sink.partitions)
        for file in sink.files(p)
    }  # fmt: skip
    there = {entry.path for topic in sinks for entry in pipeline.warehouse.list(f"topics/{topic}")}
    return {
        "commits": [made.commit for made in history],
        "positions": [{task_id: task.position for task_id, task in made.tasks.items()} for made in history],
        "files": [[(s.topic, s.file.partition, s.file.first_offset, s.file.sha256) for s in m.sinks] for m in history],
        "state": pipeline.state(),
        "output": outputs(pipeline),
        "published through": {topic: sink.last_transaction(pipeline.name) for topic, sink in sinks.items()},
        "committed, not published": {f"topics/{s.topic}/{s.file.path}" for m in history for s in m.sinks} - published,
        "left behind": {path for path in there - published if "_delta_log" not in path},
    }


def _pipeline(folder: Path, root: str | None, options: dict[str, str], attempt: str) -> Pipeline:
    made = topology(over_all_partitions=True)
    return Pipeline(folder, made, warehouse=root, attempt=attempt, batch_records=50, storage_options=options)


def _run(pipeline: Pipeline, cut: int | None) -> None:
    publish(pipeline.warehouse, pipeline.name)  # what an earlier try committed and could not: the real plan begins so
    pipeline.run(cut)
    maintain(pipeline.warehouse, pipeline.name, Retention(1), now_ms=0)
