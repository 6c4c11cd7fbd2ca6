"""What is explained from a kept commit on is the same as from the beginning."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from statelib.explanation import explain, result_at
from statelib.job.job import Job
from tests.effort import one_in
from tests.explanation.jobs import JOBS, OUT, explained, history, run, windows
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.explanation import Explanation

SURFACE_TOPICS = sorted(surface().sink_topics)


@pytest.fixture
def from_beginning(monkeypatch: pytest.MonkeyPatch):
    """Explains a record of a sink from the beginning."""

    def told(pipeline: Pipeline, topic: str, partition: int, offset: int) -> Explanation:
        with monkeypatch.context() as patched:
            patched.setattr("statelib.explanation.explainer.starts", lambda *_: iter([0]))
            return _explained(pipeline, topic, partition, offset)

    return told


def _explained(pipeline: Pipeline, topic: str, partition: int, offset: int) -> Explanation:
    found = result_at(pipeline.warehouse, topic, partition, offset)
    return explain(Job(pipeline.name, pipeline.topology), pipeline.warehouse, pipeline._settings, found)


def _facts(explanation: Explanation) -> Explanation:
    return replace(explanation, replayed_records=0, replayed_behind=None, spared_slices=0)


def test_a_window_that_began_later(tmp_path: Path, from_beginning) -> None:
    pipeline = run(tmp_path, windows(), history(5, 120, in_order=False), [*range(100, 1000, 100), None])
    partition, offset, *_ = pipeline.output(OUT)[-1]
    explanation = explained(pipeline, partition, offset)
    whole = from_beginning(pipeline, OUT, partition, offset)
    assert explanation.spared_slices >= 5
    assert explanation.replayed_behind == explanation.spared_slices
    assert explanation.replayed_records < whole.replayed_records / 2
    assert _facts(explanation) == _facts(whole)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, JOBS))
def test_of_each_job_it_is_the_same(name: str, tmp_path: Path, from_beginning) -> None:
    seed = random.Random(name).randrange(1 << 32)
    pipeline = run(tmp_path, JOBS[name](), history(seed, 40, in_order=False), [*range(60, 400, 60), None])
    partition, offset, *_ = pipeline.output(OUT)[-1]
    explanation = explained(pipeline, partition, offset)
    assert _facts(explanation) == _facts(from_beginning(pipeline, OUT, partition, offset))


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Every operator, in many slices."""
    pipeline = Pipeline(tmp_path_factory.mktemp("surface"), surface(), "surface")
    rows = surface_records(2, 150)
    for topic, of in rows.items():
        pipeline.archive(topic, of, TYPES, PARTITIONS)
    times = sorted({time for topic, of in rows.items() if topic != "places" for _, _, time in of})
    for part in range(1, 6):
        pipeline.run(times[len(times) * part // 6])
    pipeline.run()
    return pipeline


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("topic", SURFACE_TOPICS)
def test_of_each_operator_it_is_the_same(replayed: Pipeline, topic: str, from_beginning) -> None:
    results = replayed.output(topic)
    partition, offset, *_ = random.Random(3).choice(results[-len(results) // 3 :])
    explanation = _explained(replayed, topic, partition, offset)
    assert _facts(explanation) == _facts(from_beginning(replayed, topic, partition, offset))
