"""Keys of different types: refused in whatever brings keys together, or equal where only Arrow tells them apart."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    Joined,
    JoinWindows,
    KStream,
    Materialized,
    Named,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    count,
    per_record,
)
from statelib.operators.key_types import go_together, type_form
from statelib.serdes import serde_for
from statelib.topology import Processor
from tests.operators.flow import Fed, Flow
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib import CogroupedKStream

J = per_record(lambda left, right: f"{left}|{right}", pa.string(), "left", "right")
WITHIN = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=1))
SECOND = timedelta(seconds=1)


def versioned(name: str) -> Materialized:
    return Materialized.as_(Stores.persistent_versioned_key_value_store(name, SECOND))


def streams(builder: StreamsBuilder) -> tuple[KStream, KStream]:
    return builder.stream("l"), builder.stream("r")


def stream_table(builder: StreamsBuilder) -> None:
    builder.stream("l").join(builder.table("r"), J, Joined.as_("NODE")).to("out")


def stream_table_left(builder: StreamsBuilder) -> None:
    builder.stream("l").left_join(builder.table("r"), J, Joined.as_("NODE")).to("out")


def stream_versioned(builder: StreamsBuilder) -> None:
    builder.stream("l").join(builder.table("r", versioned("v")), J, Joined.as_("NODE")).to("out")


def stream_versioned_grace(builder: StreamsBuilder) -> None:
    waiting = Joined.as_("NODE").with_grace_period(timedelta(milliseconds=0))
    builder.stream("l").left_join(builder.table("r", versioned("v")), J, waiting).to("out")


def stream_counts(builder: StreamsBuilder) -> None:
    counts = builder.stream("r").group_by_key().count(Materialized.as_("c"))
    builder.stream("l").join(counts, J, Joined.as_("NODE")).to("out")


def stream_derived_table(builder: StreamsBuilder) -> None:
    derived = builder.table("r").map_values("value").filter(lambda columns: columns["value"].is_valid())
    builder.stream("l").join(derived, J, Joined.as_("NODE")).to("out")


def stream_joined_table(builder: StreamsBuilder) -> None:
    right = builder.table("r")
    builder.stream("l").join(right.outer_join(right.map_values("value"), J), J, Joined.as_("NODE")).to("out")


def tables(builder: StreamsBuilder) -> None:
    builder.table("l").join(builder.table("r"), J, Named.as_("NODE")).to_stream().to("out")


def tables_left(builder: StreamsBuilder) -> None:
    builder.table("l").left_join(builder.table("r"), J, Named.as_("NODE")).to_stream().to("out")


def tables_outer_stored(builder: StreamsBuilder) -> None:
    joined = builder.table("l").outer_join(builder.table("r"), J, Named.as_("NODE"), Materialized.as_("kept"))
    joined.to_stream().to("out")


def tables_versioned(builder: StreamsBuilder) -> None:
    left, right = builder.table("l", versioned("lv")), builder.table("r", versioned("rv"))
    left.join(right, J, Named.as_("NODE")).to_stream().to("out")


def foreign_key(builder: StreamsBuilder) -> None:
    builder.table("l").join(builder.table("r"), J, Named.as_("NODE"), foreign_key="value").to_stream().to("out")


def foreign_key_left(builder: StreamsBuilder) -> None:
    joined = builder.table("l").left_join(builder.table("r", versioned("v")), J, Named.as_("NODE"), foreign_key="value")
    joined.to_stream().to("out")


def global_table(builder: StreamsBuilder) -> None:
    builder.stream("l").join(builder.global_table("r"), "key", J, Named.as_("NODE")).to("out")


def global_table_versioned(builder: StreamsBuilder) -> None:
    builder.stream("l").left_join(builder.global_table("r", versioned("v")), "value", J, Named.as_("NODE")).to("out")


def streams_inner(builder: StreamsBuilder) -> None:
    left, right = streams(builder)
    left.join(right, J, WITHIN).to("out")


def streams_outer(builder: StreamsBuilder) -> None:
    left, right = streams(builder)
    left.outer_join(right, J, WITHIN).to("out")


def merged(builder: StreamsBuilder) -> None:
    left, right = (stream.map_values(per_record(str, pa.string(), "value")) for stream in streams(builder))
    left.merge(right, Named.as_("NODE")).to("out")


def merged_values(builder: StreamsBuilder) -> None:
    left, right = (stream.select_key(lambda columns: columns["timestamp"]) for stream in streams(builder))
    left.merge(right, Named.as_("NODE")).to("out")


def merged_counts(builder: StreamsBuilder) -> None:
    left, right = (stream.map_values(per_record(str, pa.string(), "value")) for stream in streams(builder))
    left.merge(right, Named.as_("NODE")).group_by_key().count().to_stream().to("out")


def repartitioned(builder: StreamsBuilder) -> None:
    left, right = streams(builder)
    by_value = left.select_key("value").repartition()
    by_value.left_join(right.select_key("value").to_table(Named.as_("T")), J, Joined.as_("NODE")).to("out")


def cogrouping(builder: StreamsBuilder) -> CogroupedKStream[Any, Any]:
    left, right = streams(builder)
    return left.group_by_key().cogroup({"n": count()}).cogroup(right.group_by_key(), {"more": count()})


def cogrouped(builder: StreamsBuilder) -> None:
    cogrouping(builder).aggregate(named=Named.as_("NODE")).to_stream().to("out")


def cogrouped_in_windows(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_with_no_grace(SECOND)
    cogrouping(builder).windowed_by(windows).aggregate(named=Named.as_("NODE")).to_stream().to("out")


def cogrouped_in_sliding_windows(builder: StreamsBuilder) -> None:
    windows = SlidingWindows.of_time_difference_with_no_grace(SECOND)
    cogrouping(builder).windowed_by(windows).aggregate(named=Named.as_("NODE")).to_stream().to("out")


def cogrouped_in_sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_with_no_grace(SECOND)
    cogrouping(builder).windowed_by(windows).aggregate(named=Named.as_("NODE")).to_stream().to("out")


OPERATORS: dict[str, Callable[[StreamsBuilder], None]] = {
    of.__name__: of
    for of in (
        stream_table, stream_table_left, stream_versioned, stream_versioned_grace, stream_counts, stream_derived_table,
        stream_joined_table, tables, tables_left, tables_outer_stored, tables_versioned, foreign_key, foreign_key_left,
        global_table, global_table_versioned, streams_inner, streams_outer, merged, merged_values, merged_counts,
        repartitioned, cogrouped, cogrouped_in_windows, cogrouped_in_sliding_windows, cogrouped_in_sessions,
    )
}  # fmt: skip
MERGES = ("merged", "merged_values", "merged_counts")


def test_every_operator_that_brings_keys_together_is_tried() -> None:
    """A new one has to be among these."""
    tried = {
        type(node.spec)
        for operator in OPERATORS
        for node in topology(operator).nodes
        if isinstance(node, Processor) and len(node.parents) > 1
    }
    there = {type(node.spec) for node in surface().nodes if isinstance(node, Processor) and len(node.parents) > 1}
    assert there <= tried


AB, BA = (pa.struct([(name, pa.int64()) for name in names]) for names in ("ab", "ba"))
DIFFERENT = [
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.uint32()),
    (pa.string(), pa.int64()),
    (pa.string(), pa.binary()),
    (pa.float32(), pa.float64()),
    (pa.float64(), pa.int64()),
    (pa.bool_(), pa.int8()),
    (AB, BA),
    (AB, pa.struct([("a", pa.int64()), ("c", pa.int64())])),
    (AB, pa.struct([("a", pa.int64()), ("b", pa.int32())])),
    (AB, pa.string()),
    (pa.struct([("in", AB)]), pa.struct([("in", BA)])),
    (pa.list_(pa.int32()), pa.list_(pa.int64())),
    (pa.timestamp("ms"), pa.timestamp("us")),
    (pa.timestamp("ms", "UTC"), pa.timestamp("s", "UTC")),
    (pa.timestamp("ms", "UTC"), pa.int64()),
    (pa.date32(), pa.timestamp("ms")),
    (pa.decimal128(10, 2), pa.decimal128(10, 3)),
    (pa.decimal128(10, 2), pa.decimal128(12, 2)),
    (pa.dictionary(pa.int32(), pa.int64()), pa.dictionary(pa.int32(), pa.string())),
]
AT = datetime(2013, 1, 1, tzinfo=UTC)
ALIKE: list[tuple[pa.DataType, pa.DataType, Any]] = [
    (pa.string(), pa.large_string(), "a"),
    (pa.binary(), pa.large_binary(), b"a"),
    (pa.timestamp("ms", "UTC"), pa.timestamp("ms", "Europe/Oslo"), AT),
    (pa.timestamp("us", "UTC"), pa.timestamp("us"), AT),
    (AB, pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())]), {"a": 1, "b": 2}),
    (pa.struct([("t", pa.string())]), pa.struct([("t", pa.large_string())]), {"t": "x"}),
    (pa.list_(pa.string()), pa.large_list(pa.string()), ["x", ""]),
    (pa.string(), pa.dictionary(pa.int32(), pa.string()), "a"),
    (pa.decimal128(10, 2), pa.decimal128(10, 2), Decimal("1.10")),
]


def topology(operator: str) -> Any:
    builder = StreamsBuilder("app")
    OPERATORS[operator](builder)
    return builder.build()


def flow(operator: str, left: pa.DataType, right: pa.DataType) -> Flow:
    return Flow(topology(operator), {"l": (left, left), "r": (right, right)})


def shown(of: pa.DataType) -> str:
    return re.escape(str(of.value_type if pa.types.is_dictionary(of) else of))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("types", DIFFERENT[:9:2], ids=str)
def test_keys_of_other_types_are_refused(operator: str, types: tuple[pa.DataType, pa.DataType]) -> None:
    """As soon as types are known, before any record comes; the error names the node, both types and what to do."""
    for left, right in (types, types[::-1]):
        with pytest.raises(ConfigurationError) as refused:
            flow(operator, left, right)
        text = str(refused.value)
        assert re.search(rf"{shown(left)}\W.*{shown(right)}|{shown(right)}\W.*{shown(left)}", text), text
        assert refused.value.next_step
        assert str(refused.value.place["node"]).startswith(("NODE", "KSTREAM-MERGE")), text


@pytest.mark.parametrize("operator", ["stream_table", "tables", "merged_counts"])
@pytest.mark.parametrize("types", DIFFERENT, ids=str)
def test_whatever_the_types_are(operator: str, types: tuple[pa.DataType, pa.DataType]) -> None:
    with pytest.raises(ConfigurationError, match=shown(types[0])):
        flow(operator, *types)


@pytest.mark.thorough
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("left", "right", "value"), ALIKE, ids=str)
def test_keys_that_only_arrow_tells_apart_meet(
    operator: str, left: pa.DataType, right: pa.DataType, value: Any
) -> None:
    if operator == "merged_values" and pa.types.is_dictionary(right):
        pytest.skip("dictionaries are encodings of keys alone")
    for first, second in ((left, right), (right, left)):
        out = flow(operator, first, second).run([Fed("r", value, value, 0), Fed("l", value, value, 0)], [1])
        if operator in MERGES:
            assert len(out["out"]) == 2
            assert operator != "merged_counts" or [row.value for row in out["out"]] == [1, 2]
        else:
            assert "None" not in out["out"][-1].value


def test_the_order_of_fields_is_told() -> None:
    with pytest.raises(ConfigurationError, match="same in another order: bring them into the order b, a"):
        flow("stream_table", AB, BA)


@pytest.mark.parametrize(("left", "right", "value"), ALIKE, ids=str)
def test_equal_forms_have_equal_bytes(left: pa.DataType, right: pa.DataType, value: Any) -> None:
    assert go_together(left, right)
    one, other = (serde_for(of).serialize(pa.array([value, None], of)) for of in (left, right))
    assert one.to_pylist() == other.to_pylist()


@pytest.mark.parametrize("types", DIFFERENT, ids=str)
def test_other_forms_do_not_go_together(types: tuple[pa.DataType, pa.DataType]) -> None:
    assert not go_together(*types)
    assert type_form(types[0]) == type_form(type_form(types[0]))


def by_content(columns: pa.RecordBatch) -> pa.Array:
    """What Arrow makes of Python values: no type for none."""
    return pa.array(columns["value"].to_pylist())


BY_CONTENT: dict[str, Callable[[StreamsBuilder], None]] = {
    "stream-table": lambda b: b.stream("l").select_key(by_content).join(b.table("r"), J).to("out"),
    "global-table": lambda b: b.stream("l").left_join(b.global_table("r"), by_content, J).to("out"),
    "merge": lambda b: b.stream("l").map(by_content, "key").merge(b.stream("r")).to("out"),
    "streams": lambda b: b.stream("l").select_key(by_content).outer_join(b.stream("r"), J, WITHIN).to("out"),
    "tables": lambda b: b.stream("l").select_key(by_content).to_table(Named.as_("T"))
    .join(b.table("r"), J).to_stream().to("out"),
    "foreign-key": lambda b: b.table("l").join(b.table("r"), J, foreign_key=by_content).to_stream().to("out"),
}  # fmt: skip


@pytest.mark.parametrize("build", BY_CONTENT.values(), ids=BY_CONTENT)
def test_types_that_only_records_show(build: Callable[[StreamsBuilder], None]) -> None:
    """Nothing can be said before there is a record; then at once, in whichever batch or slice that is."""
    builder = StreamsBuilder("app")
    build(builder)
    run = Flow(builder.build(), {"l": (pa.string(), pa.int64()), "r": (pa.string(), pa.string())})
    run.run([Fed("r", "5", "R", 0), Fed("l", "k", None, 1)])
    with pytest.raises(ConfigurationError, match=r"int64.*string|string.*int64"):
        run.run([Fed("l", "k", 5, 2)])


def test_the_other_side_of_a_slice_may_be_empty(tmp_path: Path) -> None:
    driver = TopologyTestDriver(topology("stream_table"), tmp_path)
    stream = driver.create_input_topic("l", pa.int32(), pa.string())
    driver.create_input_topic("r", pa.int64(), pa.string())
    stream.pipe_input(1, "a", 1)
    with pytest.raises(ConfigurationError, match=r"int32.*int64.*node NODE.*select_key"):
        driver.replay()


@pytest.mark.parametrize("operator", ["stream_versioned_grace", "tables_left", "foreign_key", "merged_counts"])
def test_a_plan_refuses_them(tmp_path: Path, operator: str) -> None:
    """Before a run begins; nothing is stored for it."""
    pipeline = Pipeline(tmp_path, topology(operator))
    pipeline.archive("l", [(1, 1, 1)], (pa.int64(), pa.int64()))
    pipeline.archive("r", [("a", "a", 1)], (pa.string(), pa.string()))
    with pytest.raises(ConfigurationError, match=r"int64.*string|string.*int64"):
        pipeline.plan()
    assert not list((tmp_path / "warehouse").glob("jobs/*/runs/*"))
