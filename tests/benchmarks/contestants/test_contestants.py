from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.answers import by_key, differences, save
from benchmarks.contestants.floor import Floor, answer_path
from benchmarks.contestants.hindstream import HindstreamLocal
from benchmarks.contestants.registry import CONTESTANTS
from benchmarks.contestants.script import Script
from benchmarks.dataset import Dataset, Parameters
from benchmarks.works import WORKS
from tests.benchmarks import reference

# Two hours and 50 keys: records come late, repeats come too late, rates change, windows close.
PARAMETERS = Parameters(records=20_000, campaigns=50, partitions=3, records_per_second=3.0, very_late=0.01)
LONG = [pytest.mark.spark, pytest.mark.long]
SCRIPTS = [c for c in CONTESTANTS if isinstance(c, Script) and not isinstance(c, Floor)]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return Dataset.generate(tmp_path_factory.mktemp("dataset") / "one", PARAMETERS)


def test_the_dataset_has_what_tells_right_from_wrong(dataset) -> None:
    rows = {work: len(reference.answer(work, dataset)) for work in WORKS}
    distinct = round(PARAMETERS.records * (1 - PARAMETERS.redelivered))
    assert distinct + 50 < rows["W1"] < PARAMETERS.records - 50
    assert 2_000 < rows["W4"] == rows["W3"]
    assert sum(reference.answer("W3", dataset)["clicks"].to_pylist()) < PARAMETERS.records - 100


def cases():
    for contestant in SCRIPTS:
        works = [work for work in contestant.works if work in contestant.agrees]
        on_spark = contestant.name.startswith("spark")  # which takes its time to start: its last work has them all
        for work in works[-1:] if on_spark else works:
            marks = LONG if on_spark else ()
            yield pytest.param(contestant, work, id=f"{contestant.name}-{work}", marks=marks)


@pytest.mark.parametrize(("contestant", "work"), list(cases()))
def test_answers_agree(contestant, work, dataset, tmp_path) -> None:
    contestant.build()
    environ = os.environ | {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}  # takes a third less of so few records
    subprocess.run(contestant.command(WORKS[work], dataset, tmp_path), check=True, env=environ)
    answer = contestant.answer(WORKS[work], tmp_path)
    expected = by_key(reference.answer(work, dataset))
    assert differences(WORKS[work], answer, expected, is_exact=contestant.is_exact) == []


def test_the_local_runner_agrees(dataset, tmp_path) -> None:
    ours, output = HindstreamLocal(), tmp_path / "output"
    ours.lay_out(WORKS["W4"], dataset, output)
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(ours.command(WORKS["W4"], dataset, output), check=True, env=environ)
    expected = by_key(reference.answer("W4", dataset))
    assert differences(WORKS["W4"], ours.answer(WORKS["W4"], output), expected, is_exact=True) == []


@pytest.mark.parametrize("work", WORKS)
def test_the_floor_writes_the_answer_that_is_laid_out(work, dataset, tmp_path) -> None:
    expected = reference.answer(work, dataset)
    save(expected, answer_path(dataset, WORKS[work]))
    floor, output = Floor(), tmp_path / "output"
    floor.lay_out(WORKS[work], dataset, output)
    subprocess.run(floor.command(WORKS[work], dataset, output), check=True, env=dict(os.environ))
    assert floor.answer(WORKS[work], output).equals(expected.cast(WORKS[work].answer))
