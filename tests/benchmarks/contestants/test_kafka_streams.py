"""Needs Maven and a JDK, which the benchmark alone needs: skipped where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.answers import by_key, differences
from benchmarks.contestants.kafka_streams import KafkaStreams
from benchmarks.contestants.kafka_streams_broker import KafkaStreamsBroker
from benchmarks.dataset import Dataset, Parameters
from benchmarks.works import WORKS
from tests.benchmarks import reference
from tests.effort import one_in

PARAMETERS = Parameters(records=20_000, campaigns=50, partitions=3, records_per_second=3.0, very_late=0.01)
HAS_MAVEN = bool(shutil.which("mvn")) and (Path(os.environ.get("JAVA_HOME", "")) / "bin" / "javac").exists()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    KafkaStreams().build()
    return Dataset.generate(tmp_path_factory.mktemp("dataset") / "one", PARAMETERS)


def _differences(contestant, work, dataset, output) -> list[str]:
    contestant.prepare(dataset)
    contestant.lay_out(WORKS[work], dataset, output)
    output.mkdir(exist_ok=True)
    subprocess.run(contestant.command(WORKS[work], dataset, output), check=True, timeout=300)
    expected = by_key(reference.answer(work, dataset))
    return differences(WORKS[work], contestant.answer(WORKS[work], output), expected, is_exact=True)


@pytest.mark.skipif(not HAS_MAVEN, reason="needs Maven and a JDK")
@pytest.mark.parametrize("work", one_in(4, WORKS, first=1))
def test_the_engine_gives_the_reference_s_answer(work, dataset, tmp_path) -> None:
    assert _differences(KafkaStreams(), work, dataset, tmp_path / "output") == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not HAS_MAVEN, reason="needs Maven and a JDK")
def test_an_application_over_a_broker_gives_the_reference_s_answer(dataset, tmp_path) -> None:
    assert _differences(KafkaStreamsBroker(), "W4", dataset, tmp_path / "output") == []


def test_what_is_missing_is_named(monkeypatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(SystemExit, match="JDK 17 or 21 and Maven"):
        KafkaStreams().build()
