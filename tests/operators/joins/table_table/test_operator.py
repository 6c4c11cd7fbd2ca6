"""Joins of two tables against the model of one change at a time, in every cut of the input."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, Materialized, Named, Stores, StreamsBuilder, TopologyTestDriver
from statelib.operators.mappers.mapping import mapper
from tests.operators.flow import Fed, Flow
from tests.operators.tables.examples import CUTS, HOW, changes_of, updates
from tests.reference.table import Change, HistoryTable, PlainTable, filtered
from tests.reference.table_join import Kind, Table, TableJoin, latest, value_of

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import KTable
    from statelib.settings.semantics import Semantics
    from tests.operators.task import Record

TOPICS = ("left", "right")
TYPES = dict.fromkeys((*TOPICS, "stream"), (pa.string(), pa.int64()))
BOTH = mapper({"l": "left", "r": "right"})
EVEN = mapper(lambda columns: pc.equal(pc.bit_wise_and(columns["value"], 1), 0))
RECORDS = updates(parents=(0, 1))
RETENTION = st.sampled_from([None, None, 0, 10, 100])
"""None: a plain table."""


def even(value: int) -> bool:
    return value % 2 == 0


def fed(records: list[Record]) -> list[Fed]:
    return [Fed((*TOPICS, "stream")[r.parent or 0], r.key, r.value, r.timestamp) for r in records]


def materialized(name: str, retention_ms: int | None) -> Materialized:
    if retention_ms is None:
        return Materialized.as_(name)
    return Materialized.as_(Stores.persistent_versioned_key_value_store(name, timedelta(milliseconds=retention_ms)))


@dataclass(frozen=True)
class Case:
    """A join of two tables; the left one may be filtered, the result kept."""

    kind: Kind
    left: int | None = None
    right: int | None = None
    filtered: bool = False
    kept: str = "nowhere"  # or plain, or versioned
    asked: bool = True

    def build(self, builder: StreamsBuilder) -> KTable:
        left = builder.table("left", None if self.left is None else materialized("l", self.left))
        right = builder.table("right", None if self.right is None else materialized("r", self.right))
        if self.filtered:
            left = left.filter(EVEN)
        join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[self.kind]
        where = {"nowhere": None, "plain": materialized("j", None), "versioned": materialized("j", 5)}[self.kept]
        return join(right, BOTH, Named.as_("join"), where)

    def flow(self, semantics: Semantics = "kip") -> Flow:
        builder = StreamsBuilder("app")
        table = self.build(builder)
        if self.asked:
            builder._builder.request_prior_values(table.node)  # what a suppression or an aggregation does
        table.to_stream().to("out")
        return Flow(builder.build(), TYPES, semantics, watched="join")

    def model(self, records: list[Record], semantics: Semantics = "kip") -> list[Change]:
        tables: list[Table] = [
            PlainTable() if retention is None else HistoryTable(retention) for retention in (self.left, self.right)
        ]
        join, kept = TableJoin(self.kind), HistoryTable(5)
        out = []
        for record in records:
            side = record.parent or 0
            for change in tables[side].put(record.key, record.value, record.timestamp):
                for own in self._filtered(change) if self.filtered and side == 0 else [change]:
                    value, since = latest(tables[1 - side], record.key)
                    if self.filtered and side == 1 and value is not None and not even(value):
                        value, since = None, -1
                    out += join.change(own, (value, since), is_left=side == 0)
        if self.kept == "versioned":
            results = [(c, kept.put(c.key, c.new, c.timestamp)) for c in out]
            out = [p._replace(old=p.old if semantics == "kip" else c.old) for c, put in results for p in put]
        return out if self.asked else [change._replace(old=None) for change in out]

    def _filtered(self, change: Change) -> list[Change]:
        knows_old = self.asked or self.kind != "inner" or self.left is not None
        return filtered(change, even, knows_old=knows_old, versioned=self.left is not None)


def shown(change: Change) -> Change:
    new, old = (None if pair is None else {"l": pair[0], "r": pair[1]} for pair in (change.new, change.old))
    return change._replace(new=new, old=old)


CASES = st.builds(
    Case, st.sampled_from(["inner", "left", "outer"]), RETENTION, RETENTION, st.booleans(),
    st.sampled_from(["nowhere", "nowhere", "plain", "versioned"]), st.booleans(),
)  # fmt: skip


@given(CASES, RECORDS, CUTS, HOW, st.sampled_from(["kip", "kafka-4.3"]))
def test_the_models_changes_in_every_cut(
    case: Case, records: list[Record], cuts: list[int], flush_every: int, semantics: Semantics
) -> None:
    """Over plain and versioned tables; what late updates do to a versioned store as shipped is in the golden traces."""
    if case.left is not None or case.right is not None:
        semantics = "kip"
    run = case.flow(semantics)
    out = run.run(fed(records), cuts, flush_every=flush_every)
    expected = [shown(change) for change in case.model(records, semantics)]
    changes = changes_of(run.seen)
    if not case.asked or case.kept != "versioned":  # whether they are the latest is only said if somebody asks
        changes, expected = ([c._replace(is_latest=True) for c in of] for of in (changes, expected))
    assert changes == expected
    assert [(r.key, r.value, r.timestamp) for r in out.get("out", [])] == [
        (c.key, c.new, c.timestamp) for c in expected
    ]


@given(CASES, RECORDS, CUTS, CUTS, HOW)
def test_the_same_bytes_in_every_cut(
    case: Case, records: list[Record], one: list[int], other: list[int], flush_every: int
) -> None:
    runs = [case.flow(), case.flow()]
    runs[0].run(fed(records), one)
    runs[1].run(fed(records), other, flush_every=flush_every)
    assert runs[0].content() == runs[1].content()
    assert {name: of.accounts for name, of in runs[0].by_node.items()} == {
        name: of.accounts for name, of in runs[1].by_node.items()
    }


KINDS = st.sampled_from(["inner", "left", "outer"])


@given(KINDS, st.booleans(), RETENTION, updates(parents=(0, 1, 2, 2)), CUTS, HOW)
def test_a_stream_looks_into_both_tables_of_a_join_without_a_store(
    kind: Kind, mapped: bool, retention_ms: int | None, records: list[Record], cuts: list[int], flush_every: int
) -> None:
    builder = StreamsBuilder("app")
    joined = Case(kind, retention_ms).build(builder)
    table = joined.map_values("value.l") if mapped else joined
    builder.stream("stream").left_join(table, {"found": "right"}).to("out")
    tables: list[Table] = [PlainTable() if retention_ms is None else HistoryTable(retention_ms), PlainTable()]
    expected = []
    for record in records:
        if record.parent != 2:
            tables[record.parent or 0].put(record.key, record.value, record.timestamp)
        elif record.value is not None:
            left, right = (table.get(record.key) for table in tables)
            pair = value_of(left, right, kind)
            found = pair and (pair[0] if mapped else {"l": pair[0], "r": pair[1]})
            expected.append((record.key, {"found": found}, record.timestamp))
    out = Flow(builder.build(), TYPES).run(fed(records), cuts, flush_every=flush_every)
    assert [(row.key, row.value, row.timestamp) for row in out.get("out", [])] == expected


@given(KINDS, KINDS, RETENTION, updates(parents=(0, 1, 2)), CUTS, HOW)
def test_a_join_of_a_join_without_a_store(
    first: Kind, second: Kind, retention_ms: int | None, records: list[Record], cuts: list[int], flush_every: int
) -> None:
    builder = StreamsBuilder("app")
    third, joined = builder.table("stream"), Case(first, retention_ms).build(builder)
    join = {"inner": third.join, "left": third.left_join, "outer": third.outer_join}[second]
    join(joined, {"t": "left", "j": "right"}).to_stream().to("out")
    tables: list[Table] = [PlainTable() if retention_ms is None else HistoryTable(retention_ms), PlainTable()]
    above, below, of_third = TableJoin(first), TableJoin(second), PlainTable()
    expected = []
    for record in records:
        side = record.parent or 0
        if side == 2:
            (left, since), (right, since_right) = (latest(table, record.key) for table in tables)
            found = value_of(left, right, first)
            other = (found, max(since, since_right) if found else -1)
            for change in of_third.put(record.key, record.value, record.timestamp):
                expected += below.change(change, other, is_left=True)
            continue
        for change in tables[side].put(record.key, record.value, record.timestamp):
            for joined_change in above.change(change, latest(tables[1 - side], record.key), is_left=side == 0):
                expected += below.change(joined_change, latest(of_third, record.key), is_left=False)
    out = Flow(builder.build(), TYPES).run(fed(records), cuts, flush_every=flush_every)
    assert [(row.key, row.value, row.timestamp) for row in out.get("out", [])] == [
        (c.key, c.new and {"t": c.new[0], "j": c.new[1] and {"l": c.new[1][0], "r": c.new[1][1]}}, c.timestamp)
        for c in expected
    ]


def out_of(builder: StreamsBuilder, *given: tuple[str, str | None, Any, int]) -> list[tuple[Any, Any, int]]:
    flow = Flow(builder.build(), TYPES)
    at_once = flow.run([Fed(*record) for record in given]).get("out", [])
    one_by_one = Flow(builder.build(), TYPES).run([Fed(*r) for r in given], range(len(given)), flush_every=1)
    assert at_once == one_by_one.get("out", [])
    return [(row.key, row.value, row.timestamp) for row in at_once]


def test_a_table_joined_with_itself() -> None:
    """Both sides have the update when either is told; so the shipped library gives every result twice."""
    builder = StreamsBuilder("app")
    table = builder.table("left")
    table.join(table, BOTH).to_stream().to("out")
    assert out_of(builder, ("left", "a", 1, 5), ("left", "a", 2, 4)) == [
        ("a", {"l": 1, "r": 1}, 5), ("a", {"l": 1, "r": 1}, 5), ("a", {"l": 2, "r": 2}, 4), ("a", {"l": 2, "r": 2}, 4),
    ]  # fmt: skip


def test_tables_of_one_cause_are_told_in_the_order_in_which_records_pass() -> None:
    """Depth first: what was declared first has its turn, and does not see yet what comes after it."""
    builder = StreamsBuilder("app")
    stream = builder.stream("stream")
    one, other = (
        stream.map_values("value").to_table(),
        stream.map_values(lambda c: pc.multiply(c["value"], 10)).to_table(),
    )
    one.left_join(other, BOTH).to_stream().to("out")
    assert out_of(builder, ("stream", "a", 1, 5), ("stream", "a", 2, 5)) == [
        ("a", {"l": 1, "r": None}, 5), ("a", {"l": 1, "r": 10}, 5), ("a", {"l": 2, "r": 10}, 5),
        ("a", {"l": 2, "r": 20}, 5),
    ]  # fmt: skip


def test_a_filtered_table_joined_with_what_it_is_made_of() -> None:
    """The filter was there before the join: its side is told first."""
    builder = StreamsBuilder("app")
    table = builder.table("left")
    table.left_join(table.filter(EVEN).map_values("value"), BOTH).to_stream().to("out")
    spec = [p.spec for p in builder.build().sub_topologies[0].processors if p.name.startswith("KTABLE-MERGE")]
    assert len(spec) == 1
    assert out_of(builder, ("left", "a", 2, 5), ("left", "a", 3, 6)) == [
        ("a", {"l": 2, "r": 2}, 5), ("a", {"l": 2, "r": 2}, 5), ("a", {"l": 3, "r": None}, 6),
        ("a", {"l": 3, "r": None}, 6),
    ]  # fmt: skip


def test_accounts() -> None:
    flow = Case("inner", 10).flow()
    flow.run(
        [
            Fed("left", "a", 1, 50), Fed("right", "a", 1, 50), Fed("left", "a", 2, 45), Fed("left", "a", 2, 1),
            Fed("right", "b", 1, 1), Fed("right", None, 1, 1),
        ]
    )  # fmt: skip
    accounts = {name: of.accounts for name, of in flow.by_node.items()}
    assert accounts["join-join-this"] == {"unmatched": 1, "out-of-order": 1}
    assert accounts["join-join-other"] == {"joined": 1, "unmatched": 1}
    assert accounts["join"] == {"forwarded": 1}
    assert flow.dropped() == 3  # late, refused, without a key


def test_the_nodes_and_stores_are_those_of_kafka() -> None:
    builder = StreamsBuilder("app")
    left, right = builder.table("left"), builder.table("right")
    left.join(right, BOTH).to_stream().to("out")
    left.outer_join(right, BOTH, Named.as_("outer"), Materialized.as_("kept"))
    described = builder.build().describe()
    for line in (
        "Processor: KTABLE-JOINTHIS-0000000007 (stores: [right-STATE-STORE-0000000003])\n",
        "      --> KTABLE-MERGE-0000000006\n      <-- KTABLE-SOURCE-0000000002\n",
        "Processor: KTABLE-JOINOTHER-0000000008 (stores: [left-STATE-STORE-0000000000])\n",
        "      --> KTABLE-MERGE-0000000006\n      <-- KTABLE-SOURCE-0000000005\n",
        "Processor: outer-join-this (stores: [right-STATE-STORE-0000000003])\n      --> outer\n",
        "Processor: outer (stores: [kept])\n      --> none\n      <-- outer-join-this, outer-join-other\n",
    ):
        assert line in described


def test_tables_of_different_partitions_are_refused(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    builder.table("left").join(builder.table("right"), BOTH).to_stream().to("out")
    topology = builder.build()
    assert topology.partitions({"left": 2, "right": 2}) == {0: 2}
    with pytest.raises(ConfigurationError, match="differ in their number of partitions"):
        topology.partitions({"left": 2, "right": 3})


def test_what_is_joined_can_be_joined_on() -> None:
    builder = StreamsBuilder("app")
    left, right = builder.table("left"), builder.table("right")
    joined = left.join(right, BOTH).join(left.map_values("value"), {"j": "left", "again": "right"})
    joined.outer_join(right, {"all": "left.j.l", "r": "right"}).to_stream().to("out")
    out = out_of(builder, ("left", "a", 1, 5), ("right", "a", 2, 6))
    assert out[-1] == ("a", {"all": 1, "r": 2}, 6)


def test_the_working_set_is_forgotten() -> None:
    flow = Case("outer").flow()
    flow.process([Fed("left", "a", 1, 1), Fed("right", "b", 1, 1)])
    assert flow.graphs[0].memory_bytes() > 0
    flow.flush()
    assert all(operator.memory_bytes() == 0 for operator in flow.graphs[0].operators.values())


def test_a_job(tmp_path: Path) -> None:
    """With real archives: slice by slice."""
    driver = TopologyTestDriver(_job(), tmp_path)
    left, right = (driver.create_input_topic(topic, value_type=pa.int64()) for topic in TOPICS)
    left.pipe_input("a", 1, 1_000)
    right.pipe_input("a", 2, 2_000)
    driver.replay()
    right.pipe_input("a", None, 3_000)
    left.pipe_input("b", 4, 3_500)
    records = driver.create_output_topic("out").read_records_to_list()
    assert [(record.key, record.value, record.timestamp_ms) for record in records] == [
        ("a", {"l": 1, "r": None}, 1_000), ("a", {"l": 1, "r": 2}, 2_000), ("a", {"l": 1, "r": None}, 3_000),
        ("b", {"l": 4, "r": None}, 3_500),
    ]  # fmt: skip


def _job() -> Any:
    builder = StreamsBuilder("app")
    builder.table("left").left_join(builder.table("right"), BOTH).to_stream().to("out")
    return builder.build()
