"""Stores that keep headers (KIP-1271): a real application restores those of a job, and a job takes over those of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from statelib import (
    AggregationWithHeaders,
    Processor,
    Record,
    Stores,
    StreamsBuilder,
    StringSerde,
    ValueTimestampHeaders,
    Windowed,
)
from statelib.commits.archives import open_archive
from tests.kafka.test_exported_changelogs import Bed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.broker import Broker
    from tests.kafka.test_exported_changelogs import Rows

pytestmark = pytest.mark.slow

HOUR, MINUTE_MS = timedelta(hours=1), 60_000
STORES = ("latest", "minutes", "visits")
EVENTS = [(f"key-{n % 5}", f"{'abc'[n % 3]}{n}", 600_000 + 7_000 * n) for n in range(40)]
LATER = [(f"key-{n % 7}", f"{'xyz'[n % 3]}{n}", 880_000 + 7_000 * n) for n in range(20)]


class Keeper(Processor):
    """As ``Kept.java`` has it."""

    def process(self, record: Record) -> None:
        latest, minutes, visits = (self.context.get_state_store(name) for name in STORES)
        minute = record.timestamp - record.timestamp % MINUTE_MS
        if record.value != "?":
            headers = (("by", record.value[0].encode()), ("none", None))
            kept = ValueTimestampHeaders.make(record.value, record.timestamp, headers)
            latest.put(record.key, kept)
            minutes.put(record.key, kept, minute)
            visits.put(Windowed(record.key, minute, minute), AggregationWithHeaders.make(record.value, headers))
            return
        visited = visits.fetch_session(record.key, minute, minute)
        found = {
            "latest": latest.get(record.key),
            "minute": minutes.fetch(record.key, minute),
            "visit": visited and ValueTimestampHeaders(visited.aggregation, record.timestamp, visited.headers),
        }
        for store, kept in found.items():
            if kept is not None:
                answer = record.with_value(f"{store}: {kept.value}").with_timestamp(kept.timestamp)
                self.context.forward(answer.with_headers(kept.headers))


def keeping() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    text = (StringSerde(), StringSerde())
    for store in (
        Stores.timestamped_key_value_store_with_headers_builder(
            Stores.persistent_timestamped_key_value_store_with_headers("latest"), *text
        ),
        Stores.timestamped_window_store_with_headers_builder(
            Stores.persistent_timestamped_window_store_with_headers("minutes", HOUR, timedelta(minutes=1)), *text
        ),
        Stores.session_store_with_headers_builder(Stores.persistent_session_store_with_headers("visits", HOUR), *text),
    ):
        builder.add_state_store(store)
    builder.stream("events").process(Keeper, *STORES).to("answers")
    return builder


def asked(rows: Rows) -> Rows:
    """Once of each key, at the time of its last value."""
    times = {key: time for key, _, time in rows}
    return [(key, "?", time) for key, time in times.items()]


def answers(bed: Bed) -> list[tuple[int, Any, Any, int, Any]]:
    archive = open_archive(bed.pipeline.warehouse, "answers")
    return [
        (partition, row["key"], row["value"], round(row["timestamp"].timestamp() * 1000), row["headers"])
        for partition in range(archive.partitions)
        for row in archive.reader(partition).read_all().to_pylist()
    ]


def answered(broker: Broker, unique: str) -> list[tuple[int, Any, Any, int, Any]]:
    """What the application has answered, as `answers`."""
    return [
        (of.partition, of.key.decode(), of.value.decode(), of.timestamp_ms, headers_of(of))
        for of in broker.cluster.read(f"{unique}-answers")
    ]


def test_headers_move_with_the_values(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = Bed(tmp_path, broker, unique, keeping(), "kafka-4.4")
    bed.archive("events", EVENTS)
    bed.pipeline.run(None)
    bed.create("events", "answers")
    bed.hand_over(*STORES)
    more = [*asked(EVENTS), *LATER, *asked(LATER)]
    with bed.app("kept") as app:
        bed.produce("events", more)
        app.catch_up()
    bed.archive("events", more)
    bed.pipeline.run(None)
    made = answered(broker, unique)
    assert made == answers(bed)
    assert {value.partition(":")[0] for _, _, value, _, _ in made} == {"latest", "minute", "visit"}
    assert all(headers[1] == {"key": "none", "value": None} for *_, headers in made)

    bed.assert_comes_back(*STORES)


def headers_of(record: Any) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in record.headers]
