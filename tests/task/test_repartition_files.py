"""Damage in a repartition file is noticed before anything of it is used."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib.commits.layout import CommitLog
from statelib.commits.run.plan import Plan, plan
from statelib.documents.manifests import RepartitionFile, TaskOutcome
from statelib.dsl import StreamsBuilder
from statelib.errors.kinds import CorruptedDataError
from statelib.task import Stages, run_task
from statelib.task.sources import Progress, RepartitionSource
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

TYPES = pa.schema([("key", pa.string()), ("value", pa.string())])


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    builder = StreamsBuilder("job")
    builder.stream("in").group_by("value").count().to_stream().to("out")
    pipeline = Pipeline(tmp_path, builder.build())
    pipeline.archive("in", [(f"k{n}", f"v{n % 3}", n) for n in range(20)], (pa.string(), pa.string()))
    return pipeline


def first_stage(pipeline: Pipeline) -> tuple[Stages, list[TaskOutcome], RepartitionFile]:
    planned = plan(pipeline, pipeline.warehouse, now_ms=0)
    assert isinstance(planned, Plan)
    assert CommitLog(pipeline.warehouse, pipeline.name).head_number() == 0
    stages = Stages(pipeline.topology, planned, None, pipeline.warehouse, pipeline._settings)
    first = stages.sub_topologies[0]
    outcomes = [run_task(work, attempt="a", clock=lambda: 0.0) for work in stages.works(first, [])]
    (file,) = (file for outcome in outcomes for file in outcome.repartitions)
    return stages, outcomes, file


def test_flipped_bits_and_cuts(pipeline: Pipeline) -> None:
    _, _, file = first_stage(pipeline)
    good = pipeline.warehouse.get(file.path)
    assert len(good) == file.size_bytes

    def read() -> int:
        return sum(map(len, RepartitionSource([file], pipeline.warehouse, progress=Progress(), types=TYPES)))

    assert read() == file.rows == 20
    bits = random.Random(1).sample(range(8 * len(good)), 200)
    flipped = [bytes(byte ^ (1 << bit % 8 if at == bit // 8 else 0) for at, byte in enumerate(good)) for bit in bits]
    for damaged in [*flipped, good[:-1], good[: len(good) // 2], b"", good + b"\0"]:
        pipeline.warehouse.put(file.path, damaged)
        with pytest.raises(CorruptedDataError, match=r"repartition file is damaged.*Next: run the slice again"):
            read()


def test_the_next_stage_stops_and_runs_again_once_the_file_is_whole(pipeline: Pipeline) -> None:
    stages, outcomes, file = first_stage(pipeline)
    good = pipeline.warehouse.get(file.path)
    (work,) = stages.works(stages.sub_topologies[1], outcomes)
    pipeline.warehouse.put(file.path, good[:-8] + bytes(8))
    with pytest.raises(CorruptedDataError, match="repartition file is damaged"):
        run_task(work, attempt="a", clock=lambda: 0.0)
    pipeline.warehouse.put(file.path, good)
    outcome = run_task(work, attempt="b", clock=lambda: 0.0)
    assert sum(sink.file.rows for sink in outcome.sinks) == 20
