"""Streams that are aggregated together: like plain models of one stream whose values say where they come from."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    BufferConfig,
    CogroupedKStream,
    ConfigurationError,
    DayWindows,
    Materialized,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
    UnlimitedWindows,
    collect_list,
    count,
    max_,
    mean_,
    sum_,
)
from tests.operators.flow import Fed, Flow
from tests.reference.key_aggregate import Aggregates
from tests.reference.session_aggregate import all_values
from tests.reference.sliding_aggregate import SlidingWindowed
from tests.reference.window_aggregate import TimeWindowed

TOPICS = ("clicks", "orders")
CLICK = pa.struct([("page", pa.string()), ("ms", pa.int32())])
TYPES = {"clicks": (pa.string(), CLICK), "orders": (pa.string(), pa.int64())}
KEYS = st.sampled_from([None, "a", "a", "b"])
CLICKS = st.none() | st.fixed_dictionaries(
    {"page": st.sampled_from(["/", "/docs"]), "ms": st.none() | st.integers(0, 9)}
)
ORDERS = st.none() | st.integers(-9, 9)
RECORDS = st.lists(
    st.one_of(
        st.builds(Fed, st.just("clicks"), KEYS, CLICKS, st.integers(0, 60)),
        st.builds(Fed, st.just("orders"), KEYS, ORDERS, st.integers(0, 60)),
    ),
    max_size=30,
)
CUTS = st.lists(st.integers(1, 29), max_size=4)
FLUSHED = st.integers(0, 3)
FUNCTIONS: tuple[dict[str, Any], dict[str, Any]] = (
    {
        "clicks": count(),
        "slow": count(where=pc.field("value", "ms") > 4),
        "pages": collect_list("page"),
        "ms": max_("ms"),
    },
    {"orders": count(), "paid": count("value"), "spent": sum_("value"), "mean": mean_("value")},
)
SHOWN = pa.struct([("stream", pa.int64()), ("value", pa.string())])

Seen = list[tuple[int, Any]]
"""The stream and the value of each record of an aggregate, in order."""


def ms(of: int) -> timedelta:
    return timedelta(milliseconds=of)


def compiled(seen: Seen) -> dict[str, Any]:
    """What `FUNCTIONS` make of records."""
    clicks, orders = ([value for stream, value in seen if stream == of] for of in (0, 1))
    times = [click["ms"] for click in clicks if click and click["ms"] is not None]
    paid = [order for order in orders if order is not None]
    return {
        "clicks": len(clicks),
        "slow": sum(time > 4 for time in times),
        "pages": [click["page"] for click in clicks if click] or None,
        "ms": max(times, default=None),
        "orders": len(orders),
        "paid": len(paid),
        "spent": sum(paid) if paid else None,
        "mean": sum(paid) / len(paid) if paid else None,
    }


def per_record(seen: Seen) -> list[dict[str, Any]]:
    """What functions of Python make of them that remember everything."""
    return [{"stream": stream, "value": text(value)} for stream, value in seen]


def remembering(stream: int) -> Any:
    return lambda _, value, seen: [*seen, {"stream": stream, "value": text(value)}]


def text(value: Any) -> str:
    return str(sorted(value.items()) if isinstance(value, dict) else value)


def cogrouped(builder: StreamsBuilder, *, in_python: bool) -> CogroupedKStream:
    one, other = (remembering(0), remembering(1)) if in_python else FUNCTIONS
    clicks, orders = (builder.stream(topic).group_by_key() for topic in TOPICS)
    return clicks.cogroup(one).cogroup(orders, other)


def aggregated(of: Any, *, in_python: bool, merges: bool = False, **options: Any) -> Any:
    if not in_python:
        return of.aggregate(**options)
    merger = [lambda _, one, two: one + two] if merges else []
    return of.aggregate_with(list, *merger, pa.list_(SHOWN), **options)


def run(builder: StreamsBuilder, fed: list[Fed], cuts: list[int], flushed: int) -> list[tuple[Any, ...]]:
    out = Flow(builder.build(), TYPES).run(fed, cuts, flush_every=flushed).get("out", [])
    return [(row.cause, row.key, row.value, row.timestamp) for row in out]


def number(fed: Fed) -> int:
    return TOPICS.index(fed.topic)


@given(RECORDS, CUTS, FLUSHED, st.booleans())
def test_by_key(fed: list[Fed], cuts: list[int], flushed: int, in_python: bool) -> None:
    builder, model = StreamsBuilder("job"), Aggregates(list, lambda seen, pair: [*seen, pair])
    aggregated(cogrouped(builder, in_python=in_python), in_python=in_python).to_stream().to("out")
    expected = [
        (cause, change.key, (per_record if in_python else compiled)(change.new), change.timestamp)
        for cause, each in enumerate(fed)
        for change in model.process(
            each.key, None if each.value is None else (number(each), each.value), each.timestamp
        )
    ]
    assert run(builder, fed, cuts, flushed) == expected


@given(RECORDS, CUTS, FLUSHED, st.booleans(), st.sampled_from([5, 20]), st.integers(0, 10))
def test_time_windows(fed: list[Fed], cuts: list[int], flushed: int, in_python: bool, advance: int, grace: int) -> None:
    builder, model = StreamsBuilder("job"), TimeWindowed(20, advance, grace)
    windows = TimeWindows.of_size_and_grace(ms(20), ms(grace)).advance_by(ms(advance))
    windowed = cogrouped(builder, in_python=in_python).windowed_by(windows)
    aggregated(windowed, in_python=in_python).to_stream().map("key", "value").to("out")
    expected = [
        (cause, each.key, (per_record if in_python else compiled)(seen), timestamp)
        for cause, each in enumerate(fed)
        for _, seen, timestamp in model.process(each.key, (number(each), each.value), each.timestamp)
    ]
    assert run(builder, fed, cuts, flushed) == expected


@given(RECORDS, CUTS, FLUSHED, st.booleans(), st.integers(0, 10))
def test_sliding_windows(fed: list[Fed], cuts: list[int], flushed: int, in_python: bool, grace: int) -> None:
    builder, model = StreamsBuilder("job"), SlidingWindowed(10, grace, 1_000)
    windows = SlidingWindows.of_time_difference_and_grace(ms(10), ms(grace))
    windowed = cogrouped(builder, in_python=in_python).windowed_by(windows)
    aggregated(windowed, in_python=in_python).to_stream().map("key", "value").to("out")
    expected = [
        (cause, each.key, (per_record if in_python else compiled)(seen), timestamp)
        for cause, each in enumerate(fed)
        for _, seen, timestamp, _ in model.process(
            each.key, None if each.value is None else (number(each), each.value), each.timestamp
        )
    ]
    assert run(builder, fed, cuts, flushed) == expected


@given(RECORDS, CUTS, FLUSHED, st.booleans(), st.integers(0, 10))
def test_sessions(fed: list[Fed], cuts: list[int], flushed: int, in_python: bool, grace: int) -> None:
    builder, model = StreamsBuilder("job"), all_values(4, grace)
    sessions = SessionWindows.of_inactivity_gap_and_grace(ms(4), ms(grace))
    windowed = cogrouped(builder, in_python=in_python).windowed_by(sessions)
    aggregated(windowed, in_python=in_python, merges=True).to_stream().map("key", "value").to("out")
    expected = [
        (cause, each.key, seen if seen is None else (per_record if in_python else compiled)(seen), end)
        for cause, each in enumerate(fed)
        for _, end, seen, _ in model.process(each.key, (number(each), each.value), each.timestamp)
    ]
    assert run(builder, fed, cuts, flushed) == expected


# --- the example of KIP-150 ------------------------------------------------------------------------------------------

CART, PURCHASE, WISH = (pa.struct([(name, pa.string())]) for name in ("item", "bought", "wished"))


def customers() -> tuple[StreamsBuilder, CogroupedKStream]:
    """Three streams of a shop, one customer each: the cart, purchases, and the list of wishes."""
    builder = StreamsBuilder("shop")
    grouped = [builder.stream(topic).group_by_key() for topic in ("cart", "purchases", "wishes")]
    added = [lambda _, value, told, what=what: f"{told} {what}:{next(iter(value.values()))}".strip() for what in "cpw"]
    customer = grouped[0].cogroup(added[0]).cogroup(grouped[1], added[1]).cogroup(grouped[2], added[2])
    return builder, customer


def feed(builder: StreamsBuilder) -> list[tuple[Any, ...]]:
    driver = TopologyTestDriver(builder.build())
    kinds = {"cart": CART, "purchases": PURCHASE, "wishes": WISH}
    inputs = {topic: driver.create_input_topic(topic, value_type=kind) for topic, kind in kinds.items()}
    for topic, key, item, timestamp in (
        ("cart", "ann", "shoes", 10),
        ("wishes", "ann", "hat", 20),
        ("purchases", "ann", "shoes", 30),
        ("cart", "bob", "coat", 40),
        ("purchases", "ann", "socks", 1_030),
    ):
        inputs[topic].pipe_input(key, {kinds[topic][0].name: item}, timestamp)
    return [(record.key, record.value) for record in driver.create_output_topic("customers").read_records_to_list()]


def test_three_streams_make_one_customer() -> None:
    builder, customer = customers()
    customer.aggregate_with(str, pa.string(), Materialized.as_("customers")).to_stream().to("customers")
    assert feed(builder) == [
        ("ann", "c:shoes"),
        ("ann", "c:shoes w:hat"),
        ("ann", "c:shoes w:hat p:shoes"),
        ("bob", "c:coat"),
        ("ann", "c:shoes w:hat p:shoes p:socks"),
    ]


@pytest.mark.parametrize(
    ("windows", "last"),
    [
        (TimeWindows.of_size_with_no_grace(ms(1_000)), "p:socks"),
        (UnlimitedWindows.of(), "c:shoes w:hat p:shoes p:socks"),
        (DayWindows.of_zone_with_no_grace("Europe/Berlin"), "c:shoes w:hat p:shoes p:socks"),
        (SlidingWindows.of_time_difference_with_no_grace(ms(1_000)), "p:shoes p:socks"),
        (SessionWindows.of_inactivity_gap_with_no_grace(ms(500)), "p:socks"),
        (SessionWindows.of_inactivity_gap_with_no_grace(ms(1_500)), "c:shoes w:hat p:shoes p:socks"),
    ],
)
def test_windows_of_all_kinds(windows: Any, last: str) -> None:
    builder, customer = customers()
    merger = [lambda _, one, two: f"{one} {two}".strip()] if isinstance(windows, SessionWindows) else []
    windowed: Any = customer.windowed_by(windows)
    windowed.aggregate_with(str, *merger, pa.string()).to_stream().to("customers")
    assert feed(builder)[-1][1] == last


def test_a_cogroup_is_looked_into_as_any_table() -> None:
    builder = StreamsBuilder("job")
    table = cogrouped(builder, in_python=False).aggregate(Materialized.as_("kept"))
    builder.stream("asked").left_join(table.filter(pc.field("value", "clicks") > 1), "right.spent").to("out")
    flow = Flow(builder.build(), {**TYPES, "asked": (pa.string(), pa.string())})
    click = {"page": "/", "ms": 1}
    fed = [("clicks", click), ("orders", 5), ("asked", ""), ("clicks", click), ("asked", "")]
    out = flow.run([Fed(topic, "k", value, at) for at, (topic, value) in enumerate(fed)], [2, 3], flush_every=1)["out"]
    assert [row.value for row in out] == [None, 5]


def test_versions_of_a_cogroup() -> None:
    builder = StreamsBuilder("job")
    store = Materialized.as_(Stores.persistent_versioned_key_value_store("kept", ms(100)))
    table = cogrouped(builder, in_python=False).aggregate(store)
    builder.stream("asked").join(table, "right.orders").to("out")
    flow = Flow(builder.build(), {**TYPES, "asked": (pa.string(), pa.string())})
    fed = [Fed("orders", "k", 1, 10), Fed("orders", "k", 1, 20), *(Fed("asked", "k", "", at) for at in (15, 25))]
    assert [row.value for row in flow.run(fed)["out"]] == [1, 2]


def test_a_window_closes_for_all_streams_at_once() -> None:
    """As shipped, each stream has a stream time of its own, and the store that of all: such windows begin anew."""
    for semantics, expected in (("kip", [(1, 0), (2, 0), (1, 0)]), ("kafka-4.3", [(1, 0), (2, 0), (1, 0), (0, 1)])):
        builder = StreamsBuilder("job")
        windowed = cogrouped(builder, in_python=False).windowed_by(TimeWindows.of_size_with_no_grace(ms(10)))
        windowed.aggregate().to_stream().to("out")
        flow = Flow(builder.build(), TYPES, semantics)  # type: ignore[arg-type]
        click = {"page": "/", "ms": 1}
        fed = [Fed("clicks", "k", click, at) for at in (1, 2, 50)] + [Fed("orders", "k", 7, 3)]
        out = flow.run(fed)["out"]
        assert [(row.value["clicks"], row.value["orders"]) for row in out] == expected
        assert flow.dropped() == (semantics == "kip")


def test_final_results_of_a_cogroup() -> None:
    builder = StreamsBuilder("job")
    windowed = cogrouped(builder, in_python=False).windowed_by(TimeWindows.of_size_with_no_grace(ms(10)))
    final = windowed.aggregate().suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    final.to_stream().to("out")
    fed = [Fed("clicks", "k", {"page": "/", "ms": 1}, 1), Fed("orders", "k", 7, 3), Fed("orders", "k", 7, 30)]
    (row,) = Flow(builder.build(), TYPES).run(fed, [1, 2], flush_every=1)["out"]
    assert (row.value["clicks"], row.value["spent"], row.timestamp) == (1, 7, 3)


def test_streams_whose_keys_differ_in_type_are_refused() -> None:
    builder = StreamsBuilder("job")
    cogrouped(builder, in_python=False).aggregate().to_stream().to("out")
    with pytest.raises(ConfigurationError, match="keys differ in type cannot be aggregated together: string and int64"):
        Flow(builder.build(), {"clicks": (pa.string(), CLICK), "orders": (pa.int64(), pa.int64())})
