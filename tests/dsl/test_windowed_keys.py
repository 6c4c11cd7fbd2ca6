"""What comes behind a windowed aggregation goes by the windowed key, until something gives another key."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    BufferConfig,
    ConfigurationError,
    Deduplicated,
    Joined,
    JoinWindows,
    KStream,
    Materialized,
    Record,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
    Windowed,
    per_record,
)
from statelib.operators.processors.definition import Processor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.settings.semantics import Semantics

pytestmark = pytest.mark.thorough

BOTH: tuple[Semantics, ...] = ("kip", "kafka-4.3")
TEN_SECONDS = TimeWindows.of_size_with_no_grace(timedelta(seconds=10))
SIDES = {"l": "left", "r": "right"}


class Out(NamedTuple):
    """A record that came out, its key as a `Windowed` if it has a window."""

    key: Any
    value: Any
    timestamp: int


def counts(builder: StreamsBuilder, topic: str, windows: Any = TEN_SECONDS) -> KStream:
    """``h`` of the examples."""
    stream: KStream = builder.stream(topic).group_by_key().windowed_by(windows).count().to_stream()
    return stream


def w(key: Any, start: int, size: int = 10_000) -> Windowed:
    """A window of ten seconds."""
    return Windowed(key, start, start + size)


def answer(
    folder: Path, build: Callable[[StreamsBuilder], None], *records: tuple[str, str, int], semantics: Semantics = "kip",
    partitions: int = 1,
) -> list[Out]:  # fmt: skip
    """What comes out of ``build``'s sink ``out`` of records (topic, key, timestamp)."""
    builder = StreamsBuilder("windowed")
    build(builder)
    topology = builder.build()
    driver = TopologyTestDriver(topology, folder, semantics=semantics, partitions=partitions)
    topics = {topic: driver.create_input_topic(topic) for topic in topology.source_topics}
    for topic, key, timestamp in records:
        topics[topic].pipe_input(key, "v", timestamp)
    out = driver.create_output_topic("out").read_records_to_list()
    return [Out(_windowed(record.key), record.value, record.timestamp_ms) for record in out]


def _windowed(key: Any) -> Any:
    if not isinstance(key, dict) or "window_start" not in key:
        return key
    start, end = (round(key[f"window_{bound}"].timestamp() * 1000) for bound in ("start", "end"))
    return Windowed(_windowed(key["key"]), start, end)


K = [("in", "k", 0), ("in", "k", 10_000), ("in", "k", 11_000)]


@pytest.mark.parametrize("semantics", BOTH)
def test_a_count_by_key_is_one_for_each_window(tmp_path: Path, semantics: Semantics) -> None:
    def build(builder: StreamsBuilder) -> None:
        counts(builder, "in").group_by_key().count().to_stream().to("out")

    found = answer(tmp_path, build, *K, semantics=semantics)
    assert found == [(w("k", 0), 1, 0), (w("k", 10_000), 1, 10_000), (w("k", 10_000), 2, 11_000)]


