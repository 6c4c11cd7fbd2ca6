"""The DSL makes the nodes, sub-topologies and repartition topics that Kafka Streams would."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import statelib
from statelib import (
    BufferConfig,
    ConfigurationError,
    Consumed,
    Deduplicated,
    Grouped,
    Joined,
    JoinWindows,
    JsonSerde,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
    count,
)
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.operator import WindowAggregate

DAY = timedelta(days=1)


def versioned(name: str = "rates") -> Materialized:
    return Materialized.as_(Stores.persistent_versioned_key_value_store(name, DAY))


def test_every_public_name_is_there() -> None:
    missing = [name for name in statelib.__all__ if not hasattr(statelib, name)]
    assert not missing
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = statelib.nothing  # type: ignore[attr-defined]


def test_joined_and_windowed_without_repartition() -> None:
    builder = StreamsBuilder("app")
    rates = builder.table("rates", versioned())
    (
        builder.stream("sales")
        .deduplicate_by_key_value("id", DAY, Deduplicated.as_("once"))
        .join(rates, {"amount": "left.amount", "rate": "right.rate"}, Joined.as_("priced"))
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace(DAY))
        .count(Materialized.as_("daily").with_retention(timedelta(days=3)), Named.as_("counting"))
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final"))
        .to_stream()
        .to("daily-counts", Produced.with_partitions(4).with_name("out"))
    )
    topology = builder.build()
    (sub,) = topology.sub_topologies
    assert sub.sources == ("rates", "sales")
    assert [node.name for node in sub.processors] == [
        "KTABLE-SOURCE-0000000001",
        "once",
        "priced",
        "counting",
        "final",
        "KTABLE-TOSTREAM-0000000006",
    ]
    assert [node.stores for node in sub.processors] == [
        ("rates",),
        ("once-STORE",),
        ("rates",),
        ("daily",),
        ("final-store",),
        (),
    ]
    assert sub.all_sinks[0].name == "out"
    assert sub.stateful


def test_a_changed_key_is_repartitioned_before_what_needs_it_and_nowhere_else() -> None:
    builder = StreamsBuilder("app")
    rekeyed = builder.stream("sales").select_key("customer").map_values("amount")
    rekeyed.group_by_key(Grouped.as_("by-customer")).windowed_by(TimeWindows.of_size_with_no_grace(DAY)).count()
    first, second = builder.build().sub_topologies
    assert [sink.topic for sink in first.all_sinks] == ["app-by-customer-repartition"]
    assert second.repartition_sources == ("app-by-customer-repartition",)


@pytest.mark.parametrize("operator", ["deduplicate_by_key", "deduplicate_by_key_value"])
def test_deduplication_after_a_key_changing_operator_repartitions_under_its_name(operator: str) -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("sales").select_key("customer")
    if operator == "deduplicate_by_key":
        stream.deduplicate_by_key(DAY, Deduplicated.as_("once")).to("out")
    else:
        stream.deduplicate_by_key_value("id", DAY, Deduplicated.as_("once")).to("out")
    first, second = builder.build().sub_topologies
    assert [sink.topic for sink in first.all_sinks] == ["app-once-repartition"]
    assert second.sinks == ("out",)


def test_deduplication_over_all_partitions_repartitions_by_id_and_its_output_by_key_again() -> None:
    builder = StreamsBuilder("app")
    builder.stream("sales").deduplicate("id", DAY, Deduplicated.with_(store_name="ids")).to("out")
    first, second, third = builder.build().sub_topologies
    assert first.all_sinks[0].partition_by is not None
    assert second.processors[0].stores == ("ids",)
    assert third.repartition_sources == ("out-repartition",)
    assert third.sinks == ("out",)


def test_repartition_says_its_name_and_partitions() -> None:
    builder = StreamsBuilder("app")
    builder.stream("sales").repartition(Repartitioned.as_("wide").with_number_of_partitions(12)).to("out")
    topology = builder.build()
    assert topology.repartition_partitions({"sales": 2}) == {"app-wide-repartition": 12}


def test_names_that_collide_are_refused() -> None:
    builder = StreamsBuilder("app")
    builder.table("rates", versioned())
    with pytest.raises(ConfigurationError, match=r"two stores have one name.*rates"):
        builder.table("other-rates", versioned())


def test_a_versioned_table_cannot_be_suppressed() -> None:
    table = StreamsBuilder("app").table("rates", versioned())
    with pytest.raises(ConfigurationError, match="not versioned"):
        table.suppress(Suppressed.until_time_limit(DAY, BufferConfig.unbounded()))


def test_the_fingerprint_knows_every_operator_parameter() -> None:
    def fingerprint(interval: timedelta, path: str = "id") -> str:
        builder = StreamsBuilder("app")
        builder.stream("sales").deduplicate_by_key_value(path, interval).to("out")
        return builder.build().fingerprint

    assert fingerprint(DAY) == fingerprint(DAY)
    assert len({fingerprint(DAY), fingerprint(2 * DAY), fingerprint(DAY, "other")}) == 3


def test_aggregations_are_nodes_of_the_dsl() -> None:
    builder = StreamsBuilder("app")
    windows = builder.stream("sales").group_by("customer").windowed_by(TimeWindows.of_size_with_no_grace(DAY))
    windows.aggregate({"sales": count()}).to_stream().to("out")
    described = statelib.describe(builder.build())
    assert "KSTREAM-AGGREGATE" in described
    assert "Sub-topology: 1" in described


def test_sessions_are_grouped_merged_and_suppressed() -> None:
    builder = StreamsBuilder("app")
    grouped = builder.stream("clicks").group_by_key()
    sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap_and_grace(timedelta(minutes=30), DAY))
    sessions.count(Materialized.as_("visits").with_retention(timedelta(days=3)), Named.as_("counting")).suppress(
        Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final")
    ).to_stream().to("visits-per-user")
    sessions.aggregate({"clicks": count()}).suppress(
        Suppressed.until_time_limit(DAY, BufferConfig.unbounded())
    ).suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("clicks-per-visit")
    sessions.reduce(max).to_stream().to("largest")
    sessions.aggregate_with(int, lambda _, value, sum_: sum_ + value, lambda _, one, other: one + other, pa.int64())
    (sub,) = builder.build().sub_topologies
    aggregates = [node for node in sub.processors if isinstance(node.spec, SessionAggregate)]
    assert aggregates[0].stores == ("visits",)
    assert [node.spec.retention_ms for node in aggregates] == [3 * 86_400_000, None, None, None]
    assert [node.spec.needs_prior for node in aggregates] == [True, True, False, False]
    suppressions = [node.spec for node in sub.processors if isinstance(node.spec, Suppress)]
    closed_ms = 86_400_000 + 1_800_000
    assert [spec.wait_ms("kip") for spec in suppressions] == [closed_ms + 1, 86_400_000, closed_ms + 1]
    assert [spec.wait_ms("kafka-4.3") for spec in suppressions] == [closed_ms, 86_400_000, closed_ms]


def test_sliding_windows_are_aggregated_and_suppressed() -> None:
    builder = StreamsBuilder("app")
    windows = SlidingWindows.of_time_difference_and_grace(timedelta(minutes=5), timedelta(minutes=1))
    sliding = builder.stream("clicks").group_by_key().windowed_by(windows)
    sliding.count(Materialized.as_("clicks").with_retention(timedelta(hours=1)), Named.as_("counting")).suppress(
        Suppressed.until_window_closes(BufferConfig.unbounded())
    ).to_stream().to("final")
    sliding.reduce(max).to_stream().to("largest")
    sliding.aggregate_with(int, lambda _, value, sum_: sum_ + value, pa.int64()).to_stream().to("sums")
    (sub,) = builder.build().sub_topologies
    aggregates = [node.spec for node in sub.processors if isinstance(node.spec, SlidingAggregate)]
    assert aggregates[0].store == "clicks"
    assert [spec.retention_ms for spec in aggregates] == [3_600_000, None, None]
    assert [spec.needs_prior for spec in aggregates] == [True, False, False]
    (suppression,) = [node.spec for node in sub.processors if isinstance(node.spec, Suppress)]
    assert (suppression.wait_ms("kip"), suppression.wait_ms("kafka-4.3")) == (60_001, 60_000)


def test_a_window_without_end_has_no_final_result() -> None:
    builder = StreamsBuilder("app")
    table = builder.stream("clicks").group_by_key().windowed_by(UnlimitedWindows.of()).count()
    table.suppress(Suppressed.until_time_limit(DAY, BufferConfig.unbounded())).to_stream().to("daily")
    with pytest.raises(ConfigurationError, match=r"never closes.*until_time_limit"):
        table.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))


def test_the_fingerprint_knows_gap_grace_and_merger() -> None:
    def fingerprint(gap: int, grace: int, factor: int) -> str:
        builder = StreamsBuilder("app")
        windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=gap), timedelta(seconds=grace))
        grouped = builder.stream("clicks").group_by_key().windowed_by(windows)
        if factor == 1:
            merged = grouped.aggregate_with(
                int, lambda _, value, sum_: sum_ + value, lambda _, one, two: one, pa.int64()
            )
        else:
            merged = grouped.aggregate_with(
                int, lambda _, value, sum_: sum_ + value, lambda _, one, two: two, pa.int64()
            )
        merged.to_stream().to("out")
        return builder.build().fingerprint

    assert fingerprint(1, 2, 1) == fingerprint(1, 2, 1)
    assert len({fingerprint(1, 2, 1), fingerprint(2, 2, 1), fingerprint(1, 1, 1), fingerprint(1, 2, 2)}) == 4


JSON = JsonSerde(pa.struct([("x", pa.int64())]))


def test_a_source_has_the_name_that_it_is_given() -> None:
    builder = StreamsBuilder("app")
    builder.stream("sales", Consumed.as_("sold").with_value_serde(JSON)).to("out")
    (source,) = builder.build().sub_topologies[0].all_sources
    assert (source.name, source.consumed) == ("sold", Consumed(value_serde=JSON, name="sold"))
    assert Consumed.with_().with_name("n").with_key_serde(JSON).key_serde is not None


def test_every_window_has_a_grace_period_but_the_one_without_end() -> None:
    for windows in (
        TimeWindows.of_size_with_no_grace(DAY),
        SessionWindows.of_inactivity_gap_with_no_grace(DAY),
        SlidingWindows.of_time_difference_with_no_grace(DAY),
        JoinWindows.of_time_difference_with_no_grace(DAY),
    ):
        assert (windows.grace_period_ms, windows.grace(DAY).grace_period_ms) == (0, 86_400_000)
    with pytest.raises(ConfigurationError, match="no end, and so no grace period"):
        UnlimitedWindows.of().grace(DAY)


def test_each_function_of_sql_has_a_method_of_windowed_streams() -> None:
    builder = StreamsBuilder("app")
    windowed = builder.stream("sales").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(DAY))
    tables = [windowed.sum("x"), windowed.min("x"), windowed.max("x"), windowed.mean("x")]
    for number, table in enumerate(tables):
        table.to_stream().to(f"out-{number}")
    specs = [p.spec for sub in builder.build().sub_topologies for p in sub.processors]
    described = [spec.describe()["aggregator"] for spec in specs if isinstance(spec, WindowAggregate)]
    assert [aggregator["aggregations"][0][1]["function"] for aggregator in described] == ["sum", "min", "max", "mean"]
