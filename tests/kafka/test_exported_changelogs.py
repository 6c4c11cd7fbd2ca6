"""A real application restores its stores from exported changelogs, and goes on as the job itself does.

Each job replays a first part; its stores are exported into the changelog topics of an application that has never run.
That one restores them, shows what the job shows, and processes a second part, of which it makes what the job makes.
What its changelogs hold then is imported, and is the state that the job has come to.
"""

from __future__ import annotations

import random
import struct
import time
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    BufferConfig,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    SessionWindows,
    StoreFormat,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    export_changelog,
    open_state,
    per_record,
)
from statelib.changelog.export import RECORDS
from statelib.described.description import Place
from tests.changelog.test_export import assert_same, came_back, rows_of
from tests.changelog.test_rebuild import head_of
from tests.effort import every_other, one_in
from tests.kafka.cluster import Message
from tests.kafka.streams_app import StreamsApp
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.snapshots import StoreSnapshot
    from tests.kafka.broker import Broker
    from tests.kafka.cluster import Record

pytestmark = pytest.mark.slow

STRING, LONG = pa.string(), pa.int64()
PARTITIONS = 2
KEYS = [f"key-{n}" for n in range(12)]
RETENTION_MS = 60_000

Rows = list[tuple[Any, Any, int]]


class Bed:
    """A job and an application with the same topics."""

    def __init__(
        self,
        folder: Path,
        broker: Broker,
        unique: str,
        builder: StreamsBuilder,
        semantics: str,
        optimization: str = "none",
    ) -> None:
        self._folder, self._broker, self._unique = folder, broker, unique
        topology = builder.build({"topology.optimization": optimization})
        self.pipeline = Pipeline(folder, topology, semantics=semantics)
        self._seen: defaultdict[tuple[str, int], int] = defaultdict(int)

    def create(self, *topics: str) -> None:
        """Makes topics of the application that are empty."""
        for topic in topics:
            self._broker.cluster.create_topic(f"{self._unique}-{topic}", PARTITIONS)

    def app(self, topology: str, **settings: str) -> StreamsApp:
        return StreamsApp(
            topology,
            self._broker,
            self._unique,
            self._folder / "app",
            topic_prefix=f"{self._unique}-",
            settings={name if "." in name else name.replace("_", "."): value for name, value in settings.items()},
        )

    def archive(self, topic: str, rows: Rows, value: pa.DataType = STRING) -> None:
        self.pipeline.archive(topic, rows, (STRING, value), partitions=PARTITIONS)

    def produce(self, topic: str, rows: Rows) -> None:
        """As `archive`, for the application."""
        messages = [Message(key.encode(), as_bytes(value), ts) for key, value, ts in rows]
        self._broker.cluster.produce(f"{self._unique}-{topic}", messages)

    def hand_over(self, *stores: str, topic: str | None = None, lag_ms: int = 0) -> None:
        """Exports the head's stores into changelog topics; what has no timestamp gets the clock's, as by a producer.

        ``lag_ms``: how long records are kept from compaction. A marker of a transaction has the time of day: it ends
        the segment of those of the past, which may be compacted then.
        """
        now_ms = int(time.time() * 1000)
        with open_state(self._folder / "warehouse", "job", state_dir=self._folder / "read") as state:
            for name in stores:
                store, changelog = state.store(name), f"{self._unique}-{topic or name}-changelog"
                self._broker.cluster.create_topic(
                    changelog, PARTITIONS, {"cleanup.policy": "compact", "min.compaction.lag.ms": str(lag_ms)}
                )
                for partition in store.partitions:
                    for batch in export_changelog(store, partition):
                        self._broker.cluster.produce(changelog, messages_of(batch, partition, now_ms))

    def assert_comes_back(self, *stores: str) -> None:
        """Imports the application's changelogs: they make the stores that the job's head has."""
        stored, commit = self.pipeline.state(), head_of(self.pipeline)
        with open_state(self._folder / "warehouse", "job", state_dir=self._folder / "read") as state:
            for store in map(state.store, stores):
                log = self._broker.cluster.read(f"{self._unique}-{store.name}-changelog")
                for partition in store.partitions:
                    batches = [batch_of([record for record in log if record.partition == partition])]
                    backend = came_back(store, partition, StoreFormat(), commit, batches)
                    families = stored[f"{store.described.store.sub_topology}_{partition}"]
                    if store.kind == "join-window":  # its sequence numbers are those of the application
                        assert rows_of(store, "latest", Place(backend, {}, -1)) == rows_of_share(store, partition)
                    else:
                        assert_same(store, partition, backend, families)

    def shown(self, store: str, view: str = "latest") -> list[dict[str, Any]]:
        """What the job's store has, as the application tells it."""
        with open_state(self._folder / "warehouse", "job", store, state_dir=self._folder / "read") as state:
            return [told(row) for row in state.read(view).to_pylist()]

    def made(self, topic: str) -> list[tuple[int, Any, Any, int]]:
        """What the job has written since this was asked last, by partition and offset."""
        rows = self.pipeline.output(topic)
        new = [row for row in rows if row[1] >= self._seen[topic, row[0]]]
        self._seen.update({(topic, partition): offset + 1 for partition, offset, *_ in rows})
        return [(partition, key, value, ts) for partition, _, key, value, ts in new]

    def records(self, topic: str) -> list[tuple[int, bytes | None, bytes | None, int]]:
        """What the application has written."""
        records = self._broker.cluster.read(f"{self._unique}-{topic}")
        return [(record.partition, record.key, record.value, record.timestamp_ms) for record in records]


