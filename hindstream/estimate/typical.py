"""Records and jobs that go through all kinds of operators, to measure a machine with.

``clicks``, keyed by campaign, come a little out of order, and some twice; ``rates`` has a row of each campaign now and
then. All is drawn with one seed, so two machines do the same.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib import (
    BufferConfig,
    FixedKeyProcessor,
    FixedKeyRecord,
    Job,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    ValueTransformerWithKey,
    count,
    expect,
    max_,
    per_record,
    sum_,
)
from statelib.commits import topic_path
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.storage import Storage

CLICKS, RATES = "clicks", "rates"
_SEED = 7
START_MS = 1_700_000_000_000
TICK_MS = 1_000
RECORDS = 200_000
"""Of clicks, to measure operators with."""

_CAMPAIGNS = 5_000
_RECORDS_A_SECOND = 200
_CURRENCIES = ("EUR", "USD", "GBP", "JPY", "CHF")
_ID_BYTES = 8
_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
_UNBOUNDED = BufferConfig.unbounded()
_ALL = {name: name for name in ("id", "amount", "currency")}


def archive_typical(warehouse: Storage, records: int, rates: int) -> None:
    """Archives so many clicks and rates, in one partition each."""
    _archive(warehouse, CLICKS, clicks(records))
    _archive(warehouse, RATES, _rates(rates, records))


def archive_ticks(warehouse: Storage, topic: str, ticks: int) -> None:
    """Archives records that are a second apart, for slices of one each."""
    columns: dict[str, pa.Array] = {"n": pa.array(range(ticks + 1), pa.int64())}
    _archive(warehouse, topic, _table(pa.array(["tick"] * (ticks + 1)), columns, np.arange(ticks + 1) * TICK_MS))


def archive_columns(warehouse: Storage, topic: str, records: int, *, numbers: int, texts: int) -> None:
    """Archives a topic whose values have so many columns: random numbers, and random texts of 16 letters."""
    chance = np.random.default_rng(_SEED)
    columns: dict[str, pa.Array] = {
        f"n{n}": pa.array(chance.integers(0, 1 << 40, records), pa.int64()) for n in range(numbers)
    }
    columns |= {f"t{n}": _ids(chance, records) for n in range(texts)}
    _archive(warehouse, topic, _table(_campaigns(chance, records), columns, np.arange(records)))


def clicks(records: int) -> pa.Table:
    """Clicks in the order of their arrival: columns ``key``, ``value``, ``timestamp``."""
    chance = np.random.default_rng(_SEED)
    ids = _ids(chance, records)
    again = chance.integers(0, records, records // 50)  # two of a hundred come twice
    ids = ids.take(pa.array(np.where(chance.random(records) < 0.02, chance.choice(again, records), np.arange(records))))  # noqa: PLR2004
    late_ms = chance.exponential(20_000, records).astype(np.int64)
    columns = {
        "id": ids,
        "amount": pa.array(chance.integers(1, 1_000, records), pa.int64()),
        "currency": pa.array(_CURRENCIES).take(pa.array(chance.integers(0, len(_CURRENCIES), records))),
    }
    times = np.arange(records) * 1_000 // _RECORDS_A_SECOND - late_ms
    return _table(_campaigns(chance, records), columns, np.maximum(times, 0))


def passing(topic: str) -> Job:
    """All columns of a topic, read and written."""
    builder = StreamsBuilder(f"passing-{topic}")
    builder.stream(topic).filter(pc.is_valid(pc.field("value"))).to(f"{topic}-again")
    return Job(f"passing-{topic}", builder.build())


def deduplicating() -> Job:
    """Each id once, for ever: all of them stay in the state."""
    builder = StreamsBuilder("deduplicating")
    builder.stream(CLICKS).deduplicate_by_key_value("id", timedelta(days=365)).map_values("amount").to("once")
    return Job("deduplicating", builder.build())


def checked(checks: int) -> Job:
    """Amounts, with so many expectations, all of which they meet."""
    builder = StreamsBuilder(f"checked-{checks}")
    builder.stream(CLICKS).map_values({"amount": "amount"}).to(f"checked-{checks}")
    asked = [
        expect("expect_column_values_to_be_between", column="value.amount", min_value=0, max_value=1_000 + n)
        for n in range(checks)
    ]
    return Job(f"checked-{checks}", builder.build(), expectations={f"checked-{checks}": tuple(asked)})


def of_streams() -> Job:
    """Operators over streams."""
    builder = StreamsBuilder("of-streams")
    stream, rates = builder.stream(CLICKS), builder.stream(RATES)
    much = pc.field("value", "amount") > 500  # noqa: PLR2004
    stream.filter(much).filter_not(pc.field("value", "currency") == "EUR").map_values(_ALL).to("filtered")
    stream.map("id", _ALL).to("mapped")
    stream.select_key("id").to("rekeyed")
    stream.peek(_look).foreach(_look)
    some, few = stream.split().branch(much).default_branch().values()
    some.merge(few).merge(rates.map_values({"id": "key", "amount": "rate", "currency": "key"})).to("merged")
    stream.map_values({"side": pc.if_else(much, "much", "little")}).to("side", topics=["much", "little"])
    stream.deduplicate_by_key(_SECOND).to("by-key")
    stream.deduplicate_by_key_value("id", 10 * _MINUTE).to("by-key-and-id")
    stream.deduplicate("id", 10 * _MINUTE).to("by-id")
    near = JoinWindows.of_time_difference_and_grace(2 * _SECOND, 20 * _SECOND)
    stream.left_join(rates, {"id": "left.id", "rate": "right.rate"}, near).to("met")
    stream.join(stream, {"id": "left.id", "amount": "right.amount"}, near).to("met-itself")
    return Job("of-streams", builder.build({"topology.optimization": "single.store.self.join"}))


def of_windows() -> Job:
    """Windows of all kinds."""
    builder = StreamsBuilder("of-windows")
    grouped = builder.stream(CLICKS).group_by_key()
    aggregates = {"clicks": count(), "amount": sum_("amount")}
    tumbling = grouped.windowed_by(TimeWindows.of_size_and_grace(_MINUTE, 10 * _MINUTE))
    tumbling.aggregate(aggregates).suppress(Suppressed.until_window_closes(_UNBOUNDED)).to_stream().to("final")
    tumbling.distinct().to("distinct")
    sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap_and_grace(5 * _SECOND, _MINUTE))
    sessions.aggregate(aggregates).to_stream().to("sessions")
    sliding = grouped.windowed_by(SlidingWindows.of_time_difference_and_grace(_SECOND / 10, _MINUTE))
    sliding.aggregate(aggregates).to_stream().to("sliding")
    return Job("of-windows", builder.build())


def of_tables() -> Job:
    """Tables, and what is joined with them."""
    builder = StreamsBuilder("of-tables")
    stream = builder.stream(CLICKS)
    versioned = Materialized.as_(Stores.persistent_versioned_key_value_store("rates", timedelta(hours=2)))
    rates = builder.table(RATES, versioned)
    latest = stream.group_by_key().aggregate({"amount": max_("amount")})
    cost = {"cost": pc.multiply(pc.field("left", "amount"), pc.field("right", "rate"))}
    stream.join(rates, cost, Joined.as_("at-the-time")).to("priced")
    stream.left_join(rates, cost, Joined.as_("later").with_grace_period(_SECOND)).to("priced-later")
    latest.to_stream().to("latest")
    clicked = stream.map_values({"amount": "amount", "of": "key"}).to_table()
    stream.join(latest, {"amount": "left.amount", "most": "right.amount"}, Joined.as_("newest")).to("with-newest")
    stream.left_join(latest, {"amount": "left.amount", "most": "right.amount"}, Joined.as_("newest-left")).to("beside")
    latest.join(clicked, {"amount": "left.amount", "of": "right.of"}).to_stream().to("two-tables")
    clicked.filter(pc.field("value", "amount") > 500).to_stream().to("filtered-table")  # noqa: PLR2004
    latest.group_by("value.amount", "value.amount").aggregate({"sum": sum_("value")}).to_stream().to("regrouped")
    copy = rates.to_stream().repartition().to_table()
    clicked.join(copy, {"amount": "left.amount", "rate": "right.rate"}, foreign_key="of").to_stream().to("referring")
    return Job("of-tables", builder.build())


def of_calls() -> Job:
    """Operators that call a Python function for each record."""
    builder = StreamsBuilder("of-calls")
    stream = builder.stream(CLICKS)
    pair = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())]))
    stream.map_values(per_record(lambda amount: amount + 1, pa.int64(), "amount")).to("called")
    stream.flat_map_values(per_record(lambda amount: [amount], pa.list_(pa.int64()), "amount")).to("unfolded")
    stream.flat_map(per_record(lambda key, amount: [(key, amount)], pair, "key", "amount")).to("paired")
    stream.process(_Pass, value_type=pa.int64()).to("processed")
    stream.process_values(_PassOfAKey, value_type=pa.int64()).to("processed-values")
    table = stream.to_table().transform_values_with(_AmountOfAKey, value_type=pa.int64())
    table.to_stream().to("transformed-values")
    return Job("of-calls", builder.build())


TYPICAL: tuple[Callable[[], Job], ...] = (of_streams, of_windows, of_tables)
"""The jobs whose operators are measured."""


class _Pass(Processor):
    """Forwards amounts."""

    def process(self, record: Record) -> None:
        """Forwards one."""
        self.context.forward(record.with_value(record.value["amount"]))


class _PassOfAKey(FixedKeyProcessor):
    """Forwards amounts."""

    def process(self, record: FixedKeyRecord) -> None:
        """Forwards one."""
        self.context.forward(record.with_value(record.value["amount"]))


class _AmountOfAKey(ValueTransformerWithKey):
    """Makes amounts of values."""

    def transform(self, read_only_key: object, value: dict[str, int] | None) -> int | None:  # noqa: ARG002
        """Makes one."""
        return None if value is None else value["amount"]


def _look(columns: pa.RecordBatch) -> None:
    """Looks, and does nothing."""


def _rates(rates: int, records: int) -> pa.Table:
    chance = np.random.default_rng(_SEED + 1)
    columns = {"rate": pa.array(chance.integers(1, 100, rates), pa.int64())}
    times = np.sort(chance.integers(0, max(records * 1_000 // _RECORDS_A_SECOND, 1), rates))
    return _table(_campaigns(chance, rates), columns, times)


def _campaigns(chance: np.random.Generator, records: int) -> pa.Array:
    """Keys, some far busier than others."""
    shares = 1 / np.arange(1, _CAMPAIGNS + 1) ** 1.1
    drawn = chance.choice(_CAMPAIGNS, records, p=shares / shares.sum())
    return pa.array([f"campaign-{n}" for n in range(_CAMPAIGNS)]).take(pa.array(drawn))


def _ids(chance: np.random.Generator, records: int) -> pa.Array:
    """Random texts of 16 hexadecimal digits."""
    digits = chance.bytes(records * _ID_BYTES).hex()
    return pa.array([digits[2 * _ID_BYTES * n : 2 * _ID_BYTES * (n + 1)] for n in range(records)])


def _table(key: pa.Array, columns: dict[str, pa.Array], times_ms: np.ndarray[Any, Any]) -> pa.Table:
    value = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    timestamp = pa.array(START_MS + times_ms, pa.int64()).cast(pa.timestamp("ms", "UTC"))
    return pa.table({"key": key, "value": value, "timestamp": timestamp})


def _archive(warehouse: Storage, topic: str, table: pa.Table) -> None:
    schema = topic_schema(table.schema.field("key").type, table.schema.field("value").type)
    archive = TopicArchive.create(warehouse.uri(topic_path(topic)), schema, 1, topic=topic)
    append_records(archive, table, attempt="typical", app_id="typical", app_version=1)
