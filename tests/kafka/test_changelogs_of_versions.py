"""Applications of Kafka Streams 4.3 and 4.4 write the same changelogs, byte for byte, whatever the format of stores."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.kafka.cluster import Message
from tests.kafka.streams_app import StreamsApp
from tests.kafka.test_exported_changelogs import amounts, as_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.broker import Broker
    from tests.kafka.test_exported_changelogs import Rows

pytestmark = [pytest.mark.slow, pytest.mark.long]

CHANCE = random.Random(91)
AMOUNTS = amounts(CHANCE, 150, 1_000_000, 1_400_000)
WINDOWS = ("count-store", "sum-store", "final-counts-store", "final-sums-store")
RUNS = (("4.3.0", "DEFAULT"), ("4.4.0", "DEFAULT"), ("4.3.0", "HEADERS"), ("4.4.0", "HEADERS"))


@pytest.mark.parametrize(
    ("topology", "source", "sinks", "rows", "stores"),
    [
        ("windows", "amounts", ("counts", "sums"), AMOUNTS, WINDOWS),
        ("sessions", "visits", ("sessions",), [(key, "", ts) for key, _, ts in AMOUNTS], ("sessions-store",)),
        ("reduce", "sales", ("totals",), [(key, f"all:{of}", ts) for key, of, ts in AMOUNTS], ("totals-store",)),
    ],
)
def test_changelogs_are_the_same(
    broker: Broker, unique: str, tmp_path: Path, topology: str, source: str, sinks: tuple[str, ...], rows: Rows,
    stores: tuple[str, ...],
) -> None:  # fmt: skip
    written = {}
    for number, (version, store_format) in enumerate(RUNS):
        prefix = f"{unique}-{number}"
        for topic in (source, *sinks):
            broker.cluster.create_topic(f"{prefix}-{topic}", 1)
        broker.cluster.produce(f"{prefix}-{source}", [Message(k.encode(), as_bytes(of), ts) for k, of, ts in rows])
        settings = {"dsl.store.format": store_format}
        with StreamsApp(
            topology, broker, prefix, tmp_path / prefix, topic_prefix=f"{prefix}-", settings=settings,
            kafka_version=version,
        ) as app:  # fmt: skip
            app.catch_up()
        written[version, store_format] = {store: logged(broker, prefix, store) for store in stores}
    first = written["4.3.0", "DEFAULT"]
    assert all(first.values())
    for run, changelogs in written.items():
        for store, records in changelogs.items():
            assert records == first[store], (run, store)


def logged(broker: Broker, prefix: str, store: str) -> dict[bytes, Any]:
    """The last record of each key; a suppression's have the time of day, and name the topic."""
    of_suppression = store.startswith("final")
    return {
        record.key: (
            record.value and record.value.replace(prefix.encode(), b""),
            None if of_suppression else record.timestamp_ms,
            tuple(header for header in record.headers if not header[0].startswith("vh.")),
        )
        for record in broker.cluster.read(f"{prefix}-{store}-changelog")
        if record.key is not None
    }
