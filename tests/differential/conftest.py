"""One Java with Kafka Streams for all tests of the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.kafka import KafkaStreams

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaStreams]:
    """Kafka Streams, in one Java for all programs."""
    with KafkaStreams(tmp_path_factory.mktemp("kafka-streams")) as running:
        yield running
