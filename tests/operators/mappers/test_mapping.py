"""Mappers over record batches, and the stateless operators made of them."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib.columns.windowed_type import KeyWindows
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import Operator, OperatorContext, OperatorSpec
from statelib.operators.mappers.mapping import MapperLike, evaluate, mapper, per_record
from statelib.operators.processors.definition import TransformerContext
from statelib.operators.stateless.operator import Filter, MapKeyValue, MapValues, Peek, SelectKey, show
from statelib.records.batch import Batch, Uptake
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows
from statelib.records.key_table import KeyTable
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Callable

TEN_MS = KeyWindows("time", 10)
HEADER = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BATCH = Batch(
    keys=WindowedKeys(
        KeyColumn(pa.array(["a", None, "b"])), Windows(np.array([0, 0, 30]), np.array([10, 10, 40])), TEN_MS
    ),
    key_code=np.array([0, -1, 1]),
    value=pa.array([{"n": 1, "in": {"x": "p"}, "timestamp": "t"}, None, {"n": None, "in": None, "timestamp": "u"}]),
    timestamp=np.array([10, 20, 30]),
    sequence=np.array([0, 1, 2]),
    headers=pa.array([[("h", b"1"), ("i", b"2"), ("h", b"3")], None, []], HEADER),
)
UPTAKE = Uptake(0, BATCH.timestamp, np.zeros(3, np.int16), np.zeros(3, np.int32), np.arange(3))
COLUMNS = BATCH.as_record_batch()


def mapped(of: MapperLike, columns: pa.RecordBatch = COLUMNS) -> list[object]:
    result: list[object] = evaluate(mapper(of), columns, "NODE").to_pylist()
    return result


def double(columns: pa.RecordBatch) -> pa.Array:
    return pc.multiply(columns["timestamp"], 2)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("n", [1, None, None]),
        ("value.n", [1, None, None]),
        ("in.x", ["p", None, None]),
        ("key", ["a", None, "b"]),
        ("timestamp", [10, 20, 30]),
        ("value.timestamp", ["t", None, "u"]),
        ("window_end", [10, 10, 40]),
        ("headers.h", [b"3", None, None]),
        ("headers.i", [b"2", None, None]),
        ("headers.j", [None, None, None]),
        (pc.field("value", "n") + pc.field("timestamp"), [11, None, None]),
        (pc.scalar(5), [5, 5, 5]),
        ({"k": "key", "in": {"n": "n"}}, [{"k": "a", "in": {"n": 1}}, None, {"k": "b", "in": {"n": None}}]),
        (double, [20, 40, 60]),
        (lambda columns: np.arange(columns.num_rows), [0, 1, 2]),
        (lambda columns: pa.chunked_array([columns["key"][:1], columns["key"][1:]]), ["a", None, "b"]),
        (per_record(lambda key, value: f"{key}{value and value['n']}", pa.string()), ["a1", "NoneNone", "bNone"]),
        (per_record(lambda at: at + 1, pa.int32(), "timestamp"), [11, 21, 31]),
    ],
)  # fmt: skip
def test_a_mapper_gives_one_value_a_record(of: MapperLike, expected: list[object]) -> None:
    assert mapped(of) == expected
    assert mapped(of, COLUMNS.slice(0, 0)) == []
    json.dumps(mapper(of).describe())


def test_a_join_has_its_own_columns() -> None:
    columns = pa.RecordBatch.from_pydict({"left": pa.array([{"delay": 3}]), "right": pa.array([{"wind": 7.5}])})
    assert mapped({"d": "left.delay", "w": "right.wind"}, columns) == [{"d": 3, "w": 7.5}]
    assert mapped(per_record(lambda left, right: left["delay"] * right["wind"], pa.float64()), columns) == [22.5]
    with pytest.raises(ConfigurationError, match=r"no column 'delay'.*left, right"):
        mapped("delay", columns)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (lambda: per_record(lambda value: value, pa.string()), r"\(key, value\), or in a join with \(left, right\)"),
        (lambda: per_record(lambda key, value: value, pa.string(), "value.n"), r"with \(value.n\), but .* takes \(key"),
    ],
)
def test_a_function_that_takes_other_arguments_is_refused_where_it_is_given(
    written: Callable[[], object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        written()
    assert "test_mapping.py" in str(caught.value)
    assert "name its columns" in (caught.value.next_step or "")


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("missing", "no field 'missing': value has the fields n, in, timestamp"),
        ("in.y", "no field 'y': value.in has the fields x"),
        ("key.x", "no field 'x': key is of type string"),
        (lambda columns: pa.array([1]), "gave 1 value for 3 records"),
        (lambda columns: [1, 2, 3], "must be an Arrow or numpy array, not list"),
        (per_record(lambda key, value: value["n"], pa.int64()), "a mapper failed: TypeError"),
        (pc.field("nowhere"), "there is no field 'nowhere': value has the fields n, in, timestamp"),
        (pc.field("value", "m") + 1, "no field 'm': value has the fields n, in, timestamp"),
        (pc.field("value", "in", "y") > 1, "no field 'y': value.in has the fields x"),
        (pc.field("n") > 1, r"no column 'n'.*write pc.field\(\"value\", \"n\"\)"),
    ],
)
def test_a_wrong_mapper_names_the_node(of: MapperLike, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        mapped(of)
    assert caught.value.place["node"] == "NODE"


STREAM = pa.RecordBatch.from_pydict({"key": ["a"], "value": [5], "timestamp": [3], "headers": pa.nulls(1, HEADER)})
TABLE = STREAM.select(["key", "value"])
OF_SOURCE = "process_values() can put it into the value: its context has record_metadata()"
CONDITION = 'a text is a path; write a condition as an expression, such as pc.field("value", "amount") > 10'


@pytest.mark.parametrize("name", ["timestamp", "headers", "topic", "partition", "offset"])
@pytest.mark.parametrize("written", ["path", "nested", "expression", "argument"])
def test_what_mappers_of_tables_do_not_see_is_told_with_the_columns_and_the_way(name: str, written: str) -> None:
    of: dict[str, MapperLike] = {
        "path": name,
        "nested": {"field": f"{name}.x"},
        "expression": pc.field(name) > 3,
        "argument": per_record(str, pa.string(), name),
    }
    with pytest.raises(ConfigurationError) as raised:
        mapped(of[written], TABLE)
    assert raised.value.what == f"there is no field '{name}': value is of type int64; the columns are key, value"
    assert raised.value.next_step == f"transform_values_with() can put it into the value: its context has {name}()"
    assert hasattr(TransformerContext, name)


@pytest.mark.parametrize(
    ("name", "columns", "step"),
    [
        ("timestamp", TABLE, "transform_values_with() can put it into the value: its context has timestamp()"),
        ("timestamp", STREAM.select(["key", "value"]), "transform_values_with() can put it into the value"),
        ("partition", STREAM, f"{OF_SOURCE}.partition"),
        ("timestmap", STREAM, "the columns are key, value, timestamp, headers; did you mean timestamp?"),
        ("x", TABLE, "the columns are key, value; one of: key, value"),
        ("n", COLUMNS, 'it is a field of the value: write pc.struct_field(batch["value"], "n")'),
        ("value.n", COLUMNS, 'it is a field of the value: write pc.struct_field(batch["value"], "n")'),
    ],
)
def test_a_column_that_a_function_asks_for_and_a_batch_has_not_is_told_with_the_way(
    name: str, columns: pa.RecordBatch, step: str
) -> None:
    asks: list[Callable[[pa.RecordBatch], pa.Array]] = [lambda batch: batch[name], lambda batch: batch.column(name)]
    for ask in asks:
        with pytest.raises(ConfigurationError) as raised:
            mapped(ask, columns)
        assert step in (raised.value.next_step or "")
        assert "test_mapping.py" in str(raised.value)


def test_a_column_that_an_action_asks_for_and_a_batch_has_not_is_told_with_the_way() -> None:
    with pytest.raises(ConfigurationError, match="did you mean timestamp") as raised:
        show(lambda batch: batch["timestmap"], BATCH, "NODE", "peek")
    assert "test_mapping.py" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "columns", "step"),
    [
        ("offset", STREAM, f"{OF_SOURCE}.offset"),
        (
            "partition",
            STREAM,
            f"{OF_SOURCE}.partition",
        ),
        ("topic", STREAM, f"{OF_SOURCE}.topic"),
        ("timestmap", STREAM, "did you mean timestamp?"),
        ("x", STREAM, "one of: key, value, timestamp, headers"),
        ("x", STREAM.select(["value", "timestamp"]), "one of: key, value, timestamp"),
        ("headers", STREAM.select(["key", "value", "timestamp"]), "leave it out: these records have no headers"),
        ("ts > 3", STREAM, CONDITION),
        ("ts > 3.5", TABLE, CONDITION),
        ("n == 1", COLUMNS, CONDITION),
        ("m", COLUMNS, "one of: n, in, timestamp, key, value, window_start, window_end, headers"),
        ("offset", STREAM.append_column("partition_time", pa.array([3])), "one of: .*partition_time"),
        ("value.x", STREAM, 'it has no fields: write "value"'),
        ("in.x.y", COLUMNS, 'it has no fields: write "value.in.x"'),
    ],
)
def test_a_name_that_is_not_there_is_told_with_the_way_to_mend_it(
    name: str, columns: pa.RecordBatch, step: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        mapped(name, columns)
    told = raised.value.next_step or ""
    assert told == step or ("*" in step and re.fullmatch(step, told))


@pytest.mark.parametrize("of", ["", "a..b", {}, 5])
def test_what_is_no_mapper_is_refused(of: object) -> None:
    with pytest.raises(ConfigurationError, match="is not a mapper"):
        mapper(of)


def test_deliberate_errors_keep_their_kind() -> None:
    def fail(columns: pa.RecordBatch) -> pa.Array:
        raise InternalError("broken")

    with pytest.raises(InternalError, match="broken"):
        mapped(fail)


def test_descriptions_tell_mappers_apart() -> None:
    like: list[MapperLike] = [
        "a", "a.b", pc.field("a"), {"x": "a"}, {"y": "a"}, double,
        lambda columns: columns["key"], lambda columns: columns["value"], lambda columns: columns["n"].cast("int8"),
        per_record(double, pa.string(), "n"), per_record(double, pa.int8(), "n"), per_record(double, pa.int8(), "key"),
    ]  # fmt: skip
    described = [json.dumps(mapper(of).describe()) for of in like]
    assert len(set(described)) == len(described)
    assert (
        mapper(lambda columns: columns["key"] in {"a", "b"}).describe()
        == mapper(lambda columns: columns["key"] in {"b", "a"}).describe()
    )


def test_mappers_travel() -> None:
    for of in ("a.b", pc.field("n") * 2, {"x": "a", "y": double}, per_record(double, pa.int8(), "n")):
        there = pickle.loads(pickle.dumps(mapper(of)))
        assert there.describe() == mapper(of).describe()


def build(spec: OperatorSpec) -> tuple[Operator, NodeMetrics]:
    class NoBackend:
        pass

    metrics = NodeMetrics()
    context = OperatorContext("NODE", NoBackend(), KeyTable(), metrics)  # type: ignore[arg-type]
    assert spec.state_stores() == ()
    json.dumps(dict(spec.describe()))
    return spec.build(context), metrics


def run(spec: OperatorSpec, batch: Batch = BATCH) -> tuple[Batch, NodeMetrics]:
    operator, metrics = build(spec)
    result = operator.process([batch], UPTAKE)
    write = WriteBatch()
    operator.flush(write)
    assert len(write) == 0
    assert operator.memory_bytes() == 0
    assert metrics.unaccounted == 0
    assert (metrics.records_in, metrics.records_out) == (len(batch), len(result))
    return result, metrics


def test_map_values() -> None:
    result, metrics = run(MapValues(mapper("n")))
    assert result.value.to_pylist() == [1, None, None]
    assert result.key is BATCH.key
    assert result.key_code is BATCH.key_code
    assert result.keys is BATCH.keys
    assert metrics.accounts == {"forwarded": 3}


def test_map_values_of_a_table_maps_prior_values() -> None:
    result, _ = run(MapValues(mapper("n")), replace(BATCH, prior=BATCH.value.take(pa.array([1, 0, 2]))))
    assert result.prior is not None
    assert result.prior.to_pylist() == [None, 1, None]


def test_a_new_key_has_no_code_and_no_window() -> None:
    for spec in (SelectKey(mapper("n")), MapKeyValue(mapper("n"), mapper("key"))):
        result, _ = run(spec)
        assert result.key.to_pylist() == [1, None, None]
        assert result.key_code is None
        assert result.windows is None
    assert result.value.to_pylist() == ["a", None, "b"]


@pytest.mark.parametrize(("negated", "kept"), [(False, [10]), (True, [20, 30])])
def test_a_null_predicate_is_not_true(negated: bool, kept: list[int]) -> None:
    result, metrics = run(Filter(mapper(pc.field("value", "n") == 1), negated))
    assert result.timestamp.tolist() == kept
    assert metrics.accounts.get("filtered") == 3 - len(kept)


def test_filter_not() -> None:
    result, _ = run(Filter(mapper(pc.field("timestamp") > 15), negated=True))
    assert result.timestamp.tolist() == [10]


def test_a_predicate_must_give_booleans() -> None:
    operator, _ = build(Filter(mapper("n")))
    with pytest.raises(ConfigurationError, match="gave int64, not bool"):
        operator.process([BATCH], UPTAKE)


def test_peek_forwards_what_it_shows() -> None:
    shown: list[pa.RecordBatch] = []
    result, _ = run(Peek(shown.append))
    assert result is BATCH
    assert shown[0].equals(COLUMNS)
