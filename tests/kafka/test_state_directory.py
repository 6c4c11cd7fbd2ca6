"""A real application starts on a directory that a hand-over has written: nothing is restored, and it goes on rightly.

What was written is what the application leaves that restores the same changelogs, byte for byte.
"""

from __future__ import annotations

import json
import random
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from rocksdict import AccessType, Options, Rdict

from hindstream.cli.live.handover import run_handover
from hindstream.kafka.handover import hand_over
from statelib import (
    EmitStrategy,
    Handover,
    JoinWindows,
    Materialized,
    Named,
    Processor,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    TimeWindows,
    ValueAndTimestamp,
    Windowed,
    open_state,
    per_record,
)
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings
from statelib.topics.partitioner import partition_for
from tests.kafka.streams_app import StreamsApp, given
from tests.kafka.test_exported_changelogs import (
    KEYS,
    LONG,
    PARTITIONS,
    RETENTION_MS,
    STRING,
    Bed,
    amounts,
    as_bytes,
    in_order,
    offers,
    orders,
    placed,
    priced,
    prices,
    staff,
    windowed,
    windows_of_amounts,
)
from tests.kafka.test_headers import EVENTS, LATER, STORES, answered, answers, asked, keeping
from tests.kafka.test_takeover import counted_and_paired, sales

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hindstream.kafka.handover import HandedOver
    from statelib.settings.settings import Settings
    from tests.kafka.broker import Broker
    from tests.kafka.test_exported_changelogs import Rows

pytestmark = pytest.mark.slow

NOTHING = (-4).to_bytes(8, signed=True)
"""For an offset: there is none."""

EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}


class WarmBed(Bed):
    """A job and an application that read the same topics."""

    def stores(self) -> list[str]:
        """The names of the job's."""
        with open_state(self._folder / "warehouse", "job", state_dir=self._folder / "read") as state:
            return [store.name for store in state.stores]

    def both(self, topic: str, rows: Rows, value: pa.DataType = STRING) -> None:
        """Gives the same records to both."""
        self.archive(topic, rows, value)
        self.produce(topic, rows)

    def handover(self, *topics: str, **more: Any) -> tuple[Handover, Settings]:
        """What is handed over."""
        names = {topic: f"{self._unique}-{topic}" for topic in topics}
        given = {"warehouse": str(self._folder / "warehouse"), "state_dir": str(self._folder / "read")}
        settings = load_settings({**given, "kafka": self._broker.settings}, environ={})
        return Handover("job", self._unique, topics=names, copies_only=False, **more), settings

    def lay(self, *topics: str, replace: bool = False, **more: Any) -> HandedOver:
        """Hands over, with a state directory."""
        return hand_over(*self.handover(*topics, **more), state_dir=self._folder / "warm", replace=replace)

    def start(self, topology: str, state_dir: str = "warm", **settings: str) -> StreamsApp:
        """The application on a directory of its own."""
        return StreamsApp(
            topology,
            self._broker,
            self._unique,
            self._folder / state_dir,
            topic_prefix=f"{self._unique}-",
            settings=settings,
        )

    def assert_as_restored(self, topology: str, **settings: str) -> None:
        """An application without local state restores the same, and is then stopped."""
        laid = contents(self._folder / "warm" / self._unique)
        with self.start(topology, "cold", **settings) as app:
            assert sum(app.restored().values()) > 0
        if "dsl.store.format" not in given():  # it would take these files, and make others of them as it goes
            assert contents(self._folder / "cold" / self._unique) == laid


def contents(directory: Path) -> dict[str, dict[str, list[tuple[bytes, bytes]]]]:
    """By database and family what is in it, without what each start writes anew; but nothing of what is empty."""
    found = {}
    for current in sorted(directory.rglob("CURRENT")):
        database = str(current.parent.relative_to(directory))
        options = Options(raw_mode=True)
        families = dict.fromkeys(Rdict.list_cf(str(current.parent), options), options)
        with closing(Rdict(str(current.parent), options, families, AccessType.read_only(False))) as opened:
            entries = {family: [*opened.get_column_family(family).items()] for family in families}
        offsets = [(key, last) for key, last in entries["offsets"] if key not in (b"status", b"position")]
        if any(last != NOTHING for _, last in offsets):
            found[database] = {**entries, "offsets": offsets}
    return found