def rows_of_share(store: StoreSnapshot, partition: int) -> list[dict[str, Any]]:
    with store.opened(partition) as place:
        return rows_of(store, "latest", place)


def batch_of(log: list[Record]) -> pa.RecordBatch:
    rows = [
        {
            "key": record.key,
            "value": record.value,
            "timestamp": record.timestamp_ms,
            "headers": [{"key": name, "value": value} for name, value in record.headers],
        }
        for record in log
    ]
    return pa.RecordBatch.from_pylist(rows, RECORDS)


def as_bytes(value: Any) -> bytes | None:
    return struct.pack(">q", value) if isinstance(value, int) else value and value.encode()


def messages_of(batch: pa.RecordBatch, partition: int, now_ms: int) -> list[Message]:
    return [
        Message(
            row["key"],
            row["value"],
            now_ms if row["timestamp"] is None else row["timestamp"],
            partition,
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row in batch.to_pylist()
    ]


def told(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a snapshot with the names of the application."""
    bounds = {"window_start": "start_ms", "window_end": "end_ms"}
    names = {**bounds, "timestamp": "timestamp_ms", "valid_from": "timestamp_ms", "valid_to": "valid_to_ms"}
    ms = {names[name]: value and round(value.timestamp() * 1000) for name, value in row.items() if name in names}
    return {"key": row["key"], "value": row.get("value"), **ms}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["key"], row.get("start_ms", 0), row.get("timestamp_ms", 0)))


def prices(chance: random.Random, count: int, from_ms: int, to_ms: int) -> Rows:
    """Late by up to a third of the retention, a quarter of them deletions."""
    times = sorted(chance.randrange(from_ms, to_ms) for _ in range(count))
    late = [max(1, ts - chance.choice([0, 0, 0, RETENTION_MS // 3])) for ts in times]
    return [(chance.choice(KEYS), chance.choice(["1", "2", "3", None]), ts) for ts in late]


def orders(chance: random.Random, newest_ms: int) -> Rows:
    """One of now in each partition first, so that nothing comes before it; then some of the past."""
    first = [(key, f"o-{key}", newest_ms) for key in KEYS]
    return [*first, *[(chance.choice(KEYS), f"o{n}", newest_ms - chance.randrange(RETENTION_MS)) for n in range(150)]]


def priced(table: Any, joined: Joined | None = None) -> StreamsBuilder:
    builder = StreamsBuilder("job")
    prices = builder.table("prices", Materialized.as_(table))
    joiner = per_record(lambda left, right: f"{left}@{right or 'null'}", STRING, "left", "right")
    builder.stream("orders").left_join(prices, joiner, joined).to("priced")
    return builder


@pytest.mark.parametrize(("semantics", "at_once"), one_in(3, [("kip", "500"), ("kip", "1"), ("kafka-4.3", "7")]))
def test_a_versioned_table(broker: Broker, unique: str, tmp_path: Path, semantics: str, at_once: str) -> None:
    """The history too; and the restore's portions do not matter. Some keys were last heard of long before the rest."""
    chance = random.Random(7)
    supplier = Stores.persistent_versioned_key_value_store("prices-store", timedelta(milliseconds=RETENTION_MS))
    bed = Bed(tmp_path, broker, unique, priced(supplier), semantics)
    ancient = [(f"old-{n}", f"{n}", 1_000 + 100_000 * n) for n in range(9)]
    bed.archive("prices", [*ancient, *prices(chance, 600, 1_000_000, 1_200_000)])
    bed.archive("orders", [("key-1", "x", 1_000)])
    bed.pipeline.run(None)
    bed.made("priced")
    bed.create("prices", "orders", "priced")
    bed.hand_over("prices-store", lag_ms=1 << 62)

    later = prices(chance, 100, 1_200_001, 1_230_000)
    asked = orders(chance, 1_240_000)
    bed.archive("prices", later)
    bed.archive("orders", asked)
    history = [row for row in bed.shown("prices-store", "history") if row["value"] is not None]
    settings = {"topology_history_retention_ms": str(RETENTION_MS), "restore_consumer_max_poll_records": at_once}
    with bed.app("versioned-join", **settings) as app:
        keys = [*KEYS, *(key for key, _, _ in ancient)]
        assert in_order(app.versions("prices-store", *keys)) == in_order(history)
        assert {row["key"] for row in history} > {key for key, _, _ in ancient}
        bed.produce("prices", later)
        app.catch_up()
        bed.produce("orders", asked)
        app.catch_up()
    bed.pipeline.run(None)
    assert_priced(bed, asked)
    bed.assert_comes_back("prices-store")


def test_the_broker_may_compact_a_versioned_changelog_before_it_is_restored(
    broker: Broker, unique: str, tmp_path: Path
) -> None:
    """Records of long ago are older than any lag: the last one of each key stays, which is its latest version."""
    supplier = Stores.persistent_versioned_key_value_store("prices-store", timedelta(milliseconds=RETENTION_MS))
    bed = Bed(tmp_path, broker, unique, priced(supplier), "kip")
    bed.archive("prices", prices(random.Random(14), 300, 1_000_000, 1_100_000))
    bed.archive("orders", [("key-1", "x", 1_000)])
    bed.pipeline.run(None)
    bed.create("prices", "orders", "priced")
    bed.hand_over("prices-store")
    broker.compact(f"{unique}-prices-store-changelog")
    latest = [{**row, "valid_to_ms": None} for row in bed.shown("prices-store")]
    assert len(broker.cluster.read(f"{unique}-prices-store-changelog")) < len(bed.shown("prices-store", "history"))
    with bed.app("versioned-join", topology_history_retention_ms=str(RETENTION_MS)) as app:
        assert in_order(app.versions("prices-store", *KEYS)) == in_order(latest)


def assert_priced(bed: Bed, asked: Rows) -> None:
    """Of each order the application has made what the job has."""
    made = [(partition, key.encode(), value.encode(), ts) for partition, key, value, ts in bed.made("priced")]
    assert bed.records("priced") == made
    assert len(made) == len(asked)
    assert {value.endswith(b"@null") for _, _, value, _ in made} == {False, True}


def test_a_plain_table(broker: Broker, unique: str, tmp_path: Path) -> None:
    chance = random.Random(8)
    bed = Bed(tmp_path, broker, unique, priced("prices-store"), "kip")
    bed.archive("prices", prices(chance, 400, 1_000_000, 1_200_000))
    bed.archive("orders", [("key-1", "x", 1_000)])
    bed.pipeline.run(None)
    bed.made("priced")
    bed.create("prices", "orders", "priced")
    bed.hand_over("prices-store")
    asked = orders(chance, 1_240_000)
    bed.archive("orders", asked)
    with bed.app("plain-table") as app:
        assert in_order(app.dump("prices-store")) == in_order(bed.shown("prices-store"))
        bed.produce("orders", asked)
        app.catch_up()
    bed.pipeline.run(None)
    assert_priced(bed, asked)
    bed.assert_comes_back("prices-store")


def amounts(chance: random.Random, count: int, from_ms: int, to_ms: int) -> Rows:
    times = sorted(chance.randrange(from_ms, to_ms) for _ in range(count))
    return [(chance.choice(KEYS), chance.randrange(100), max(1, ts - chance.choice([0, 0, 8_000]))) for ts in times]


def windows_of_amounts() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(seconds=10))
    windowed = builder.stream("amounts").group_by_key().windowed_by(windows)
    tables = {
        "counts": windowed.count(Materialized.as_("count-store")),
        "sums": windowed.reduce(lambda total, amount: total + amount, Materialized.as_("sum-store")),
    }
    for name, table in tables.items():
        until = Suppressed.until_window_closes(BufferConfig.unbounded()).with_name(f"final-{name}")
        table.suppress(until).to_stream().to(name)
    return builder


def test_windows_and_what_suppress_holds_back(broker: Broker, unique: str, tmp_path: Path) -> None:
    """No buffer can be asked for what is in it: it tells when the windows close that were open at the hand-over."""
    chance = random.Random(9)
    bed = Bed(tmp_path, broker, unique, windows_of_amounts(), "kip")
    bed.archive("amounts", amounts(chance, 500, 1_000_000, 1_400_000), LONG)
    bed.pipeline.run(None)
    for topic in ("counts", "sums"):
        assert bed.made(topic)
    bed.create("amounts", "counts", "sums")
    bed.hand_over("count-store", "sum-store", "final-counts-store", "final-sums-store")
    newest = [(key, 1, 1_400_000) for key in KEYS]  # clocks are not restored: what is late has to be late for both
    later = [*newest, *amounts(chance, 200, 1_400_001, 1_600_000)]
    bed.archive("amounts", later, LONG)
    with bed.app("windows") as app:
        for store in ("count-store", "sum-store"):
            shown = bed.shown(store)
            assert in_order(app.dump(store)) == in_order(shown)
            assert len({row["start_ms"] for row in shown}) > 1
        bed.produce("amounts", later)
        app.catch_up()
    bed.pipeline.run(None)
    for topic in ("counts", "sums"):
        made = bed.made(topic)
        assert bed.records(topic) == windowed(made, "window_start")
        assert made
    bed.assert_comes_back("count-store", "sum-store", "final-counts-store", "final-sums-store")


@pytest.mark.long
def test_old_windows_are_restored_too(broker: Broker, unique: str, tmp_path: Path) -> None:
    """Kafka Streams 4.4 restores windows from where the log's times come near that of its last record."""
    bed = Bed(tmp_path, broker, unique, windows_of_amounts(), "kip")
    bed.archive("amounts", [("key-1", 1, 1_320_500), *[(key, 2, 1_399_000) for key in KEYS]], LONG)
    bed.pipeline.run(None)
    bed.create("amounts", "counts", "sums")
    bed.hand_over("count-store", "sum-store", "final-counts-store", "final-sums-store")
    with bed.app("windows") as app:
        for store in ("count-store", "sum-store"):
            shown = bed.shown(store)
            assert {row["start_ms"] for row in shown} == {1_320_000, 1_380_000}
            assert in_order(app.dump(store)) == in_order(shown)


def windowed(rows: list[tuple[int, Any, Any, int]], *bounds: str) -> list[tuple[int, bytes, bytes | None, int]]:
    """Records as Kafka's windowed serdes write them; ``bounds``: what follows the key."""
    return [
        (partition, key["key"].encode() + b"".join(as_long(key[bound]) for bound in bounds), as_bytes(value), ts)
        for partition, key, value, ts in rows
    ]


def as_long(time: Any) -> bytes:
    return struct.pack(">q", round(time.timestamp() * 1000))


def test_sessions(broker: Broker, unique: str, tmp_path: Path) -> None:
    chance = random.Random(10)
    builder = StreamsBuilder("job")
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), timedelta(seconds=10))
    counted = builder.stream("visits").group_by_key().windowed_by(windows).count(Materialized.as_("sessions-store"))
    counted.to_stream().to("sessions")
    bed = Bed(tmp_path, broker, unique, builder, "kafka-4.3")
    visits = [(key, "", ts) for key, _, ts in amounts(chance, 200, 1_000_000, 1_600_000)]
    bed.archive("visits", visits)
    bed.pipeline.run(None)
    assert bed.made("sessions")
    bed.create("visits", "sessions")
    bed.hand_over("sessions-store")
    newest = [(key, "", 1_600_000) for key in KEYS]
    later = [*newest, *[(key, "", ts) for key, _, ts in amounts(chance, 200, 1_600_001, 1_900_000)]]
    bed.archive("visits", later)
    with bed.app("sessions") as app:
        shown = bed.shown("sessions-store")
        assert in_order(app.dump("sessions-store")) == in_order(shown)
        assert any(row["start_ms"] < row["end_ms"] for row in shown)
        bed.produce("visits", later)
        app.catch_up()
    bed.pipeline.run(None)
    made = bed.made("sessions")
    assert bed.records("sessions") == windowed(made, "window_end", "window_start")
    assert any(row[1]["window_start"] < row[1]["window_end"] for row in made)
    bed.assert_comes_back("sessions-store")


