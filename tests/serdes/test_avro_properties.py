"""Avro over generated schemas: round trips, another decoder's answer, and bytes that are anything."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.serdes.avro.serde import AvroSerde

UTC = dt.UTC
LEAVES = {
    "boolean": ("boolean", st.booleans()),
    "int": ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": ("long", st.integers(-(1 << 63), (1 << 63) - 1)),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "bytes": ("bytes", st.binary(max_size=20)),
    "string": ("string", st.text(max_size=20)),
    "date": ({"type": "int", "logicalType": "date"}, st.dates()),
    "millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        st.datetimes().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000, tzinfo=UTC)),
    ),
    "micros": ({"type": "long", "logicalType": "local-timestamp-micros"}, st.datetimes()),
    "uuid": ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 5},
        st.decimals(-(10**33) + 1, 10**33 - 1, places=5),
    ),
}


@st.composite
def typed(draw: st.DrawFn, depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:  # noqa: PLR0911 - one for each kind
    """A schema, and values that it has."""
    kind = draw(st.sampled_from([*LEAVES, "enum", "fixed", *(["record", "array", "map", "nullable"] * (depth < 3))]))
    if kind in LEAVES:
        return LEAVES[kind]
    if kind == "enum":
        symbols = draw(st.lists(st.from_regex("[A-Z]{1,5}", fullmatch=True), min_size=1, max_size=4, unique=True))
        return {"type": "enum", "name": "?", "symbols": symbols}, st.sampled_from(symbols)
    if kind == "fixed":
        size = draw(st.integers(1, 9))
        return {"type": "fixed", "name": "?", "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "record":
        fields = draw(st.lists(typed(depth + 1), min_size=1, max_size=4))
        declared = [{"name": f"f{number}", "type": schema} for number, (schema, _) in enumerate(fields)]
        values = st.fixed_dictionaries({f"f{number}": values for number, (_, values) in enumerate(fields)})
        return {"type": "record", "name": "?", "fields": declared}, values
    schema, values = draw(typed(depth + 1))
    if kind == "array":
        return {"type": "array", "items": schema}, st.lists(values, max_size=4)
    if kind == "map":
        pairs = st.dictionaries(st.text(max_size=5), values, max_size=4).map(lambda items: list(items.items()))
        return {"type": "map", "values": schema}, pairs
    if isinstance(schema, list):
        return schema, values
    return draw(st.sampled_from([["null", schema], [schema, "null"]])), st.none() | values


def named(schema: Any, numbers: Iterator[int]) -> Any:
    """With a name of its own for each type."""
    if isinstance(schema, list):
        return [named(member, numbers) for member in schema]
    if not isinstance(schema, dict):
        return schema
    name = {"name": f"N{next(numbers)}"} if schema.get("name") == "?" else {}
    return {key: named(value, numbers) if key != "symbols" else value for key, value in schema.items()} | name


@st.composite
def batches(draw: st.DrawFn) -> tuple[AvroSerde, pa.Array]:
    schema, values = draw(typed())
    serde = AvroSerde(json.dumps(named(schema, itertools.count())))
    return serde, pa.array(draw(st.lists(st.none() | values, max_size=6)), serde.arrow_type)


@given(batches(), st.integers(0, 3))
def test_round_trip(batch: tuple[AvroSerde, pa.Array], start: int) -> None:
    serde, values = batch
    values = values.slice(start)
    written = serde.serialize(values)
    assert serde.deserialize(written).equals(values)


@given(batches())
def test_another_decoder_reads_the_same(batch: tuple[AvroSerde, pa.Array]) -> None:
    serde, values = batch
    schema = fastavro.parse_schema(json.loads(serde.schema))
    written = serde.serialize(values).drop_null().to_pylist()
    theirs = [fastavro.schemaless_reader(io.BytesIO(one), schema, None) for one in written]
    assert json_like(theirs) == json_like(values.drop_null().to_pylist())


def json_like(value: Any) -> str:
    """fastavro has its own classes for some; their text is the same."""
    return json.dumps(plain(value), default=str)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return [[name, plain(item)] for name, item in value.items()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@given(batches(), st.data())
def test_what_is_lenient_never_raises_and_sees_each_value_by_itself(
    batch: tuple[AvroSerde, pa.Array], draw: st.DataObject
) -> None:
    serde, values = batch
    written = serde.serialize(values).to_pylist()
    anything = st.binary(max_size=12)
    broken = [
        one if one is None else draw.draw(st.sampled_from([one, one[:-1], one + b"\0"]) | anything) for one in written
    ]
    broken += draw.draw(st.lists(anything, max_size=4))
    data = pa.array(broken, pa.binary())
    together = serde.deserialize_lenient(data)
    together.values.validate(full=True)
    assert len(together.values) == len(data)
    for row in range(len(data)):
        alone = serde.deserialize_lenient(data[row : row + 1])
        assert alone.bad[0] == together.bad[row]
        assert alone.reasons[0] == together.reasons[row]
        assert alone.values[0].equals(together.values[row]) or "nan" in str(alone.values)
        assert alone.bad[0] == alone.reasons[0].is_valid


WIDER = {"int": ["long", "double"], "long": ["double"], "float": ["double"], "bytes": ["bytes"], "string": ["string"]}


def evolved(draw: st.DataObject, schema: Any) -> Any:  # noqa: PLR0911 - one for each kind
    """A schema that what is written by another can be read by."""
    if isinstance(schema, list):
        inner = evolved(draw, next(member for member in schema if member != "null"))
        return inner if isinstance(inner, list) else draw.draw(st.sampled_from([["null", inner], [inner, "null"]]))
    if isinstance(schema, str):
        wider = draw.draw(st.sampled_from([schema, *WIDER.get(schema, [])]))
        return draw.draw(st.sampled_from([wider, ["null", wider]]))
    if schema["type"] == "record":
        kept = draw.draw(st.lists(st.sampled_from(schema["fields"]), unique_by=lambda field: field["name"]))
        fields = [renamed(draw, {**field, "type": evolved(draw, field["type"])}) for field in kept]
        new = {"name": "new", "type": ["null", "long"], "default": None}
        return {**schema, "fields": [*fields, {"name": "more", "type": "string", "default": "é"}, new]}
    if schema["type"] == "array":
        return {**schema, "items": evolved(draw, schema["items"])}
    if schema["type"] == "map":
        return {**schema, "values": evolved(draw, schema["values"])}
    if schema["type"] == "enum":
        symbols = [*draw.draw(st.permutations(schema["symbols"])), "OTHER"]
        return {**schema, "symbols": symbols[draw.draw(st.integers(0, 1)) :], "default": "OTHER"}
    return schema


def renamed(draw: st.DataObject, field: Any) -> Any:
    if draw.draw(st.booleans()):
        return {**field, "name": f"{field['name']}_", "aliases": [field["name"]]}
    return field


@given(batches(), st.data())
def test_another_decoder_resolves_the_same(batch: tuple[AvroSerde, pa.Array], draw: st.DataObject) -> None:
    serde, values = batch
    writer = json.loads(serde.schema)
    reader = evolved(draw, writer)
    written = serde.serialize(values).drop_null()
    ours = AvroSerde(json.dumps(reader), writer_schema=serde.schema).deserialize(written).to_pylist()
    theirs = [
        fastavro.schemaless_reader(io.BytesIO(one), fastavro.parse_schema(writer), fastavro.parse_schema(reader))
        for one in written.to_pylist()
    ]
    ordered = [in_order(one, reader) for one in theirs]
    assert json_like(ordered) == json_like(ours)


def in_order(value: Any, schema: Any) -> Any:
    """A value with the fields of records as the schema has them: fastavro has the writer's order."""
    if isinstance(schema, list):
        return None if value is None else in_order(value, next(member for member in schema if member != "null"))
    if isinstance(value, dict) and schema["type"] == "record":
        return {field["name"]: in_order(value[field["name"]], field["type"]) for field in schema["fields"]}
    if isinstance(value, dict):
        return {key: in_order(item, schema["values"]) for key, item in value.items()}
    if isinstance(value, list):
        return [in_order(item, schema["items"]) for item in value]
    return value
