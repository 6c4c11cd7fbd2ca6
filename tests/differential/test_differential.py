"""A sample of the random programs: what Kafka Streams' own test driver answers is what comes out here.

More of them: ``./dev campaign differential``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.comparison import difference
from tests.differential.generator import program_of
from tests.differential.kafka import KafkaStreams

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = range(20)
SLICED = range(3)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaStreams]:
    """Kafka Streams, in one Java for all programs."""
    with KafkaStreams(tmp_path_factory.mktemp("kafka-streams")) as running:
        yield running


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_gives_what_it_gives_in_kafka_streams(seed: int, kafka: KafkaStreams) -> None:
    found = difference(program_of(seed), kafka, ways=3, by_slices=seed in SLICED)
    assert found is None, str(found)