def test_totals_behind_a_repartition_topic(broker: Broker, unique: str, tmp_path: Path) -> None:
    """What is behind lies in the partitions of its new key."""
    chance = random.Random(11)
    builder = StreamsBuilder("job")
    sales = builder.stream("sales").map(
        per_record(lambda value: value.partition(":")[0], STRING, "value"),
        per_record(lambda value: int(value.partition(":")[2]), LONG, "value"),
    )
    totals = sales.group_by_key().reduce(lambda total, sale: total + sale, Materialized.as_("totals-store"))
    totals.to_stream().to("totals")
    bed = Bed(tmp_path, broker, unique, builder, "kip")
    first, later = (
        [(chance.choice(KEYS), f"region-{chance.randrange(9)}:{chance.randrange(99)}", at + n) for n in range(200)]
        for at in (1_000, 2_000)
    )
    bed.archive("sales", first)
    bed.pipeline.run(None)
    bed.create("sales", "totals")
    bed.hand_over("totals-store")
    bed.archive("sales", later)
    with bed.app("reduce") as app:
        shown = in_order(bed.shown("totals-store"))
        assert in_order(app.dump("totals-store")) == shown
        bed.produce("sales", later)
        app.catch_up()
        bed.pipeline.run(None)
        totals_now = {row["key"]: row["value"] for row in bed.shown("totals-store")}
        assert {row["key"]: row["value"] for row in app.dump("totals-store")} == totals_now
    assert totals_now != {row["key"]: row["value"] for row in shown}
    bed.assert_comes_back("totals-store")