def restored(app: StreamsApp) -> dict[str, int]:
    """Of how many records which stores were restored, if of any."""
    return {store: records for store, records in app.restored().items() if records}


def priced_bed(
    tmp_path: Path, broker: Broker, unique: str, optimization: str = "none"
) -> tuple[WarmBed, random.Random]:
    """A job that has taken up prices and an order; and chance, for what comes later."""
    chance = random.Random(8)
    bed = WarmBed(tmp_path, broker, unique, priced("prices-store"), "kip", optimization)
    bed.create("prices", "orders", "priced")
    bed.both("prices", prices(chance, 400, 1_000_000, 1_200_000))
    bed.both("orders", [("key-1", "x", 1_000)])
    bed.pipeline.run(None)
    bed.made("priced")
    return bed, chance


@pytest.mark.long
def test_a_plain_table(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed, chance = priced_bed(tmp_path, broker, unique)
    done = bed.lay("prices", "orders")
    assert done.local_state is not None
    assert done.local_state.path == str(tmp_path / "warm" / unique)
    assert sorted(done.local_state.tasks) == ["0_0", "0_1"]
    assert done.local_state.restored == ()
    bed.assert_as_restored("plain-table")
    asked = orders(chance, 1_240_000)
    with bed.start("plain-table") as app:
        assert in_order(app.dump("prices-store")) == in_order(bed.shown("prices-store"))
        bed.both("orders", asked)
        app.catch_up()
        assert restored(app) == {}
    bed.pipeline.run(None)
    assert_made_alike(bed, "priced")


@pytest.mark.parametrize("told_by", ["the topology", pytest.param("the hand-over", marks=pytest.mark.long)])
def test_a_table_whose_changelog_is_its_topic(broker: Broker, unique: str, tmp_path: Path, told_by: str) -> None:
    """It does not move, since the topic is there. But its files are written, up to where the job has come."""
    optimization, of_source = "all", dict[str, Any]()
    if told_by == "the hand-over":
        optimization = "none"
        of_source = {"leave_out": ("prices-store",), "changelogs": {"prices-store": f"{unique}-prices"}}
    bed, chance = priced_bed(tmp_path, broker, unique, optimization)
    assert bed.lay("prices", "orders", **of_source).stores == ()
    assert not any(topic.endswith("-changelog") for topic in broker.cluster.topics() if topic.startswith(unique))
    settings = {"topology.optimization": "all", **EXACTLY_ONCE}
    bed.assert_as_restored("plain-table", **settings)
    with bed.start("plain-table", **settings) as app:
        assert in_order(app.dump("prices-store")) == in_order(bed.shown("prices-store"))
        bed.both("prices", [("key-1", "9", 1_230_000)])
        app.catch_up()
        bed.both("orders", orders(chance, 1_240_000))
        app.catch_up()
        assert restored(app) == {}
    bed.pipeline.run(None)
    assert_made_alike(bed, "priced")


@pytest.mark.long
def test_an_optimised_application(broker: Broker, unique: str, tmp_path: Path) -> None:
    """One repartition topic for all, and one store for the stream that is joined with itself: it starts warm."""
    chance = random.Random(16)
    bed = WarmBed(tmp_path, broker, unique, counted_and_paired(), "kafka-4.4", "all")
    bed.create("sales", "counts", "pairs")
    bed.both("sales", sales(chance, 1_000))
    bed.pipeline.run(None)
    for topic in ("counts", "pairs"):
        assert bed.made(topic)
    assert {store.store for store in bed.lay("sales").stores} == {*bed.stores()}
    assert len(bed.stores()) == 2
    bed.assert_as_restored("optimized", **{"topology.optimization": "all"})
    with bed.start("optimized", **{"topology.optimization": "all"}) as app:
        assert in_order(app.dump("counts-store")) == in_order(bed.shown("counts-store"))
        bed.both("sales", sales(chance, 1_500))
        app.catch_up()
        assert restored(app) == {}
    bed.pipeline.run(None)
    for topic in ("counts", "pairs"):
        made = [(key.encode(), as_bytes(value)) for _, key, value, _ in bed.made(topic)]
        assert sorted((key, value) for _, key, value, _ in bed.records(topic)) == sorted(made)
        assert made


def assert_made_alike(bed: WarmBed, topic: str) -> None:
    """The application has written what the job has since it handed over."""
    made = [(partition, key.encode(), as_bytes(value), ts) for partition, key, value, ts in bed.made(topic)]
    assert sorted(bed.records(topic), key=repr) == sorted(made, key=repr)
    assert made


@pytest.mark.long
def test_windows(broker: Broker, unique: str, tmp_path: Path) -> None:
    """What suppress holds back is in memory: it is restored all the same, also with exactly-once."""
    chance = random.Random(9)
    bed = WarmBed(tmp_path, broker, unique, windows_of_amounts(), "kip")
    bed.create("amounts", "counts", "sums")
    bed.both("amounts", amounts(chance, 500, 1_000_000, 1_400_000), LONG)
    bed.pipeline.run(None)
    for topic in ("counts", "sums"):
        assert bed.made(topic)
    done = bed.lay("amounts")
    buffers = {"final-counts-store", "final-sums-store"}
    assert done.local_state is not None
    assert set(done.local_state.restored) == buffers
    bed.assert_as_restored("windows", **EXACTLY_ONCE)
    newest = [(key, 1, 1_400_000) for key in KEYS]  # clocks are not restored: what is late has to be late for both
    with bed.start("windows", **EXACTLY_ONCE) as app:
        for store in ("count-store", "sum-store"):
            assert in_order(app.dump(store)) == in_order(bed.shown(store))
        bed.both("amounts", [*newest, *amounts(chance, 200, 1_400_001, 1_600_000)], LONG)
        app.catch_up()
        assert set(restored(app)) == buffers
    bed.pipeline.run(None)
    for topic in ("counts", "sums"):
        made = bed.made(topic)
        assert bed.records(topic) == windowed(made, "window_start")
        assert made


@pytest.mark.long
def test_sessions(broker: Broker, unique: str, tmp_path: Path) -> None:
    chance = random.Random(10)
    builder = StreamsBuilder("job")
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), timedelta(seconds=10))
    counted = builder.stream("visits").group_by_key().windowed_by(windows).count(Materialized.as_("sessions-store"))
    counted.to_stream().to("sessions")
    bed = WarmBed(tmp_path, broker, unique, builder, "kafka-4.3")
    bed.create("visits", "sessions")
    bed.both("visits", [(key, "", ts) for key, _, ts in amounts(chance, 200, 1_000_000, 1_600_000)])
    bed.pipeline.run(None)
    bed.made("sessions")
    bed.lay("visits")
    bed.assert_as_restored("sessions")
    newest = [(key, "", 1_600_000) for key in KEYS]
    with bed.start("sessions") as app:
        assert in_order(app.dump("sessions-store")) == in_order(bed.shown("sessions-store"))
        bed.both("visits", [*newest, *[(key, "", ts) for key, _, ts in amounts(chance, 200, 1_600_001, 1_900_000)]])
        app.catch_up()
        assert restored(app) == {}
    bed.pipeline.run(None)
    assert bed.records("sessions") == windowed(bed.made("sessions"), "window_end", "window_start")


