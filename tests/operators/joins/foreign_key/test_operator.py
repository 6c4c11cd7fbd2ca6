"""Joins by a foreign key against the model of one change at a time, in every cut of the input, and over partitions."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, Materialized, Named, Stores, StreamsBuilder, Topology
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.joins.foreign_key.operator import ForeignKeyJoin
from statelib.operators.joins.foreign_key.resolve import ForeignKeyResolve
from statelib.operators.joins.foreign_key.subscribe import ForeignKeySubscribe
from statelib.operators.mappers.mapping import mapper, per_record
from statelib.operators.tables.view import JoinedValues, TableView
from statelib.operators.tables.writer import PlainStore
from statelib.stores.spec import families_of
from tests.operators.flow import Fed, Flow
from tests.operators.tables.examples import CUTS, HOW, NUMBERS, updates
from tests.operators.task import Record, Task
from tests.reference import foreign_key_join as reference
from tests.reference.table import HistoryTable, PlainTable
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.settings.semantics import Semantics

pytestmark = pytest.mark.thorough

ROW = pa.struct([("to", pa.string()), ("n", pa.int64())])
TYPES = {"left": (pa.string(), ROW), "right": (pa.string(), pa.int64())}
BOTH = mapper({"l": "left.n", "r": "right"})
ROWS = st.none() | st.fixed_dictionaries({"to": st.sampled_from(["x", "x", "y", "", None]), "n": NUMBERS})
RETENTION = st.sampled_from([None, None, 0, 10, 100])
"""None: a plain table."""


@st.composite
def both_sides(draw: st.DrawFn) -> list[Fed]:
    """Changes of both tables, in the order in which they come."""
    keys = st.sampled_from(["x", "x", "y", "", None])
    left = [Fed("left", r.key, r.value, r.timestamp) for r in draw(updates(ROWS))]
    right = [Fed("right", draw(keys), r.value, r.timestamp) for r in draw(updates())]
    order = draw(st.permutations([0] * len(left) + [1] * len(right)))
    sides = [iter(left), iter(right)]
    return [next(sides[side]) for side in order]


def stored(name: str, retention_ms: int | None) -> Materialized | None:
    if retention_ms is None:
        return None
    return Materialized.as_(Stores.persistent_versioned_key_value_store(name, timedelta(milliseconds=retention_ms)))


def topology(*, left: bool, left_ms: int | None = None, right_ms: int | None = None, even: bool = False) -> Topology:
    builder = StreamsBuilder("app")
    one, other = builder.table("left", stored("l", left_ms)), builder.table("right", stored("r", right_ms))
    if even:
        other = other.filter(lambda columns: pc.equal(pc.bit_wise_and(columns["value"], 1), 0))
    join = one.left_join if left else one.join
    join(other, BOTH, Named.as_("fk"), foreign_key="to").to_stream().to("out")
    return builder.build()


def model(fed: list[Fed], *, left: bool, left_ms: int | None, right_ms: int | None, even: bool) -> list[Any]:
    left_table, right_table = (
        PlainTable() if retention is None else HistoryTable(retention) for retention in (left_ms, right_ms)
    )
    join = reference.ForeignKeyJoin(left_table, right_table, lambda row: row["to"], left)
    out = []
    for record in fed:
        value = record.value
        if record.topic == "right" and even and value is not None and value % 2:
            value = None
        for change in (right_table if record.topic == "right" else left_table).put(record.key, value, record.timestamp):
            if record.topic == "left":
                out += join.change_of_left(change)
            elif not even or right_ms is not None or change != change._replace(new=None, old=None):
                out += join.change_of_right(change)  # a plain filter tells of nothing that was nothing before
    return [r._replace(value=r.value and {"l": r.value[0]["n"], "r": r.value[1]}) for r in out]


@given(
    both_sides(), CUTS, HOW, st.booleans(), RETENTION, RETENTION, st.booleans(), st.sampled_from(["kip", "kafka-4.3"])
)
def test_the_models_answer_in_every_cut(
    fed: list[Fed], cuts: list[int], flush_every: int, left: bool, left_ms: int | None, right_ms: int | None,
    even: bool, semantics: Semantics,
) -> None:  # fmt: skip
    if left_ms is not None or right_ms is not None:
        semantics = "kip"
    flow = Flow(topology(left=left, left_ms=left_ms, right_ms=right_ms, even=even), TYPES, semantics)
    rows = flow.run(fed, cuts, flush_every=flush_every).get("out", [])
    expected = model(fed, left=left, left_ms=left_ms, right_ms=right_ms, even=even)
    assert [(row.key, row.value, row.timestamp) for row in rows] == expected


@given(both_sides(), CUTS, CUTS, HOW, RETENTION)
def test_the_same_bytes_in_every_cut(
    fed: list[Fed], one: list[int], other: list[int], flush_every: int, left_ms: int | None
) -> None:
    runs = [Flow(topology(left=True, left_ms=left_ms), TYPES) for _ in range(2)]
    runs[0].run(fed, one)
    runs[1].run(fed, other, flush_every=flush_every)
    assert runs[0].content() == runs[1].content()
    accounts = [{name: of.accounts for name, of in run.by_node.items()} for run in runs]
    assert accounts[0] == accounts[1]


def row(to: str | None, n: int = 1) -> dict[str, Any]:
    return {"to": to, "n": n}


def test_accounts() -> None:
    flow = Flow(topology(left=False, left_ms=10, right_ms=10), TYPES)
    flow.run(
        [
            Fed("left", "a", row("x"), 50), Fed("left", "b", row(None), 50), Fed("left", "c", None, 50),
            Fed("left", "a", row("y"), 45), Fed("right", "x", 1, 50), Fed("right", "y", 1, 50),
            Fed("right", "x", 2, 45), Fed("left", "a", row(None), 51),
        ]
    )  # fmt: skip
    accounts = {name: of.accounts for name, of in flow.by_node.items() if name.startswith("fk")}
    assert accounts["fk-subscription-registration-processor"] == {
        "forwarded": 1, "filtered": 1, "null-foreign-key": 2, "out-of-order": 1,
    }  # fmt: skip
    assert accounts["fk-subscription-join-foreign"] == {"joined": 2, "unmatched": 2, "out-of-order": 1}
    assert accounts["fk-subscription-response-resolver"] == {"forwarded": 2}
    assert flow.dropped() == 4


def test_an_answer_that_was_overtaken_is_dropped() -> None:
    response = pa.struct([("value", pa.string()), ("number", pa.int64())])
    records = [
        Record(key, {"value": f"{key}{number}", "number": number}, 10, index)
        for index, (key, number) in enumerate([("a", 3), ("b", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 0), ("a", 1)])
    ]
    for cuts, flush_every in (([], 0), (range(7), 0), (range(7), 1), ([3, 5], 2)):
        task = Task(ForeignKeyResolve("numbers"), pa.string(), [response])
        values = [
            v for batch in task.run(records, list(cuts), flush_every=flush_every) for v in batch.value.to_pylist()
        ]
        assert values == ["a3", "b1", "a3", "a4"]
        assert task.metrics.accounts == {"forwarded": 4, "stale": 3}
        assert task.metrics.dropped == {"stale": 3}


PLACES = ("r0", "r10", "r11", "r12", "r4")
"""Keys in each of four partitions."""


def random_rows(seed: int, count: int) -> dict[str, list[tuple[Any, Any, int]]]:
    """Few keys, many equal times, late ones, rows that move from key to key."""
    random = np.random.default_rng(seed)
    rows: dict[str, list[tuple[Any, Any, int]]] = {"left": [], "right": []}
    for number in range(count):
        at = 10 * (number // 6) + int(random.choice([0, 0, -25]))
        if random.random() < 0.6:
            value = None if random.random() < 0.1 else row(str(random.choice(PLACES)), number)
            rows["left"].append((f"l{random.integers(0, 25)}", value, max(0, at)))
        else:
            value = None if random.random() < 0.15 else number
            rows["right"].append((str(random.choice(PLACES)), value, max(0, at)))
    return rows


@pytest.mark.thorough
@pytest.mark.parametrize("left", [False, True])
def test_over_partitions_and_slices(tmp_path: Path, left: bool) -> None:
    """The last result of each key is what both tables have in the end, however rows have moved between partitions."""
    rows = random_rows(3, 400)
    outputs = []
    for name, ends in (("one", [None]), ("three", [200, 450, None])):
        pipeline = Pipeline(tmp_path / name, topology(left=left), batch_records=7)
        pipeline.archive("left", rows["left"], TYPES["left"], partitions=3)
        pipeline.archive("right", rows["right"], TYPES["right"], partitions=4)
        for end in ends:
            pipeline.run(end)
        outputs.append(pipeline.output("out"))
    assert outputs[0] == outputs[1]
    assert {partition for partition, *_ in outputs[0]} == {0, 1, 2}, "as many partitions as the left table"
    final = {topic: {key: value for key, value, _ in rows[topic]} for topic in rows}
    # each partition of a topic keeps its order, so the last of a key is the last
    expected = {}
    for key, value in final["left"].items():
        other = None if value is None else final["right"].get(value["to"])
        there = value is not None and (left or other is not None)
        expected[key] = {"l": value["n"], "r": other} if value is not None and there else None
    result = dict.fromkeys(expected)
    result.update({key: value for _, _, key, value, _ in outputs[0]})
    assert result == expected


def test_answers_from_two_places_come_in_the_order_of_the_rows_changes(tmp_path: Path) -> None:
    """At one order time: the partition that is read first still tells of the key that the row refers to no more."""
    lasts, stale = [], 0
    for old, new in itertools.permutations(PLACES[:3], 2):
        pipeline = Pipeline(tmp_path / f"{old}-{new}", topology(left=True))
        pipeline.archive("left", [("a", row(old), 10), ("a", row(new), 20)], TYPES["left"], partitions=2)
        pipeline.archive("right", [(old, 1, 10), (new, 2, 10), (old, 3, 20)], TYPES["right"], partitions=4)
        for task in pipeline.run().tasks:
            resolver = task.metrics.get("fk-subscription-response-resolver", NodeMetrics())
            stale += resolver.accounts.get("stale", 0)
        lasts.append(pipeline.output("out")[-1][3])
    assert (lasts, stale) == ([{"l": 1, "r": 2}] * 6, 3)


def test_the_nodes_are_named_as_those_of_kafka() -> None:
    builder = StreamsBuilder("app")
    left, right = builder.table("left"), builder.table("right")
    left.join(right, BOTH, foreign_key="to").to_stream().to("one")
    left.left_join(right, BOTH, Named.as_("fk"), Materialized.as_("kept"), foreign_key="to")
    topology_ = builder.build()
    described = topology_.describe()
    for line in (
        "Processor: KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000007 (stores: [])\n",
        "Sink: KTABLE-SINK-0000000008 (topic: KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic)\n",
        "Processor: KTABLE-FK-JOIN-OUTPUT-00000000",
        "Processor: fk-subscription-registration-processor (stores: [])\n      --> fk-subscription-registration-sink\n",
        "Sink: fk-subscription-registration-sink (topic: fk-subscription-registration-topic)\n",
        "Processor: fk-subscription-receive (stores: [fk-subscription-store])\n",
        "Processor: fk-subscription-join-foreign (stores: [right-STATE-STORE-0000000003])\n",
        "Processor: fk-foreign-join-subscription (stores: [fk-subscription-store])\n",
        "Sink: fk-subscription-response-sink (topic: fk-subscription-response-topic)\n",
        "Processor: fk-subscription-response-resolver (stores: [left-STATE-STORE-0000000000])\n",
        "Processor: fk-result (stores: [kept])\n",
    ):  # fmt: skip
        assert line in described
    assert topology_.partitions({"left": 3, "right": 2}) == {0: 3, 1: 2, 2: 3, 3: 3}


def test_what_is_joined_can_be_joined_and_regrouped() -> None:
    builder = StreamsBuilder("app")
    orders, customers = builder.table("left"), builder.table("right")
    joined = orders.join(customers, BOTH, Named.as_("fk"), foreign_key="to")
    builder.stream("stream").join(joined, {"found": "right.r"}).to("looked-up")
    joined.group_by(per_record(lambda value: str(value["r"]), pa.string(), "value")).count().to_stream().to("counts")
    flow = Flow(builder.build(), {**TYPES, "stream": (pa.string(), pa.int64())})
    out = flow.run(
        [
            Fed("right", "x", 7, 1), Fed("left", "a", row("x"), 2), Fed("left", "b", row("x"), 2),
            Fed("stream", "a", 1, 3), Fed("right", "x", 8, 4), Fed("stream", "a", 1, 5),
        ]
    )  # fmt: skip
    assert [r.value["found"] for r in out["looked-up"]] == [7, 8]
    assert [(r.key, r.value) for r in out["counts"]] == [("7", 1), ("7", 2), ("7", 1), ("8", 1), ("7", 0), ("8", 2)]


def test_a_table_that_refers_to_a_copy_of_itself_is_no_circle() -> None:
    builder = StreamsBuilder("app")
    table = builder.table("left")
    copy = table.to_stream().repartition().to_table()
    table.left_join(copy, {"l": "left.n", "r": "right.n"}, foreign_key="to").to_stream().to("out")
    out = Flow(builder.build(), TYPES).run(
        [Fed("left", "a", row("b", 1), 1), Fed("left", "b", row(None, 2), 2), Fed("left", "b", row(None, 3), 3)]
    )["out"]
    last = {r.key: r.value for r in out}
    assert last == {"a": {"l": 1, "r": 3}, "b": {"l": 3, "r": None}}


def test_what_cannot_be_is_refused() -> None:
    builder = StreamsBuilder("app")
    builder.table("left").join(builder.table("right"), BOTH, foreign_key="n").to_stream().to("out")
    with pytest.raises(
        ConfigurationError, match="foreign keys are int64, and the keys of the other table string.*cast"
    ):
        Flow(builder.build(), TYPES)


def test_the_working_sets_are_forgotten() -> None:
    flow = Flow(topology(left=True), TYPES)
    flow.process([Fed("left", "a", row("x"), 1), Fed("right", "x", 1, 1)])
    assert all(graph.memory_bytes() > 0 for graph in flow.graphs)
    flow.flush()
    assert all(operator.memory_bytes() == 0 for graph in flow.graphs for operator in graph.operators.values())


@pytest.mark.thorough
def test_many_rows_and_restarts() -> None:
    rows = random_rows(5, 30_000)
    fed = [Fed("left", *r) for r in rows["left"]] + [Fed("right", *r) for r in rows["right"][:60]]
    fed += [Fed("left", *r) for r in rows["left"][:500]] + [Fed("right", *r) for r in rows["right"][:60]]
    expected = model(fed, left=False, left_ms=None, right_ms=None, even=False)
    for every, flush_every in ((len(fed), 0), (7_000, 1)):
        flow = Flow(topology(left=False), TYPES)
        out = flow.run(fed, range(0, len(fed), every), flush_every=flush_every)["out"]
        assert [(r.key, r.value, r.timestamp) for r in out] == expected


def test_the_fingerprint_covers_the_parameters() -> None:
    inner, outer = JoinedValues(BOTH), JoinedValues(BOTH, keeps_left=True)
    view, other = TableView(PlainStore("r")), TableView(PlainStore("s"))
    specs = [
        ForeignKeySubscribe(BOTH), ForeignKeySubscribe(BOTH, left=True), ForeignKeySubscribe(mapper("key")),
        ForeignKeyJoin(inner, "s", view), ForeignKeyJoin(outer, "s", view), ForeignKeyJoin(inner, "t", view),
        ForeignKeyJoin(inner, "s", other), ForeignKeyResolve("s"), ForeignKeyResolve("t"),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == len(specs)
    assert families_of(specs[3].state_stores()) == ("s", "s.header")
