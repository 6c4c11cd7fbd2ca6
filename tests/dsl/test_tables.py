"""Tables in the DSL: which of them have stores, and which say what they replace, as Kafka Streams decides it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import statelib
from statelib import (
    BufferConfig,
    BuiltInDslStoreSuppliers,
    ConfigurationError,
    Joined,
    Materialized,
    Named,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StringSerde,
    Suppressed,
    TimeWindows,
    count,
    mean_,
)
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.joins.stream_table.latest import StreamLatestJoin
from statelib.operators.joins.stream_table.operator import StreamTableJoin
from statelib.operators.tables.derived import DerivedTable
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.writer import PlainStore, VersionedStore

DAY = timedelta(days=1)
DAY_MS = 86_400_000
LIMIT = Suppressed.until_time_limit(DAY, BufferConfig.unbounded())
PLAIN = Materialized.as_("rates")
VERSIONED = Materialized.as_(Stores.persistent_versioned_key_value_store("rates", DAY))


def specs(builder: StreamsBuilder, kind: type) -> list[Any]:
    return [p.spec for sub in builder.build().sub_topologies for p in sub.processors if isinstance(p.spec, kind)]


def test_a_topic_is_a_table_without_a_store_until_something_looks_into_it() -> None:
    builder = StreamsBuilder("app")
    rates = builder.table("rates")
    rates.to_stream().to("out")
    (source,) = specs(builder, PlainTableSource)
    assert (source.materialized, source.state_stores()) == (False, ())
    assert not builder.build().sub_topologies[0].stateful
    builder.stream("sales").left_join(rates, "right", Joined.as_("join")).to("joined")
    (source,) = specs(builder, PlainTableSource)
    assert source.materialized
    (sub,) = builder.build().sub_topologies
    assert [node.stores for node in sub.processors if node.stores] == [("rates-STATE-STORE-0000000000",)] * 2
    assert sub.sources == ("rates", "sales")


def test_a_table_knows_the_name_of_its_store() -> None:
    builder = StreamsBuilder("app")
    rates, plain = builder.table("rates", PLAIN), builder.table("plain")
    windows = builder.stream("s").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(DAY))
    counts = windows.count(Materialized.as_("counts"))
    names = [table.queryable_store_name for table in (rates, rates.filter("x"), rates.suppress(LIMIT), plain, counts)]
    assert names == ["rates", None, None, None, "counts"]
    assert counts.filter("x").queryable_store_name is None
    assert rates.join(plain, {"l": "left"}, Materialized.as_("joined")).queryable_store_name == "joined"
    assert plain.queryable_store_name == "plain-STATE-STORE-0000000002", "for the join"


@pytest.mark.parametrize("supplier", [Stores.persistent_key_value_store, Stores.in_memory_key_value_store])
def test_a_named_store_is_there_from_the_beginning(supplier: Any) -> None:
    builder = StreamsBuilder("app")
    builder.table("rates", Materialized.as_(supplier("rates")))
    builder.stream("sales").select_key("customer").to_table(Named.as_("customers"), Materialized.as_("by-customer"))
    assert [spec.store for spec in specs(builder, PlainTableSource)] == ["rates", "by-customer"]
    assert len(builder.build().sub_topologies) == 3
    with pytest.raises(ConfigurationError, match=r"two stores have one name.*rates"):
        builder.table("more", Materialized.as_(supplier("rates")))


PLACES = (BuiltInDslStoreSuppliers.ROCKS_DB, BuiltInDslStoreSuppliers.IN_MEMORY)


@pytest.mark.parametrize("place", PLACES)
def test_where_a_live_application_has_its_stores_changes_nothing(place: BuiltInDslStoreSuppliers) -> None:
    assert (Materialized.StoreType.ROCKS_DB, Materialized.StoreType.IN_MEMORY) == PLACES
    assert Materialized.as_(place) == Materialized()
    assert PLAIN.with_store_type(place) == PLAIN
    assert StreamJoined.with_(place) == StreamJoined() == StreamJoined.with_(StringSerde(), StringSerde())
    assert StreamJoined.as_("s").with_dsl_store_suppliers(place) == StreamJoined.as_("s")


def test_there_are_no_stores_of_users() -> None:
    class Own:
        """Somebody's own ``BuiltInDslStoreSuppliers``."""

    refusals: list[Any] = [PLAIN.with_store_type, StreamJoined().with_dsl_store_suppliers]
    for method in refusals:
        with pytest.raises(ConfigurationError, match="no stores of your own"):
            method(Own())


