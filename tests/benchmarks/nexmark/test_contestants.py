"""What the peers give is what DuckDB gives."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.nexmark.answers import differences, peers_answer
from benchmarks.nexmark.contestants.registry import CONTESTANTS
from benchmarks.nexmark.dataset import Dataset
from benchmarks.nexmark.events import Parameters
from benchmarks.peers import nexmark_duckdb

PARAMETERS = Parameters(events=20_000, events_per_second=300, partitions=3)
HAS_MAVEN = bool(shutil.which("mvn")) and (Path(os.environ.get("JAVA_HOME", "")) / "bin" / "javac").exists()
SLOW = [pytest.mark.slow, pytest.mark.long]
AS_THEY_COME = {"hindstream", "hindstream-spark", "duckdb"}
"""Hindstream's are in tests/examples; DuckDB is what all are compared with."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return Dataset.generate(tmp_path_factory.mktemp("nexmark") / "topics", PARAMETERS)


@pytest.fixture(scope="module")
def built():
    """Builds a contestant, once."""
    names = set()

    def build(contestant) -> None:
        if contestant.name.startswith(("flink", "kafka")) and not HAS_MAVEN:
            pytest.skip("needs Maven and a JDK")
        if contestant.name not in names:
            contestant.build()
            names.add(contestant.name)

    return build


def cases():
    for contestant in CONTESTANTS:
        for query in contestant.queries:
            if contestant.name not in AS_THEY_COME and query not in contestant.differs:
                marks = () if contestant.name == "polars" else SLOW
                yield pytest.param(contestant, query, id=f"{contestant.name}-{query}", marks=marks)


@pytest.mark.parametrize(("contestant", "query"), list(cases()))
def test_answers_agree(contestant, query, dataset, built, tmp_path) -> None:
    built(contestant)
    contestant.prepare(dataset)
    output = tmp_path / "output"
    contestant.lay_out(query, dataset, output)
    output.mkdir(exist_ok=True)
    environ = os.environ | {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}  # takes a third less of so few records
    subprocess.run(contestant.command(query, dataset, output), check=True, env=environ)
    (tmp_path / "duckdb").mkdir()
    nexmark_duckdb.main(query, str(dataset.folder / "topics"), str(tmp_path / "duckdb"))
    assert differences(query, contestant.answer(query, output), peers_answer(tmp_path / "duckdb")) == []