@pytest.mark.long
def test_two_streams_that_wait_for_each_other(broker: Broker, unique: str, tmp_path: Path) -> None:
    chance = random.Random(12)
    builder = StreamsBuilder("job")
    windows = JoinWindows.of_time_difference_and_grace(timedelta(seconds=10), timedelta(seconds=5))
    joiner = per_record(lambda left, right: f"{left or 'null'}+{right or 'null'}", STRING, "left", "right")
    asks, bids = builder.stream("asks"), builder.stream("bids")
    asks.outer_join(bids, joiner, windows, StreamJoined.as_("pair").with_name("pair")).to("pairs")
    bed = WarmBed(tmp_path, broker, unique, builder, "kafka-4.3")
    bed.create("asks", "bids", "pairs")
    bed.both("asks", offers(chance, 1_000_000, 1_060_000, "a"))
    bed.both("bids", offers(chance, 1_001_000, 1_060_000, "b"))
    bed.pipeline.run(None)
    bed.made("pairs")
    bed.lay("asks", "bids")
    bed.assert_as_restored("stream-join")
    with bed.start("stream-join", **{"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0"}) as app:
        for topic in ("asks", "bids"):
            bed.both(topic, offers(chance, 1_060_001, 1_120_000, topic[0]))
        app.catch_up()
        for topic in ("asks", "bids"):
            bed.both(topic, [(key, "last", 1_200_000) for key in KEYS])
        app.catch_up()
        assert restored(app) == {}
    bed.pipeline.run(None)
    assert_made_alike(bed, "pairs")