def test_a_filter_knows_old_values_where_they_cost_nothing() -> None:
    """KTableFilter: of tables that have a store anyway, and of aggregations; behind a versioned one it has no use."""
    for materialized, knows in ((None, False), (PLAIN, True), (VERSIONED, False)):
        builder = StreamsBuilder("app")
        builder.table("rates", materialized).filter("ok").to_stream().to("out")
        assert [spec.needs_prior for spec in specs(builder, DerivedTable)] == [knows]
    builder = StreamsBuilder("app")
    counts = builder.stream("sales").group_by_key().count()
    counts.map_values("value").filter_not("ok").to_stream().to("out")
    windowed = builder.stream("sales").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(DAY)).count()
    windowed.filter("ok").map_values("value").transform_values("value").filter_not("ok").to_stream().to("daily")
    assert all(spec.needs_prior for spec in specs(builder, DerivedTable))
    assert [spec.needs_prior for spec in specs(builder, KeyAggregate)] == [True]


def test_what_is_asked_for_later_does_not_change_a_filter_beside_it() -> None:
    builder = StreamsBuilder("app")
    rates = builder.table("rates")
    rates.filter("ok").to_stream().to("all-deletions")
    rates.filter("ok").suppress(LIMIT).to_stream().to("deletions-of-something")
    assert [spec.leaves_out_empty for spec in specs(builder, DerivedTable)] == [False, True]
    assert [(spec.materialized, spec.needs_prior) for spec in specs(builder, PlainTableSource)] == [(True, True)]


def test_tables_made_of_versioned_ones_are_versioned_unless_they_have_a_plain_store() -> None:
    builder = StreamsBuilder("app")
    rates = builder.table("rates", VERSIONED)
    good = rates.filter("ok").map_values("value.rate", Named.as_("good"))
    assert (rates.versioned, good.versioned) == (True, True)
    plain = good.filter("ok", materialized=Materialized.as_("plain"))
    assert (plain.versioned, plain.store) == (False, PlainStore("plain"))
    kept = good.map_values(
        "value", materialized=Materialized.as_(Stores.persistent_versioned_key_value_store("kept", 2 * DAY))
    )
    assert (kept.versioned, kept.store) == (True, VersionedStore("kept", 2 * DAY_MS))
    with pytest.raises(ConfigurationError, match="not versioned"):
        good.suppress(LIMIT)
    plain.suppress(LIMIT).to_stream().to("out")
    assert [spec.versioned_parent for spec in specs(builder, DerivedTable)] == [True, True, True, True]
    assert not any(spec.leaves_out_empty for spec in specs(builder, DerivedTable))


def test_a_join_looks_into_the_nearest_store_above() -> None:
    builder = StreamsBuilder("app")
    sales = builder.stream("sales")
    rates = builder.table("rates", VERSIONED).filter("ok").map_values("value.rate")
    sales.join(rates, "right", Joined.as_("join").with_grace_period(timedelta(hours=1))).to("one")
    totals = sales.group_by_key().mean("value.amount", Materialized.as_("means")).filter("ok")
    sales.left_join(totals, "right").to("two")
    stored = totals.map_values("value", materialized=Materialized.as_("stored"))
    sales.left_join(stored, "right").to("three")
    (versioned,) = specs(builder, StreamTableJoin)
    assert (versioned.store, len(versioned.steps)) == ("rates", 2)
    two, three = specs(builder, StreamLatestJoin)
    assert (two.view.store.name, len(two.view.steps), two.view.aggregator is None) == ("means", 1, False)
    assert (three.view.store.name, three.view.steps, three.view.aggregator) == ("stored", (), None)


def test_aggregations_over_plain_and_versioned_stores() -> None:
    builder = StreamsBuilder("app")
    grouped = builder.stream("sales").group_by_key()
    tables = [
        grouped.count(VERSIONED, Named.as_("counting")), grouped.sum("amount"), grouped.min("amount"),
        grouped.max("amount"), grouped.mean("amount"), grouped.aggregate({"n": count(), "mean": mean_("amount")}),
        grouped.reduce(max), grouped.aggregate_with(int, lambda key, value, sum_: sum_ + value, pa.int64()),
    ]  # fmt: skip
    assert [table.versioned for table in tables] == [True] + [False] * 7
    aggregates = specs(builder, KeyAggregate)
    assert aggregates[0].store == VersionedStore("rates", DAY_MS)
    assert "Processor: counting (stores: [rates])" in statelib.describe(builder.build())
    assert len({aggregate.store.name for aggregate in aggregates}) == 8


def test_what_cannot_be_is_refused() -> None:
    builder = StreamsBuilder("app")
    rates = builder.table("rates", PLAIN)
    with pytest.raises(ConfigurationError, match="needs a windowed table"):
        rates.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    with pytest.raises(ConfigurationError, match="must be versioned"):
        builder.stream("sales").join(rates, "right", Joined.as_("late").with_grace_period(DAY))


def test_a_versioned_source_says_what_is_the_latest_only_if_asked() -> None:
    builder = StreamsBuilder("app")
    rates = builder.table("rates", VERSIONED)
    rates.map_values("value").to_stream().to("out")
    assert [spec.needs_prior for spec in specs(builder, TableSource)] == [False]
    rates.filter("ok").to_stream().to("more")
    assert [spec.needs_prior for spec in specs(builder, TableSource)] == [False]