def offers(chance: random.Random, from_ms: int, to_ms: int, name: str) -> Rows:
    """One every three seconds, at some of the keys; late by up to four seconds."""
    times = range(from_ms, to_ms, 3_000)
    return [(chance.choice(KEYS[:5]), f"{name}{ts}", ts - chance.choice([0, 0, 4_000])) for ts in times]


def test_two_streams_that_wait_for_each_other(broker: Broker, unique: str, tmp_path: Path) -> None:
    """Both sides' records, and those that have met nobody: what was first meets what comes later, or nobody at all."""
    chance = random.Random(12)
    builder = StreamsBuilder("job")
    windows = JoinWindows.of_time_difference_and_grace(timedelta(seconds=10), timedelta(seconds=5))
    joiner = per_record(lambda left, right: f"{left or 'null'}+{right or 'null'}", STRING, "left", "right")
    asks, bids = builder.stream("asks"), builder.stream("bids")
    asks.outer_join(bids, joiner, windows, StreamJoined.as_("pair").with_name("pair")).to("pairs")
    bed = Bed(tmp_path, broker, unique, builder, "kafka-4.3")
    bed.archive("asks", offers(chance, 1_000_000, 1_060_000, "a"))
    bed.archive("bids", offers(chance, 1_001_000, 1_060_000, "b"))
    bed.pipeline.run(None)
    bed.made("pairs")
    sides = ("pair-outer-this-join-store", "pair-outer-other-join-store")
    stores = (*sides, "pair-outer-shared-join-store")
    assert all(bed.shown(store) for store in stores)
    bed.create("asks", "bids", "pairs")
    bed.hand_over(*stores)
    later = {topic: offers(chance, 1_060_001, 1_120_000, topic[0]) for topic in ("asks", "bids")}
    last = [(key, "last", 1_200_000) for key in KEYS]  # lets everything go that has met nobody
    for topic, rows in later.items():
        bed.archive(topic, [*rows, *last])
    with bed.app("stream-join", **{"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0"}) as app:
        for topic, rows in later.items():
            bed.produce(topic, rows)
        app.catch_up()
        for topic in later:
            bed.produce(topic, last)
        app.catch_up()
    bed.pipeline.run(None)
    made = [(partition, key.encode(), value.encode(), ts) for partition, key, value, ts in bed.made("pairs")]
    assert sorted(bed.records("pairs")) == sorted(made)
    from_before = [value for _, _, value, _ in made if b"a10" in value or b"b10" in value]
    assert any(b"null" in value for value in from_before)
    assert any(b"null" not in value for value in from_before)
    bed.assert_comes_back(*sides)