def test_a_repartition_keeps_the_window(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        again = counts(builder, "in").repartition().map_values({"key": "key", "start": "window_start"})
        again.group_by_key().count().to_stream().to("out")

    found = answer(tmp_path, build, *K, partitions=3)
    assert found == [(w("k", 0), 1, 0), (w("k", 10_000), 1, 10_000), (w("k", 10_000), 2, 11_000)]


@pytest.mark.parametrize("semantics", BOTH)
@pytest.mark.parametrize("stored", [None, "plain", "versioned"])
def test_tables_meet_window_by_window(tmp_path: Path, semantics: Semantics, stored: str | None) -> None:
    def table(builder: StreamsBuilder, topic: str) -> Any:
        store: Any = None if stored is None else Materialized.as_(topic)
        if stored == "versioned":
            supplier = Stores.persistent_versioned_key_value_store(topic, timedelta(minutes=1))
            store = Materialized.as_(supplier)
        return counts(builder, topic).to_table(materialized=store)

    def build(builder: StreamsBuilder) -> None:
        table(builder, "in").join(table(builder, "in2"), SIDES).to_stream().to("out")

    records = [("in", "k", 0), ("in", "k", 1), ("in", "k", 10_000), ("in2", "k", 1)]
    assert answer(tmp_path, build, *records, semantics=semantics) == [(w("k", 0), {"l": 2, "r": 1}, 1)]


@pytest.mark.parametrize("semantics", BOTH)
@pytest.mark.parametrize("versioned", [False, True])
def test_a_stream_meets_the_table_of_its_window(tmp_path: Path, semantics: Semantics, versioned: bool) -> None:
    def build(builder: StreamsBuilder) -> None:
        supplier = Stores.persistent_versioned_key_value_store("t", timedelta(minutes=1))
        store = Materialized.as_(supplier if versioned else "t")
        counts(builder, "in2").left_join(counts(builder, "in").to_table(materialized=store), SIDES).to("out")

    records = [("in", "k", 0), ("in2", "k", 1), ("in2", "k", 10_001)]
    found = answer(tmp_path, build, *records, semantics=semantics)
    assert found == [(w("k", 0), {"l": 1, "r": 1}, 1), (w("k", 10_000), {"l": 1, "r": None}, 10_001)]


def test_a_joiner_sees_the_window(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        table = counts(builder, "in").to_table()
        start = {"n": "left", "start": "window_start", "key": "key"}
        table.join(table.map_values("value"), start).to_stream().to("out")

    assert answer(tmp_path, build, ("in", "k", 10_000))[-1].value == {"n": 1, "start": 10_000, "key": "k"}


def test_records_that_wait_for_a_table_keep_their_windows(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        supplier = Stores.persistent_versioned_key_value_store("t", timedelta(minutes=1))
        table = counts(builder, "in").to_table(materialized=Materialized.as_(supplier))
        joined = Joined.as_("later").with_grace_period(timedelta(seconds=5))
        counts(builder, "in2").left_join(table, SIDES, joined).to("out")

    records = [("in2", "k", 1), ("in2", "k", 10_001), ("in", "k", 10_001), ("in2", "j", 20_000)]
    found = answer(tmp_path, build, *records)
    assert found == [(w("k", 0), {"l": 1, "r": None}, 1), (w("k", 10_000), {"l": 1, "r": 1}, 10_001)]


@pytest.mark.parametrize("semantics", BOTH)
def test_a_regrouped_table_has_plain_keys(tmp_path: Path, semantics: Semantics) -> None:
    def build(builder: StreamsBuilder) -> None:
        everyone = per_record(lambda key: "all", pa.string(), "key")
        counts(builder, "in").to_table().group_by(everyone).count().to_stream().to("out")

    records = [("in", "k", 0), ("in", "k", 10_000), ("in", "j", 10_001)]
    assert answer(tmp_path, build, *records, semantics=semantics) == [
        ("all", 1, 0), ("all", 2, 10_000), ("all", 3, 10_001),
    ]  # fmt: skip


@pytest.mark.parametrize("semantics", BOTH)
@pytest.mark.parametrize(
    "windows",
    [
        TEN_SECONDS,
        SlidingWindows.of_time_difference_with_no_grace(timedelta(milliseconds=5)),
        SessionWindows.of_inactivity_gap_with_no_grace(timedelta(seconds=5)),
    ],
    ids=["time", "sliding", "session"],
)
def test_a_windowed_table_is_regrouped_as_its_stream_is(tmp_path: Path, semantics: Semantics, windows: Any) -> None:
    def table(builder: StreamsBuilder) -> Any:
        return builder.stream("in").group_by_key().windowed_by(windows).count()

    def straight(builder: StreamsBuilder) -> None:
        table(builder).group_by("key").sum("value").to_stream().to("out")

    def around(builder: StreamsBuilder) -> None:
        table(builder).to_stream().to_table().group_by("key").sum("value").to_stream().to("out")

    records = [("in", "k", 0), ("in", "k", 2), ("in", "k", 10_000), ("in", "k", 13_000)]
    found = [answer(tmp_path / build.__name__, build, *records, semantics=semantics) for build in (straight, around)]
    assert found[0][-1].key == "k"
    assert found[0] == found[1]


@pytest.mark.parametrize("by", ["value.w", "window_start"])
def test_a_table_is_regrouped_by_its_windows(tmp_path: Path, by: str) -> None:
    def build(builder: StreamsBuilder) -> None:
        rows = counts(builder, "in").map_values({"n": "value", "w": "window_start"})
        rows.to_table().group_by(by).sum("n").to_stream().to("out")

    records = [("in", "k", 0), ("in", "k", 1), ("in", "k", 10_000)]
    assert answer(tmp_path, build, *records) == [(0, 1, 0), (0, 2, 1), (10_000, 1, 10_000)]


@pytest.mark.parametrize("semantics", BOTH)
@pytest.mark.parametrize("own", [None, "many"])
@pytest.mark.parametrize("parent", [None, "parent"])
def test_a_filtered_table_deletes_no_other_window(
    tmp_path: Path, semantics: Semantics, parent: str | None, own: str | None
) -> None:
    def build(builder: StreamsBuilder) -> None:
        table = counts(builder, "in").to_table(materialized=parent and Materialized.as_(parent))
        table.filter(pc.field("value") > 1, materialized=own and Materialized.as_(own)).to_stream().to("out")

    found = answer(tmp_path, build, ("in", "k", 0), ("in", "k", 1), ("in", "k", 10_000), semantics=semantics)
    passed = (w("k", 0), 2, 1)
    unknown = [(w("k", 0), None, 0), passed, (w("k", 10_000), None, 10_000)]  # old values are: what Kafka 4.4 gives
    assert found == ([passed] if parent else unknown)


@pytest.mark.parametrize("parent", [None, "parent"])
def test_the_store_of_a_filter_has_what_passes(tmp_path: Path, parent: str | None) -> None:
    def build(builder: StreamsBuilder) -> None:
        table = counts(builder, "in").to_table(materialized=parent and Materialized.as_(parent))
        many = table.filter(pc.field("value") > 1, materialized=Materialized.as_("many"))
        builder.stream("ask").group_by_key().windowed_by(TEN_SECONDS).count().to_stream().left_join(many, SIDES).to(
            "out"
        )

    records = [("in", "k", 0), ("in", "k", 1), ("in", "k", 10_000), ("ask", "k", 10_001), ("ask", "k", 10_002)]
    asked = [("ask", "k", 2), *records[3:]]
    assert answer(tmp_path, build, *records[:3], *asked) == [
        (w("k", 0), {"l": 1, "r": 2}, 2),
        (w("k", 10_000), {"l": 1, "r": None}, 10_001),
        (w("k", 10_000), {"l": 2, "r": None}, 10_002),
    ]


def test_two_streams_meet_window_by_window(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        near = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=30))
        counts(builder, "in").join(counts(builder, "in2"), SIDES, near).to("out")

    records = [("in", "k", 0), ("in", "k", 10_000), ("in2", "k", 10_001)]
    assert answer(tmp_path, build, *records) == [(w("k", 10_000), {"l": 1, "r": 1}, 10_001)]


def test_a_window_is_no_duplicate_of_another(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        named = Deduplicated.with_(store_name="seen")
        counts(builder, "in").deduplicate_by_key(timedelta(minutes=1), named).to("out")

    assert answer(tmp_path, build, *K) == [(w("k", 0), 1, 0), (w("k", 10_000), 1, 10_000)]


def test_windows_of_windows_have_both(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        sessions = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(seconds=20))
        counts(builder, "in").group_by_key().windowed_by(sessions).count().to_stream().to("out")

    assert answer(tmp_path, build, *K) == [
        (Windowed(w("k", 0), 0, 0), 1, 0),
        (Windowed(w("k", 10_000), 10_000, 10_000), 1, 10_000),
        (Windowed(w("k", 10_000), 10_000, 10_000), None, 10_000),
        (Windowed(w("k", 10_000), 10_000, 11_000), 2, 11_000),
    ]


def test_what_suppress_holds_back_has_its_window(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        limit = Suppressed.until_time_limit(timedelta(seconds=1), BufferConfig.unbounded())
        counts(builder, "in").to_table().suppress(limit).to_stream().to("out")

    assert answer(tmp_path, build, *K) == [(w("k", 0), 1, 0), (w("k", 10_000), 2, 11_000)]


class Seen(Processor):
    """Which windows have been seen, in a store under the windowed key."""

    def process(self, record: Record) -> None:
        store = self.context.get_state_store("seen")
        store.put(record.key, (store.get(record.key) or 0) + 1)
        self.context.forward(record.with_value(store.get(record.key)))


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_processor_keeps_and_forwards_windowed_keys(tmp_path: Path, partitions: int) -> None:
    def build(builder: StreamsBuilder) -> None:
        key = pa.struct([("key", pa.string()), ("window_start", pa.int64()), ("window_end", pa.int64())])
        store = Stores.persistent_key_value_store("seen")
        builder.add_state_store(Stores.key_value_store_builder(store, key, pa.int64()))
        counts(builder, "in").process(Seen, "seen").group_by_key().count().to_stream().to("out")

    found = answer(tmp_path, build, *K, partitions=partitions)
    assert found == [(w("k", 0), 1, 0), (w("k", 10_000), 1, 10_000), (w("k", 10_000), 2, 11_000)]


def test_a_function_that_aggregates_gets_the_windowed_key(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        told = counts(builder, "in").group_by_key().aggregate_with(str, lambda key, _, __: str(tuple(key)), pa.string())
        told.to_stream().to("out")

    assert answer(tmp_path, build, ("in", "k", 10_000))[0].value == "('k', 10000, 20000)"


def test_a_foreign_key_join_answers_the_window_that_asked(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        key = per_record(lambda key: key, pa.string(), "key")
        right = counts(builder, "in2").select_key(key).to_table()
        counts(builder, "in").to_table().join(right, SIDES, foreign_key="key").to_stream().to("out")

    records = [("in", "k", 0), ("in", "k", 10_000), ("in2", "k", 10_001)]
    found = answer(tmp_path, build, *records)
    assert found == [(w("k", 0), {"l": 1, "r": 1}, 10_001), (w("k", 10_000), {"l": 1, "r": 1}, 10_001)]


def test_windows_of_another_kind_or_size_are_refused_where_state_is_kept(tmp_path: Path) -> None:
    twenty = TimeWindows.of_size_with_no_grace(timedelta(seconds=20))
    sliding = SlidingWindows.of_time_difference_with_no_grace(timedelta(seconds=5))

    def build(builder: StreamsBuilder, other: Any) -> None:
        merged = counts(builder, "in").merge(counts(builder, "in2", other))
        merged.group_by_key().count().to_stream().to("out")

    for number, other in enumerate((twenty, sliding)):
        with pytest.raises(ConfigurationError, match=r"of different kinds or sizes|differ in type"):
            answer(tmp_path / str(number), lambda builder, other=other: build(builder, other), *K)


def test_keys_with_and_without_windows_do_not_meet(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        near = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=30))
        counts(builder, "in").join(builder.stream("in2"), SIDES, near).to("out")

    with pytest.raises(ConfigurationError, match="windowed<string, windows of 10000 ms>"):
        answer(tmp_path, build, *K)


FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())
FIVE = timedelta(seconds=5)
TEN = timedelta(seconds=10)
FINALLY = [
    ("in", "k", 0), ("in", "k", 1), ("in", "j", 3), ("in", "k", 10_000), ("in", "k", 5), ("in", "j", 15_001),
    ("in", "k", 9_000), ("in", "k", 26_000), ("in", "x", 50_000), ("in", "x", 90_000),
]  # fmt: skip
LAST = [
    (w("j", 10_000), 1, 15_001), (w("k", 10_000), 1, 10_000), (w("k", 20_000), 1, 26_000), (w("x", 50_000), 1, 50_000)
]  # fmt: skip


def _session(key: str, start: int, end: int, value: int) -> Out:
    return Out(Windowed(key, start, end), value, end)


@pytest.mark.parametrize("stored", [None, "stored"])
@pytest.mark.parametrize("semantics", BOTH)
@pytest.mark.parametrize(
    ("windows", "final"),
    [
        (TEN_SECONDS, [(w("j", 0), 1, 3), (w("k", 0), 2, 1), *LAST]),
        (TimeWindows.of_size_and_grace(TEN, FIVE), [(w("j", 0), 1, 3), (w("k", 0), 3, 5), *LAST]),
        (
            SessionWindows.of_inactivity_gap_with_no_grace(TEN),
            [
                _session("j", 3, 3, 1), _session("k", 0, 10_000, 5), _session("j", 15_001, 15_001, 1),
                _session("k", 26_000, 26_000, 1), _session("x", 50_000, 50_000, 1),
            ],
        ),
        (
            SessionWindows.of_inactivity_gap_and_grace(TEN, FIVE),
            [
                _session("j", 3, 3, 1), _session("k", 0, 10_000, 5), _session("j", 15_001, 15_001, 1),
                _session("k", 26_000, 26_000, 1), _session("x", 50_000, 50_000, 1),
            ],
        ),
    ],
)  # fmt: skip
def test_a_table_of_a_windowed_stream_has_final_results(
    tmp_path: Path, semantics: Semantics, windows: Any, final: list[Any], stored: str | None
) -> None:
    """As Kafka's test driver gives them."""

    def build(builder: StreamsBuilder) -> None:
        table = counts(builder, "in", windows).to_table(materialized=stored and Materialized.as_(stored))
        table.suppress(FINAL).to_stream().to("out")

    assert answer(tmp_path, build, *FINALLY, semantics=semantics) == final


def test_results_of_sliding_windows_come_as_shipped(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        windows = SlidingWindows.of_time_difference_with_no_grace(TEN)
        counts(builder, "in", windows).to_table().suppress(FINAL).to_stream().to("out")

    found = answer(tmp_path, build, *FINALLY[:5], semantics="kafka-4.3")
    assert found == [
        (w("j", 0), 1, 3), (w("k", 0), 2, 1), (w("k", 0), 3, 10_000), (w("k", 0), 4, 10_000),
    ]  # fmt: skip


@pytest.mark.parametrize("semantics", BOTH)
def test_time_is_that_of_what_gets_there(tmp_path: Path, semantics: Semantics) -> None:
    def build(builder: StreamsBuilder) -> None:
        many = counts(builder, "in").filter(pc.field("value") > 1)
        many.repartition().to_table().map_values({"n": "value"}).suppress(FINAL).to_stream().to("out")

    assert answer(tmp_path, build, *FINALLY, semantics=semantics) == []
    more = [*FINALLY, ("in", "x", 90_001)]
    assert answer(tmp_path / "more", build, *more, semantics=semantics) == [(w("k", 0), {"n": 2}, 1)]


def test_tables_that_meet_close_with_the_last(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        late = counts(builder, "in2", TimeWindows.of_size_and_grace(TEN, FIVE)).to_table()
        counts(builder, "in").to_table().join(late, SIDES).suppress(FINAL).to_stream().to("out")

    records = [(topic, "k", time) for time in (0, 14_999, 25_000) for topic in ("in", "in2")]
    assert answer(tmp_path, build, *records[:4]) == []
    first = (w("k", 0), {"l": 1, "r": 1}, 0)
    assert answer(tmp_path / "more", build, *records) == [first, (w("k", 10_000), {"l": 1, "r": 1}, 14_999)]


def test_what_has_no_windows_has_no_final_results(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    plain = builder.stream("plain")
    mixed = counts(builder, "in").to_table().join(plain.to_table(), SIDES)
    other = counts(builder, "in", SessionWindows.of_inactivity_gap_with_no_grace(TEN))
    for table, message in [
        (plain.group_by_key().count(), "no operator makes windows between it and topic plain"),
        (mixed, "no operator makes windows between it and topic plain"),
        (counts(builder, "in").merge(other).to_table(), "different kinds or sizes"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            table.suppress(FINAL)

    def build(builder: StreamsBuilder) -> None:
        counts(builder, "in").select_key("key").to_table().suppress(FINAL).to_stream().to("out")

    with pytest.raises(ConfigurationError, match="keys without windows"):
        answer(tmp_path, build, *FINALLY)
