from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib.operators.aggregation.definition import Reduce, fields_of_aggregator, several, single
from statelib.operators.aggregation.sql_functions import count, sum_
from statelib.operators.mappers.fields import ALL, NONE, both, fields_of_mapper, narrowed, pruned
from statelib.operators.mappers.mapping import Struct, mapper, per_record
from tests.operators.stateless.test_flat_map import batch_of


@pytest.mark.parametrize(
    ("of", "fields"),
    [
        ("amount", {"amount"}),
        ("place.city", {"place"}),
        ("value.key", {"key"}),
        ("key", NONE),
        ("timestamp", NONE),
        ("window_start", {"window_start"}),  # a column where there are windows, a field where there are none
        ("value", ALL),
        (pc.field("value", "a") * pc.field("value", "b", "c"), {"a", "b"}),
        (pc.field("key"), NONE),
        (pc.is_null(pc.field("value")), ALL),
        (pc.field("value"), ALL),
        (pc.field(1), ALL),
        (pc.scalar("value"), ALL),  # only a text, but who can tell
        (pc.field("value", "a b"), ALL),
        ({"x": "a", "y": pc.field("value", "b") + 1}, {"a", "b"}),
        ({"x": "a", "y": "value"}, ALL),
        (lambda batch: batch.column("key"), ALL),
        (per_record(lambda a, b: a + b, pa.int64(), "a", "b"), {"a", "b"}),
        (per_record(lambda key, value: key or value, pa.int64()), ALL),
    ],
)
def test_fields_of_a_mapper(of, fields) -> None:
    assert fields_of_mapper(mapper(of)) == (ALL if fields is ALL else frozenset(fields))


def test_one_side_of_a_join() -> None:
    joined = mapper({"id": "left.id", "cost": pc.field("left", "amount") * pc.field("right", "rate"), "k": "key"})
    assert fields_of_mapper(joined, "left") == {"id", "amount"}
    assert fields_of_mapper(joined, "right") == {"rate"}
    assert fields_of_mapper(mapper({"all": "left"}), "left") is ALL
    assert fields_of_mapper(None, "left") == NONE


def test_aggregations() -> None:
    assert fields_of_aggregator(single(count())) == NONE
    assert fields_of_aggregator(several(n=count(), sum=sum_("a"), other=sum_("b.c"))) == {"a", "b"}
    assert fields_of_aggregator(Reduce(lambda a, b: a + b)) is ALL


def test_both() -> None:
    assert both([]) == NONE
    assert both([frozenset("a"), frozenset("b")]) == {"a", "b"}
    assert both([frozenset("a"), ALL]) is ALL


def test_narrowed() -> None:
    values = [None, {"a": 1, "b": "x", "c": 0.5}, {"a": None, "b": "y", "c": None}]
    batches = batch_of(pa.array(values).slice(1)), batch_of(pa.array(values))
    for one, whole in zip(batches, (values[1:], values), strict=True):
        assert narrowed(one, ALL) is narrowed(one, frozenset("abc")) is one
        some = narrowed(one, frozenset("ca")).value
        assert some.to_pylist() == [value and {"a": value["a"], "c": value["c"]} for value in whole]
        nothing = narrowed(one, NONE).value
        assert nothing.is_valid().to_pylist() == [value is not None for value in whole]
        assert nothing.take(pa.array([0])).type == nothing.type


def test_pruned() -> None:
    of = mapper({"a": "left.a", "b": "left.b", "c": pc.field("left", "c") + 1})
    assert pruned(of, ALL) is of
    assert isinstance(of, Struct)
    assert pruned(of, frozenset("b")) == Struct(of.fields[1:])  # what is computed may fail
    assert pruned(mapper("left.a"), NONE) == mapper("left.a")