def staff(chance: random.Random, count: int, from_ms: int) -> Rows:
    people = [f"person-{n}" for n in range(40)]
    return [
        (chance.choice(people), chance.choice([f"{chance.choice(KEYS)}:v{n}", f"{chance.choice(KEYS)}:v{n}", None]), at)
        for n, at in enumerate(range(from_ms, from_ms + count))
    ]


def placed() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    left = builder.table("staff", Materialized.as_("staff-store"))
    right = builder.table("departments", Materialized.as_("departments-store"))
    joiner = per_record(lambda left, right: f"{left}@{right or 'null'}", STRING, "left", "right")
    department = per_record(lambda value: value.partition(":")[0], STRING, "value")
    left.left_join(right, joiner, Named.as_("placed"), foreign_key=department).to_stream().to("placed")
    return builder


def test_a_foreign_key_join(broker: Broker, unique: str, tmp_path: Path) -> None:
    """Subscriptions: a change of a department is told to all that were in it before the hand-over, and to no others."""
    chance = random.Random(13)
    bed = Bed(tmp_path, broker, unique, placed(), "kafka-4.3")
    bed.archive("staff", staff(chance, 200, 1_000))
    bed.archive("departments", [(key, f"{key}'s first", 1_000) for key in KEYS])
    bed.pipeline.run(None)
    bed.made("placed")
    bed.create("staff", "departments", "placed")
    bed.hand_over("staff-store", "departments-store", "placed-subscription-store")
    changed = [(key, f"{key}'s second", 5_000) for key in KEYS]
    bed.archive("departments", changed)
    # Nobody moves twice: the application may give no answer to a row that has changed again.
    moved = [*{row[0]: row for row in staff(chance, 60, 6_000)}.values()]
    with bed.app("foreign-key") as app:
        for store in ("staff-store", "departments-store"):
            assert in_order(app.dump(store)) == in_order(bed.shown(store))
        bed.produce("departments", changed)
        app.catch_up()
        told_to = {key for _, key, _, _ in bed.records("placed")}
        assert told_to == {row["key"].encode() for row in bed.shown("staff-store")}
        bed.produce("staff", moved)
        app.catch_up()
    bed.pipeline.run(None)
    bed.archive("staff", moved)
    bed.pipeline.run(None)
    made = [(partition, key.encode(), as_bytes(value), ts) for partition, key, value, ts in bed.made("placed")]
    assert sorted(bed.records("placed"), key=repr) == sorted(made, key=repr)
    assert len(made) >= len(told_to) + len(moved) / 2


