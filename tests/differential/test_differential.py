"""A sample of the random programs: what Kafka Streams' own test driver answers is what comes out here.

More of them: ``./dev campaign differential``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.differential.closing import program_of as closing_of
from tests.differential.comparison import difference
from tests.differential.generator import program_of
from tests.differential.optimizing import difference_of as optimizing_difference
from tests.differential.program import Program

if TYPE_CHECKING:
    from tests.differential.kafka import KafkaStreams

FOUND = Path(__file__).with_name("found.jsonl").read_text(encoding="utf-8").splitlines()
"""Programs that once gave something else, made small; the campaign prints such lines."""

SEEDS = range(80)
SLICED = range(4)
CLOSING = range(24)
OPTIMIZING = range(40)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_gives_what_it_gives_in_kafka_streams(seed: int, kafka: KafkaStreams) -> None:
    found = difference(program_of(seed), kafka, ways=3, by_slices=seed in SLICED)
    assert found is None, str(found)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", CLOSING)
def test_windows_close_as_in_kafka_streams(seed: int, kafka: KafkaStreams) -> None:
    found = difference(closing_of(seed), kafka, ways=3, by_slices=seed in SLICED)
    assert found is None, str(found)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", OPTIMIZING)
def test_an_optimised_program_gives_what_it_gives_in_kafka_streams(seed: int, kafka: KafkaStreams) -> None:
    found = optimizing_difference(seed, kafka, by_slices=seed in SLICED)
    assert found is None, str(found)


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_what_once_differed_does_so_no_more(number: int, kafka: KafkaStreams) -> None:
    found = difference(Program.from_json(FOUND[number]), kafka, ways=3, by_slices=True)
    assert found is None, str(found)
