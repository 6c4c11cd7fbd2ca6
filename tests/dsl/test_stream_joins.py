"""Joins of two streams in the DSL: nodes and stores as Kafka Streams names them, co-partitioning, what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    JoinWindows,
    KStream,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
)
from statelib.operators.joins.stream_stream.operator import StreamStreamJoin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BOTH = {"l": "left", "r": "right"}


def ms(count: int) -> timedelta:
    return timedelta(milliseconds=count)


WINDOWS = JoinWindows.of_time_difference_and_grace(ms(10), ms(5))


def join_of(topology: Topology) -> StreamStreamJoin:
    (spec,) = [p.spec for sub in topology.sub_topologies for p in sub.processors if p.spec.state_stores()]
    assert isinstance(spec, StreamStreamJoin)
    return spec


def test_the_description_is_that_of_kafka_streams() -> None:
    builder = StreamsBuilder("app")
    builder.stream("one").outer_join(builder.stream("two"), BOTH, WINDOWS)
    assert builder.build().describe() == (
        "Topologies:\n"
        "   Sub-topology: 0\n"
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [one])\n"
        "      --> KSTREAM-WINDOWED-0000000002\n"
        "    Source: KSTREAM-SOURCE-0000000001 (topics: [two])\n"
        "      --> KSTREAM-WINDOWED-0000000003\n"
        "    Processor: KSTREAM-WINDOWED-0000000002 (stores: [KSTREAM-OUTERTHIS-0000000004-store])\n"
        "      --> KSTREAM-OUTERTHIS-0000000004\n"
        "      <-- KSTREAM-SOURCE-0000000000\n"
        "    Processor: KSTREAM-WINDOWED-0000000003 (stores: [KSTREAM-OUTEROTHER-0000000005-store])\n"
        "      --> KSTREAM-OUTEROTHER-0000000005\n"
        "      <-- KSTREAM-SOURCE-0000000001\n"
        "    Processor: KSTREAM-OUTEROTHER-0000000005"
        " (stores: [KSTREAM-OUTERTHIS-0000000004-store, KSTREAM-OUTERSHARED-0000000004-store])\n"
        "      --> KSTREAM-MERGE-0000000006\n"
        "      <-- KSTREAM-WINDOWED-0000000003\n"
        "    Processor: KSTREAM-OUTERTHIS-0000000004"
        " (stores: [KSTREAM-OUTEROTHER-0000000005-store, KSTREAM-OUTERSHARED-0000000004-store])\n"
        "      --> KSTREAM-MERGE-0000000006\n"
        "      <-- KSTREAM-WINDOWED-0000000002\n"
        "    Processor: KSTREAM-MERGE-0000000006 (stores: [])\n"
        "      --> none\n"
        "      <-- KSTREAM-OUTERTHIS-0000000004, KSTREAM-OUTEROTHER-0000000005\n\n"
    )


@pytest.mark.parametrize(
    ("join", "stores", "nodes"),
    [
        ("join", ("s-this-join-store", "s-other-join-store", None), ("this-join", "other-join")),
        (
            "left_join",
            ("s-this-join-store", "s-outer-other-join-store", "s-left-shared-join-store"),
            ("this-join", "outer-other-join"),
        ),
        (
            "outer_join",
            ("s-outer-this-join-store", "s-outer-other-join-store", "s-outer-shared-join-store"),
            ("outer-this-join", "outer-other-join"),
        ),
    ],
)
def test_nodes_and_stores_can_be_named(join: str, stores: tuple[str, ...], nodes: tuple[str, str]) -> None:
    builder = StreamsBuilder("app")
    one = builder.stream("one")
    getattr(one, join)(builder.stream("two"), BOTH, WINDOWS, StreamJoined.as_("s").with_name("j"))
    topology = builder.build()
    spec = join_of(topology)
    assert (spec.left_store, spec.right_store, spec.held_store) == stores
    names = [p.name for p in topology.sub_topologies[0].processors]
    assert names == ["j-this-windowed", "j-other-windowed", f"j-{nodes[0]}", f"j-{nodes[1]}", "j-merge"]


def test_a_stream_whose_keys_were_changed_is_repartitioned() -> None:
    builder = StreamsBuilder("app")
    one, two = builder.stream("one").select_key("value"), builder.stream("two")
    one.left_join(two.select_key("value"), BOTH, WINDOWS, StreamJoined().with_name("j")).to("out")
    topology = builder.build()
    repartitions = [topic for sub in topology.sub_topologies for topic in sub.repartition_sources]
    assert repartitions == ["app-j-left-repartition", "app-j-right-repartition"]
    assert topology.repartition_partitions({"one": 2, "two": 3}) == dict.fromkeys(repartitions, 3)


def test_topics_with_other_numbers_of_partitions_are_refused() -> None:
    builder = StreamsBuilder("app")
    builder.stream("one").join(builder.stream("two"), BOTH, WINDOWS).to("out")
    with pytest.raises(ConfigurationError, match=r"one has 2, two has 3.*KSTREAM-MERGE.*repartition\(\)"):
        builder.build().partitions({"one": 2, "two": 3})


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: JoinWindows.of(ms(1)), r"need a grace period.*of_time_difference_and_grace.*emit_unmatched_at_once"),
        (lambda: WINDOWS.before(ms(-11)), r"at most -11 ms earlier and at most 10 ms later.*0 or more"),
        (lambda: WINDOWS.after(ms(-11)), r"at most 10 ms earlier and at most -11 ms later"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(ms(-1)), "-1 ms is less than 0 ms"),
        (lambda: WINDOWS.grace(ms(-1)), "-1 ms is less than 0 ms"),
        (lambda: two_streams(lambda one, two: one.join(two, BOTH)), r"within windows.*JoinWindows"),  # type: ignore[call-overload]
        (lambda: two_streams(stores_of_one_name), "two stores have one name"),
        (lambda: joined_in(ms(25), ms(19)), r"window size 19 ms, .*25 ms.*Next: .*size of 20 ms.*period of 25 ms"),
        (lambda: joined_in(ms(24), ms(20)), r"retention period 24 ms"),
        (lambda: joined_in(ms(25), ms(20), retain_duplicates=False), r"False.*retain_duplicates=True"),
    ],
    ids=[
        "of",
        "before",
        "after",
        "difference",
        "grace",
        "without windows",
        "stores of one name",
        "another window size",
        "another retention",
        "without duplicates",
    ],
)
def test_what_cannot_be_is_refused(refused: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        refused()


def joined_in(retention: timedelta, size: timedelta, *, retain_duplicates: bool = True) -> StreamStreamJoin:
    """A join with the stores of suppliers."""
    make = Stores.persistent_window_store
    this = make("this", retention, size, retain_duplicates)
    other = Stores.in_memory_window_store("other", retention, size, retain_duplicates)
    joined = StreamJoined().with_this_store_supplier(this).with_other_store_supplier(other)
    return join_of(two_streams(lambda one, two: one.left_join(two, BOTH, WINDOWS, joined)))


def test_stores_of_suppliers_have_their_names() -> None:
    assert {store.name for store in joined_in(ms(25), ms(20)).state_stores()} == {
        "this", "other", "this-left-shared-join-store"
    }  # fmt: skip


def two_streams(describe: Callable[[KStream, KStream], object]) -> Topology:
    builder = StreamsBuilder("app")
    describe(builder.stream("one"), builder.stream("two"))
    return builder.build()


def stores_of_one_name(one: KStream, two: KStream) -> None:
    for _ in range(2):
        one.join(two, BOTH, WINDOWS, StreamJoined.as_("same"))


def test_windows_of_all_shapes() -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(ms(10)).before(ms(-5)).after(ms(20)).grace(ms(3))
    assert (windows.before_ms, windows.after_ms, windows.grace_period_ms) == (-5, 20, 3)
    assert (windows.size_ms, windows.retention_ms) == (15, 18)
    assert JoinWindows(10, 10, 5) == WINDOWS


def test_the_parameters_are_in_the_fingerprint() -> None:
    prints = set()
    for windows in (WINDOWS, WINDOWS.before(ms(3)), WINDOWS.after(ms(3)), WINDOWS.grace(ms(3)),
                    WINDOWS.emit_unmatched_at_once()):  # fmt: skip
        for joined in (None, StreamJoined().with_store_name("s"), StreamJoined().with_emit_interval(ms(1_000))):

            def describe(one: KStream, two: KStream, windows: Any = windows, joined: Any = joined) -> object:
                return one.left_join(two, BOTH, windows, joined)

            prints.add(two_streams(describe).fingerprint)
    assert len(prints) == 15


@pytest.mark.parametrize("side", ["same", "left is below", "right is below"])
def test_a_stream_joined_with_what_it_is_made_of(side: str, tmp_path: Path) -> None:
    """A record comes to both sides: first to that below which Kafka Streams ends first."""
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    below = stream.map_values("value")
    left, right = {"same": (stream, stream), "left is below": (below, stream), "right is below": (stream, below)}[side]
    left.join(right, BOTH, WINDOWS).to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    topic = driver.create_input_topic("in", pa.string(), pa.int64())
    topic.pipe_record_list([("a", 1, 100), ("a", 2, 101)])
    pairs = [
        (record.value["l"], record.value["r"]) for record in driver.create_output_topic("out").read_records_to_list()
    ]
    left_first = [(1, 1), (2, 1), (1, 2), (2, 2)]
    assert pairs == (left_first if side != "right is below" else [(right, left) for left, right in left_first])


def test_a_job(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    searches, clicks = builder.stream("searches"), builder.stream("clicks")
    searches.left_join(clicks, {"terms": "left", "page": "right"}, WINDOWS).to("found")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    driver.create_input_topic("searches").pipe_record_list([("ann", "shoes", 100), ("bob", "hats", 105)])
    driver.create_input_topic("clicks").pipe_record_list([("ann", "/boots", 109), ("ann", "/socks", 111)])
    found = driver.create_output_topic("found")
    assert found.read_key_values_to_list() == [("ann", {"terms": "shoes", "page": "/boots"})]
    driver.pipe("searches", "eve", "ties", 120)
    driver.pipe("searches", "bob", "caps", 120)
    assert found.read_records_to_list() == []
    driver.pipe("clicks", "bob", "/hats", 115)  # late, but within the grace period
    assert found.read_key_values_to_list() == [
        ("bob", {"terms": "hats", "page": "/hats"}), ("bob", {"terms": "caps", "page": "/hats"}),
    ]  # fmt: skip
    driver.pipe("searches", "eve", "ties", 500)
    assert [(r.key, r.value["page"], r.timestamp_ms) for r in found.read_records_to_list()] == [("eve", None, 120)]
