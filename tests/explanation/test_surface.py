"""Results of every operator are explained: the records that made them give them alone, and none can be left out."""

from __future__ import annotations

import random

import pytest

from statelib.explanation import explain, result_at
from statelib.job.job import Job
from tests.effort import one_in
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

RECORDS, SEED = 60, 1
TOPICS = sorted(surface().sink_topics)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """In two slices."""
    pipeline = Pipeline(tmp_path_factory.mktemp("surface"), surface(), "surface")
    rows = surface_records(SEED, RECORDS)
    for topic, of in rows.items():
        pipeline.archive(topic, of, TYPES, PARTITIONS)
    times = sorted({time for of in rows.values() for _, _, time in of})
    pipeline.run(times[len(times) // 2])
    pipeline.run()
    return pipeline


@pytest.mark.parametrize("topic", one_in(8, TOPICS))
def test_a_result_is_explained(replayed: Pipeline, topic: str) -> None:
    partition, offset, *_ = random.Random(SEED).choice(replayed.output(topic))
    found = result_at(replayed.warehouse, topic, partition, offset)
    explanation = explain(Job("surface", replayed.topology), replayed.warehouse, replayed._settings, found)
    assert (explanation.reproduced, explanation.minimal) == (True, True)
    assert explanation.contributions
