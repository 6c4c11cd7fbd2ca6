"""Every operator on Spark: on four threads what one thread gives without Spark, to the byte."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from statelib.commits import CommitLog
from tests.surface.job import job, job_beside
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib import Job

INPUT = surface_records(5, 60)
MIDDLE_MS = sorted(time for rows in INPUT.values() for _, _, time in rows)[30]


def filled(directory: Path, of: Job) -> Pipeline:
    pipeline = Pipeline(directory, of.topology, of.name)
    for topic, rows in INPUT.items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    return pipeline


def published(pipeline: Pipeline) -> dict[str, list[Any]]:
    sinks = {sink.topic for sub in pipeline.topology.sub_topologies for sink in sub.all_sinks if not sink.internal}
    return {topic: pipeline.output(topic) for topic in sorted(sinks)}


def files(pipeline: Pipeline) -> list[list[tuple[str, int, int, str]]]:
    """By commit, each file of records that it has published: topic, partition, rows, digest of its bytes."""
    log = CommitLog(pipeline.warehouse, pipeline.name)
    return [
        sorted((sink.topic, sink.file.partition, sink.file.rows, sink.file.sha256) for sink in log.read(number).sinks)
        for number in range(1, log.head_number() + 1)
    ]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("made", [job, job_beside])
def test_four_threads_give_the_same(tmp_path: Path, made: Callable[[], Job]) -> None:
    whole = filled(tmp_path / "whole", made())
    whole.run()
    expected = published(whole)
    pipeline = filled(tmp_path, made())
    command = [sys.executable, "-m", "tests.spark_replay", str(tmp_path / "warehouse"), str(tmp_path / "on-spark")]
    done = subprocess.run(
        [*command, "local[4]", f"tests.surface.job:{made.__name__}", str(MIDDLE_MS), "end"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    got = published(pipeline)
    assert [topic for topic in got if got[topic] != expected[topic]] == []
    here = filled(tmp_path / "here", made())
    for until_ms in (MIDDLE_MS, None):
        here.run(until_ms)
    assert len(files(here)) == 2
    assert files(pipeline) == files(here)
