"""The queries of Nexmark give what DuckDB gives, however the history is cut."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import hindstream
from benchmarks.nexmark.answers import ANSWERS, differences, hindstreams_answer
from benchmarks.nexmark.answers import peers_answer as answer_in
from benchmarks.nexmark.dataset import Dataset
from benchmarks.nexmark.events import START_MS, Parameters
from benchmarks.peers.nexmark_duckdb import QUERIES
from benchmarks.peers.nexmark_duckdb import main as duckdb_main
from tests.effort import every_other, one_in

EXAMPLES = Path(__file__).parents[2] / "examples" / "nexmark"
THERE = sorted((file.stem for file in EXAMPLES.glob("q*.py")), key=lambda name: int(name[1:]))
MINUTES = Parameters(events=9_000, events_per_second=100, partitions=3)
DAYS = Parameters(events=6_000, events_per_second=0.05, partitions=3)
OUT_OF_ORDER = Parameters(events=6_000, events_per_second=50, partitions=3, out_of_order_group=150)
"""By three seconds at most: windows wait for four."""


@pytest.fixture(scope="module")
def dataset_of(tmp_path_factory):
    made: dict[Parameters, Dataset] = {}

    def dataset(parameters: Parameters) -> Dataset:
        if parameters not in made:
            made[parameters] = Dataset.generate(tmp_path_factory.mktemp("nexmark") / "topics", parameters)
        return made[parameters]

    return dataset


def wrong(query: str, dataset: Dataset, folder: Path, slices: int) -> list[str]:
    """What of Hindstream's answer differs from DuckDB's."""
    shutil.copytree(dataset.folder / "topics", folder / "topics", copy_function=os.link)
    parameters = dataset.parameters
    span_ms = int(parameters.events / parameters.events_per_second * 1000)
    cuts = [START_MS + span_ms * n // slices for n in range(1, slices)]
    for cut in (*cuts, None):
        hindstream.run(
            f"{EXAMPLES / query}.py:job",
            warehouse=folder,
            until=cut,
            seal=cut is None,
            engine="local",
            state_dir=folder / "state",
        )
    (folder / "duckdb").mkdir()
    duckdb_main(query, str(dataset.folder / "topics"), str(folder / "duckdb"))
    return differences(query, hindstreams_answer(query, folder), answer_in(folder / "duckdb"))


def test_every_query_has_an_answer_and_a_reference() -> None:
    assert set(THERE) == set(ANSWERS) == set(QUERIES)


@pytest.mark.parametrize("query", one_in(3, THERE))
def test_three_slices_give_what_duckdb_gives(tmp_path, dataset_of, query) -> None:
    days = query in {"q10", "q14", "q15", "q16", "q17"}
    assert wrong(query, dataset_of(DAYS if days else MINUTES), tmp_path, slices=3) == []


@pytest.mark.parametrize("query", every_other(["q5", "q7", "q8", "q11", "q12", "q17"]))
def test_windows_wait_for_what_comes_out_of_order(tmp_path, dataset_of, query) -> None:
    assert wrong(query, dataset_of(OUT_OF_ORDER), tmp_path, slices=2) == []


@pytest.mark.long
@pytest.mark.parametrize("query", THERE)
@pytest.mark.parametrize("slices", [1, 7])
def test_many_events_give_what_duckdb_gives(tmp_path, dataset_of, query, slices) -> None:
    many = Parameters(events=60_000, events_per_second=200, partitions=5, seed=11)
    assert wrong(query, dataset_of(many), tmp_path, slices) == []


def test_another_answer_is_seen(tmp_path) -> None:
    expected = "SELECT 1 AS auction, 2 AS price UNION ALL SELECT 1, 2"
    assert differences("q2", expected, expected) == []
    assert differences("q2", "SELECT 1 AS auction, 2 AS price", expected) == [
        "1 rows instead of 2",
        "missing: (1, 2)",
    ]
    other = "SELECT 1 AS auction, 2 AS price UNION ALL SELECT 1, 3"
    assert differences("q2", other, expected) == ["too many: (1, 3)", "missing: (1, 2)"]