@pytest.mark.long
def test_a_foreign_key_join(broker: Broker, unique: str, tmp_path: Path) -> None:
    chance = random.Random(13)
    bed = WarmBed(tmp_path, broker, unique, placed(), "kafka-4.3")
    bed.create("staff", "departments", "placed")
    bed.both("staff", staff(chance, 200, 1_000))
    bed.both("departments", [(key, f"{key}'s first", 1_000) for key in KEYS])
    bed.pipeline.run(None)
    bed.made("placed")
    bed.lay("staff", "departments", leave_out=("placed-subscription-response-resolver-store",))
    bed.assert_as_restored("foreign-key")
    with bed.start("foreign-key") as app:
        for store in ("staff-store", "departments-store"):
            assert in_order(app.dump(store)) == in_order(bed.shown(store))
        bed.both("departments", [(key, f"{key}'s second", 5_000) for key in KEYS])
        app.catch_up()
        assert restored(app) == {}
    bed.pipeline.run(None)
    assert_made_alike(bed, "placed")


class Remember(Processor):
    """As ``Remembered.java``."""

    def init(self, context: Any) -> None:
        super().init(context)
        names = ("last-store", "count-store", "seen-store", "minutes-store")
        self.last, self.count, self.seen, self.minutes = map(context.get_state_store, names)

    def process(self, record: Any) -> None:
        at, key = record.timestamp, record.key
        name = f"{key}|{record.value}"
        if list(self.seen.fetch(name, at - 30_000, at + 30_000)):
            return
        self.seen.put(name, at, at)
        previous = self.last.get(key)
        self.last.put(key, record.value)
        counted = self.count.get(key)
        now = counted.value + 1 if counted else 1
        self.count.put(key, ValueAndTimestamp(now, at))
        if record.value == "b":
            self.minutes.put(Windowed(key, at - at % 60_000, at), record.value)
        self.context.forward(record.with_value(f"{previous or 'null'}>{record.value}#{now}"))