@pytest.mark.parametrize("handed_over", every_other([False, True]))
def test_what_waits_for_a_table_is_lost_at_the_shipped_restore(
    broker: Broker, unique: str, tmp_path: Path, handed_over: bool
) -> None:
    """A grace buffer restores without an error. Its records are never found again, and no others wait any more."""
    prices = Stores.persistent_versioned_key_value_store("prices-store", timedelta(milliseconds=RETENTION_MS))
    builder = priced(prices, Joined.as_("priced-join").with_grace_period(timedelta(seconds=10)))
    bed = Bed(tmp_path, broker, unique, builder, "kip")
    bed.archive("prices", [(key, "1", 1_000) for key in KEYS])
    bed.archive("orders", [(key, "waits", 5_000) for key in KEYS])
    bed.pipeline.run(None)
    (waiting,) = (s.name for sub in bed.pipeline.topology.sub_topologies for s in sub.stores if s.kind == "join-buffer")
    assert len(bed.shown(waiting)) == len(KEYS)
    bed.create("prices", "orders", "priced")
    bed.hand_over("prices-store")
    if handed_over:
        bed.hand_over(waiting, topic="priced-join-Buffer")
    settings = {"topology_history_retention_ms": str(RETENTION_MS), "topology_join_grace_ms": "10000"}
    with bed.app("versioned-join", **settings) as app:
        for ts in (30_000, 60_000):
            bed.produce("orders", [(key, f"at-{ts}", ts) for key in KEYS])
            app.catch_up()
    assert {value for _, _, value, _ in bed.records("priced")} == (
        {b"at-30000@1", b"at-60000@1"} if handed_over else {b"at-30000@1"}
    )