@pytest.mark.long
def test_stores_of_a_processor_that_deduplicates(
    broker: Broker,
    unique: str,
    tmp_path: Path,
) -> None:
    chance = random.Random(15)
    minutes, seconds = timedelta(minutes=3), timedelta(seconds=30)
    builder = StreamsBuilder("job")
    for store in (
        Stores.key_value_store_builder(Stores.persistent_key_value_store("last-store"), STRING, STRING),
        Stores.timestamped_key_value_store_builder(
            Stores.persistent_timestamped_key_value_store("count-store"), STRING, LONG
        ),
        Stores.window_store_builder(Stores.persistent_window_store("seen-store", minutes, seconds), STRING, LONG),
        Stores.session_store_builder(Stores.persistent_session_store("minutes-store", minutes), STRING, STRING),
    ):
        builder.add_state_store(store)
    names = ("last-store", "count-store", "seen-store", "minutes-store")
    builder.stream("readings").process(Remember, *names, named=Named.as_("remember")).to("remembered")
    bed = WarmBed(tmp_path, broker, unique, builder, "kafka-4.3")
    bed.create("readings", "remembered")

    def readings(from_ms: int, values_of: Callable[[str], str] = lambda _: "ab") -> Rows:
        keys = [(chance.choice(KEYS), ts) for ts in range(from_ms, from_ms + 400_000, 1_500)]
        return [(key, chance.choice(values_of(key)), ts) for key, ts in keys]

    first = in_first_partition(KEYS)
    bed.both("readings", readings(1_000_000, lambda key: "ab" if key in first else "a"))  # there are no sessions yet
    bed.pipeline.run(None)
    bed.made("remembered")
    bed.lay("readings", leave_out=("remember.punctuation",))
    bed.assert_as_restored("remembered")
    with bed.start("remembered", **EXACTLY_ONCE) as app:
        bed.both("readings", readings(1_400_000))
        app.catch_up()
        assert restored(app) == {}
    assert "corruption" not in (tmp_path / "warm.log").read_text(), "a task that would be deleted with all that it has"
    bed.pipeline.run(None)
    assert_made_alike(bed, "remembered")


def test_stores_with_headers(broker: Broker, unique: str, tmp_path: Path) -> None:
    bed = WarmBed(tmp_path, broker, unique, keeping(), "kafka-4.4")
    bed.create("events", "answers")
    bed.both("events", EVENTS)
    bed.pipeline.run(None)
    others = [name for name in bed.stores() if name not in STORES]
    bed.lay("events", leave_out=tuple(others))
    bed.assert_as_restored("kept")
    with bed.start("kept", **EXACTLY_ONCE) as app:
        bed.both("events", [*asked(EVENTS), *LATER, *asked(LATER)])
        app.catch_up()
        assert restored(app) == {}
    bed.pipeline.run(None)
    assert answered(broker, unique) == answers(bed)


def in_first_partition(keys: list[str]) -> list[str]:
    places = partition_for(pa.array([key.encode() for key in keys]), PARTITIONS)
    return [key for key, place in zip(keys, places, strict=True) if place == 0]


def test_windows_that_give_final_results(broker: Broker, unique: str, tmp_path: Path) -> None:
    """Their stores are in order of time, and have indices."""
    chance = random.Random(16)
    size, grace = timedelta(minutes=1), timedelta(seconds=10)
    builder = StreamsBuilder("job")
    grouped, on_close = builder.stream("amounts").group_by_key(), EmitStrategy.on_window_close()
    for windows, store in (
        (TimeWindows.of_size_and_grace(size, grace), "tumbling-store"),
        (SlidingWindows.of_time_difference_and_grace(size, grace), "sliding-store"),
        (SessionWindows.of_inactivity_gap_and_grace(size, grace), "session-store"),
    ):
        grouped.windowed_by(windows).emit_strategy(on_close).count(Materialized.as_(store))
    bed = WarmBed(tmp_path, broker, unique, builder, "kafka-4.3")
    bed.create("amounts")
    bed.both("amounts", amounts(chance, 400, 1_000_000, 1_400_000), LONG)
    bed.pipeline.run(None)
    unread = {"session-store"} if "dsl.store.format" in given() else set()  # Kafka Streams fails to convert its files
    bed.lay("amounts", restored=tuple(unread))
    bed.assert_as_restored("final-windows")
    with bed.start("final-windows") as app:
        for store in ("tumbling-store", "sliding-store", "session-store"):
            assert in_order(app.dump(store)) == in_order(bed.shown(store))
        bed.both("amounts", amounts(chance, 100, 1_400_001, 1_500_000), LONG)
        app.catch_up()
        assert set(restored(app)) == unread


def test_a_versioned_table_is_restored(broker: Broker, unique: str, tmp_path: Path) -> None:
    """Its directory would have all versions, but an application that starts on its own finds the latest ones alone."""
    chance = random.Random(7)
    supplier = Stores.persistent_versioned_key_value_store("prices-store", timedelta(milliseconds=RETENTION_MS))
    bed = WarmBed(tmp_path, broker, unique, priced(supplier), "kip")
    bed.create("prices", "orders", "priced")
    bed.both("prices", prices(chance, 600, 1_000_000, 1_200_000))
    bed.both("orders", [("key-1", "x", 1_000)])
    bed.pipeline.run(None)
    bed.made("priced")
    done = bed.lay("prices", "orders")
    assert done.local_state is not None
    assert done.local_state.restored == ("prices-store",)
    settings = {"topology.history.retention.ms": str(RETENTION_MS), **EXACTLY_ONCE}
    history = in_order([row for row in bed.shown("prices-store", "history") if row["value"] is not None])
    with bed.start("versioned-join", **settings) as app:
        assert in_order(app.versions("prices-store", *KEYS)) == history
        assert set(restored(app)) == {"prices-store"}
        assert len(broker.cluster.read(f"{unique}-prices-store-changelog")) == restored(app)["prices-store"]
    with bed.start("versioned-join", **settings) as app:
        assert restored(app) == {}
        assert in_order(app.versions("prices-store", *KEYS)) != history


def test_killed_and_handed_over_again(
    broker: Broker, unique: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The directory comes into its place before the group's offsets are set, without which nothing is handed over."""
    bed = WarmBed(tmp_path, broker, unique, windows_of_amounts(), "kip")
    bed.create("amounts", "counts", "sums")
    bed.both("amounts", amounts(random.Random(9), 100, 1_000_000, 1_400_000), LONG)
    bed.pipeline.run(None)
    place = tmp_path / "warm" / unique
    more = {"leave_out": ("final-counts-store",), "restored": ("sum-store",)}
    for step in ("directory.store-written", "directory.before-rename", "directory.placed"):

        def kill(name: str, step: str = step) -> None:
            if name == step:
                raise KeyboardInterrupt

        with observed(kill), pytest.raises(KeyboardInterrupt):
            bed.lay("amounts", replace=True, **more)
        assert broker.cluster.group_offsets(unique) == {}
        assert place.exists() == (step == "directory.placed")
    with pytest.raises(ConfigurationError, match="there is local state of the application already"):
        bed.lay("amounts", **more)
    done = bed.lay("amounts", replace=True, **more)
    assert {place: of.offset for place, of in broker.cluster.group_offsets(unique).items()} == done.offsets
    assert done.local_state is not None
    assert set(done.local_state.restored) == {"final-sums-store", "sum-store"}
    assert {database.split("/")[1] for database in contents(place)} == {"count-store"}
    assert {path.parent.name for path in place.rglob("CURRENT")} >= {"sum-store.0"}
    how = {"commit": None, "replace": True, "stopped": False, "state_dir": tmp_path / "warm"}
    run_handover(*bed.handover("amounts", **more), **how)
    said = " ".join(capsys.readouterr().out.split())
    assert f"The state directory is {place}. Copy its tasks to hosts that have no local state of the" in said
    assert "Restored from changelogs all the same: sum-store, final-sums-store." in said
    run_handover(*bed.handover("amounts", **more), **how, output="json")
    told = json.loads(capsys.readouterr().out)["local_state"]
    assert (told["path"], sorted(told["tasks"]), sorted(told["restored"])) == (
        str(place),
        ["0_0", "0_1"],
        ["final-sums-store", "sum-store"],
    )
