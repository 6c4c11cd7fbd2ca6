"""Avro: bytes of the specification's examples, types, evolution, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import re
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.serdes.avro.serde import AvroSerde
from tests.serdes.registry import Schemas, avro


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields, **more})


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def data(*hexes: str | None) -> pa.Array:
    return pa.array([None if text is None else bytes.fromhex(text) for text in hexes], pa.binary())


UUID = "0b6b2f5e-0000-4000-8000-0000000000ff"
EPOCH, LOCAL = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local time has none
MICROSECOND = dt.timedelta(microseconds=1)

GOLDEN = [  # of the specification's "Binary Encoding", and by its rules
    ("long", [0, -1, 1, -2, 2, -64, 64], ["00", "01", "02", "03", "04", "7f", "8001"]),
    ("long", [-(1 << 63), (1 << 63) - 1], ["ff" * 9 + "01", "fe" + "ff" * 8 + "01"]),
    ("int", [-(1 << 31), (1 << 31) - 1], ["ffffffff0f", "feffffff0f"]),
    ("boolean", [True, False], ["01", "00"]),
    ("string", ["foo", "", "é"], ["06666f6f", "00", "04c3a9"]),
    ("bytes", [b"\x00\xff"], ["0400ff"]),
    ("float", [1.5], [struct.pack("<f", 1.5).hex()]),
    ("double", [-2.25], [struct.pack("<d", -2.25).hex()]),
    (
        record(field("a", "long"), field("b", "string"), name="test"),
        [{"a": 27, "b": "foo"}],
        ["3606666f6f"],
    ),
    ('{"type": "enum", "name": "Foo", "symbols": ["A", "B", "C", "D"]}', ["D", "A"], ["06", "00"]),
    ('{"type": "array", "items": "long"}', [[3, 27], []], ["04063600", "00"]),
    ('{"type": "map", "values": "long"}', [[("a", 1)]], ["0202610200"]),
    ('{"type": "fixed", "name": "two", "size": 2}', [b"ab"], ["6162"]),
    ('{"type": "string", "logicalType": "uuid"}', [UUID], ["48" + UUID.encode().hex()]),
    (
        '{"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}',
        [UUID],
        [UUID.replace("-", "")],
    ),
    (
        '{"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}',
        [Decimal("1.28"), Decimal("-1.28"), Decimal("0.00"), Decimal("-0.01"), Decimal("999.99")],
        ["040080", "0280", "0200", "02ff", "0601869f"],
    ),
    (
        '{"type": "fixed", "name": "f", "size": 20, "logicalType": "decimal", "precision": 38, "scale": 0}',
        [Decimal(-1), Decimal(10**38 - 1)],
        ["ff" * 20, "00000000" + (10**38 - 1).to_bytes(16, "big").hex()],
    ),
    ('{"type": "int", "logicalType": "date"}', [dt.date(1970, 1, 2), dt.date(1969, 12, 31)], ["02", "01"]),
    ('{"type": "long", "logicalType": "timestamp-millis"}', [EPOCH + 64_000 * MICROSECOND], ["8001"]),
    ('{"type": "long", "logicalType": "timestamp-micros"}', [EPOCH + MICROSECOND], ["02"]),
    ('{"type": "long", "logicalType": "local-timestamp-millis"}', [LOCAL + 1_000 * MICROSECOND], ["02"]),
    ('{"type": "long", "logicalType": "local-timestamp-micros"}', [LOCAL + MICROSECOND], ["02"]),
    ('{"type": "long", "logicalType": "timestamp-nanos"}', [-1], ["01"]),
    ('{"type": "int", "logicalType": "time-millis"}', [1], ["02"]),
    ('{"type": "long", "logicalType": "time-micros"}', [1], ["02"]),
    ('{"type": "int", "logicalType": "of somebody else"}', [1], ["02"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "values", "hexes"), GOLDEN, ids=range(len(GOLDEN)))
def test_bytes(schema: str, values: list[Any], hexes: list[str]) -> None:
    serde = AvroSerde(schema)
    array = pa.array([*values, None], serde.arrow_type)
    written = serde.serialize(array)
    assert [one and one.hex() for one in written.to_pylist()] == [*hexes, None]
    decoded = serde.deserialize(data(*hexes, None))
    assert decoded.type == serde.arrow_type
    assert decoded.to_pylist() == [*values, None]
    assert serde.deserialize(data(None, *hexes, *hexes)[1:-1]).to_pylist() == [*values, *values][:-1]
    assert serde.serialize(array[:0]).to_pylist() == serde.deserialize(written[:0]).to_pylist() == []


def test_a_union_with_null_is_nullable() -> None:
    serde = AvroSerde(record(field("a", ["null", "string"]), field("b", ["long", "null"])))
    assert serde.arrow_type == pa.struct([("a", pa.string()), ("b", pa.int64())])
    hexes = ["0002", "02026100" + "02"]
    values = [{"a": None, "b": None}, {"a": "a", "b": 1}]
    assert serde.deserialize(data(*hexes)).to_pylist() == values
    assert serde.serialize(pa.array(values, serde.arrow_type)).to_pylist() == [bytes.fromhex(text) for text in hexes]


def test_blocks_may_say_how_long_they_are_and_be_several() -> None:
    serde = AvroSerde('{"type": "array", "items": "long"}')
    assert serde.deserialize(data("03040636" + "0202" + "00")).to_pylist() == [[3, 27, 1]]
    nested = AvroSerde('{"type": "array", "items": {"type": "map", "values": {"type": "array", "items": "string"}}}')
    assert nested.deserialize(data("02" + "020278" + "0402610262" + "0000" + "020000")).to_pylist() == [
        [[("x", ["a", "b"])], []]
    ]


@pytest.mark.parametrize(
    ("schema", "wrong", "reason"),
    [
        ("long", "", "truncated at byte 0"),
        ("long", "80", "truncated at byte 0"),
        ("long", "80" * 10 + "00", "more than 64 bits"),
        ("int", "8080808010", "more than 32 bits"),
        ("long", "0200", "bytes after the value at byte 1"),
        ("boolean", "02", "neither 0 nor 1"),
        ("string", "0461", "truncated"),
        ("string", "01", "negative length"),
        ("string", "02ff", "not UTF-8"),
        ("double", "00" * 7, "truncated"),
        ('["null", "long"]', "01", "union's member"),
        ('["null", "long"]', "04", "union's member"),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', "02", "enum's symbol"),
        ('{"type": "array", "items": "long"}', "8080808080808080800102", "more items than there are bytes"),
        ('{"type": "array", "items": "long"}', "0202", "truncated"),
        ('{"type": "map", "values": "long"}', "0202ff0200", "not UTF-8"),
        ('{"type": "fixed", "name": "F", "size": 2}', "61", "truncated"),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 2}', "0264", "more digits"),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 2}', "00", "no bytes"),
        (
            '{"type": "bytes", "logicalType": "decimal", "precision": 38}',
            "26" + "01" + "00" * 18,
            "more digits",
        ),
    ],
)  # fmt: skip
def test_undecodable_bytes(schema: str, wrong: str, reason: str) -> None:
    serde = AvroSerde(schema)
    good = {"long": "02", "int": "02", "boolean": "01", "string": "0261", "double": "00" * 8}.get(schema)
    values, bad, reasons = serde.deserialize_lenient(data(good, wrong, good))
    assert bad.tolist() == [False, True, False]
    assert values.type == serde.arrow_type
    assert values[1].as_py() is None
    assert values[0] == values[2]
    assert reason.removeprefix("more items than") in reasons[1].as_py()
    with pytest.raises(InputError) as caught:
        serde.deserialize(data(good, wrong))
    assert caught.value.place["row"] == 1


def read(writer: str, reader: str, *hexes: str) -> list[Any]:
    serde = AvroSerde(reader, writer_schema=writer)
    values, _, reasons = serde.deserialize_lenient(data(*hexes))
    return [reason or value for reason, value in zip(reasons.to_pylist(), values.to_pylist(), strict=True)]


def test_fields_are_found_by_name_and_by_alias_and_get_defaults() -> None:
    writer = record(field("gone", "string"), field("old", "int"), field("same", "long"))
    reader = record(
        field("same", "long"),
        field("new", "long", aliases=["old"]),
        field("text", "string", default="none"),
        field("maybe", ["null", "long"], default=None),
        field("raw", "bytes", default="\u00ff"),
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, default="\u0001\u0000"),
        field("day", {"type": "int", "logicalType": "date"}, default=1),
        field("list", {"type": "array", "items": "int"}, default=[1, 2]),
        field("map", {"type": "map", "values": "int"}, default={"a": 1}),
        field("inner", json.loads(record(field("x", "int", default=7), field("y", "int"), name="I")), default={"y": 8}),
    )
    [value] = read(writer, reader, "02610406")
    assert value == {
        "same": 3,
        "new": 2,
        "text": "none",
        "maybe": None,
        "raw": b"\xff",
        "price": Decimal("2.56"),
        "day": dt.date(1970, 1, 2),
        "list": [1, 2],
        "map": [("a", 1)],
        "inner": {"x": 7, "y": 8},
    }


def test_a_field_without_default_that_the_writer_lacks_is_undecodable() -> None:
    [reason] = read(record(field("a", "int")), record(field("a", "int"), field("b", "int")), "02")
    assert reason == "the writer has no field b, and the reader no default for it"


PROMOTIONS = [
    ("int", "long", "02", 1), ("int", "float", "02", 1.0), ("int", "double", "02", 1.0), ("long", "double", "02", 1.0),
    ("float", "double", "0000c03f", 1.5), ("string", "bytes", "0261", b"a"), ("bytes", "string", "0261", "a"),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "reader", "hexes", "value"), PROMOTIONS)
def test_promotions(writer: str, reader: str, hexes: str, value: object) -> None:
    assert read(writer, reader, hexes) == [value]
    assert read(f'["null", "{writer}"]', f'["{reader}", "null"]', "00", "02" + hexes) == [None, value]


@pytest.mark.parametrize(
    ("writer", "reader"), [("long", "int"), ("double", "float"), ("string", "int"), ("null", "int")]
)
def test_what_does_not_match_is_undecodable(writer: str, reader: str) -> None:
    [reason] = read(writer, reader, {"double": "00" * 8, "null": ""}.get(writer, "00"))
    assert reason == f"written as {writer}, which cannot be read as {reader}"


def test_a_writers_union_is_read_member_by_member() -> None:
    writer = '["int", "string", "null"]'
    values = read(writer, '["null", "string"]', "0002", "020261", "04")
    assert values == ["written as int, which cannot be read as string", "a", None]
    assert read(writer, "string", "04") == ["written as null, which cannot be read as string"]


def test_symbols_that_the_reader_lacks_become_its_default() -> None:
    writer = '{"type": "enum", "name": "a.E", "symbols": ["X", "Y", "Z"]}'
    reader = '{"type": "enum", "name": "b.E", "symbols": ["Y", "OTHER"], "default": "OTHER"}'
    assert read(writer, reader, "00", "02") == ["OTHER", "Y"]
    strict = '{"type": "enum", "name": "E", "symbols": ["Y"]}'
    assert read(writer, strict, "00", "02") == ["the reader's enum E has neither X nor a default", "Y"]


def test_records_are_the_same_by_name_or_alias() -> None:
    writer = record(field("a", "int"), name="shop.Order")
    assert read(writer, record(field("a", "int"), name="Order", namespace="other"), "02") == [{"a": 1}]
    assert read(writer, record(field("a", "int"), name="Sale", aliases=["Order"]), "02") == [{"a": 1}]
    assert read(writer, record(field("a", "int"), name="Sale"), "02") == [
        "written as record shop.Order, which cannot be read as record Sale"
    ]


def test_units_of_time_and_scales_are_never_mixed_up() -> None:
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    assert read(json.dumps(millis), json.dumps(micros), "02") == [
        "written as long (timestamp-millis), which cannot be read as long (timestamp-micros)"
    ]
    assert read(json.dumps(millis), "long", "02") == [1]
    assert read("long", json.dumps(millis), "02") == [dt.datetime(1970, 1, 1, 0, 0, 0, 1_000, tzinfo=dt.UTC)]
    narrow, wide, other = (
        json.dumps({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale})
        for precision, scale in ((4, 2), (6, 2), (6, 3))
    )
    assert read(narrow, wide, "0201") == [Decimal("0.01")]
    assert "cannot be read as" in read(wide, narrow, "0201")[0]
    assert "cannot be read as" in read(narrow, other, "0201")[0]


def test_a_time_beyond_the_calendar_is_kept() -> None:
    serde = AvroSerde('{"type": "long", "logicalType": "timestamp-millis"}')
    far = serde.deserialize(data("fe" + "ff" * 8 + "01"))
    assert far.cast(pa.int64()).to_pylist() == [(1 << 63) - 1]
    assert serde.serialize(far) == data("fe" + "ff" * 8 + "01")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "is not JSON"),
        ('"strnig"', "uses the type strnig"),
        ('{"type": "record", "name": "R"}', "lacks fields"),
        ('{"type": "record", "name": "R", "fields": 5}', "is malformed"),
        ('{"type": "record", "name": 5, "fields": []}', "is malformed"),
        ('{"type": "enum", "name": "E", "symbols": [5]}', "no string"),
        ('["int", "string"]', "union of int, string"),
        (record(field("x", ["null", "int", "long"])), "field x.*declare the schema with one of them"),
        (record(field("next", ["null", "R"])), "recursive.*field next"),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 39}', "at most 38 digits"),
        (record(field("x", "int", default="a")), "default.*field x"),
        (record(field("x", "int", default=None)), "default"),
        (record(field("x", "int"), field("x", "int")), "a field twice"),
        ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "a symbol twice"),
        ('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}', "a default that is none"),
    ],
)
def test_a_schema_that_cannot_be_is_refused_at_once(schema: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        AvroSerde(schema)
    assert re.search(message, caught.value.message), caught.value.message
    assert caught.value.next_step


def test_many_bytes_are_decoded_in_parts() -> None:
    serde = AvroSerde(record(field("n", "long"), field("data", "bytes")))
    values = pa.array([{"n": n, "data": bytes([n]) * 700_000} for n in range(40)], serde.arrow_type)
    written = serde.serialize(values).to_pylist()
    written[13] = b"\1"
    decoded, bad, reasons = serde.deserialize_lenient(pa.array(written))
    assert bad.nonzero()[0].tolist() == [13]
    assert reasons[13].as_py() == "truncated at byte 1"
    assert decoded.drop_null().equals(pa.concat_arrays([values[:13], values[14:]]))


def test_an_array_of_nothing_is_refused_not_counted() -> None:
    with pytest.raises(ConfigurationError, match="takes no bytes"):
        AvroSerde("long", writer_schema='{"type": "array", "items": "null"}')


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (record(field("a", "int")), {"a": None}, "null where the Avro schema wants a int"),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', "B", "no enum E"),
        ('{"type": "fixed", "name": "F", "size": 2}', b"abc", "no fixed F"),
        ('{"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}', "abc", "no UUID"),
    ],
)
def test_a_value_that_the_schema_does_not_allow_is_not_written(schema: str, value: object, message: str) -> None:
    serde = AvroSerde(schema)
    with pytest.raises(InputError, match=message):
        serde.serialize(pa.array([value], serde.arrow_type))


def test_values_of_a_wider_type_are_written_if_they_fit() -> None:
    serde = AvroSerde('{"type": "long", "logicalType": "timestamp-millis"}')
    archived = pa.array([1_000], pa.timestamp("us", "UTC"))  # what an archive makes of it
    assert serde.serialize(archived).to_pylist() == [b"\x02"]
    with pytest.raises(InputError, match="do not fit"):
        serde.serialize(pa.array([1_001], pa.timestamp("us", "UTC")))


V1, V2 = record(field("a", "int")), record(field("a", "long"), field("b", "string", default="-"))
REGISTRY = Schemas(
    (
        avro(1, V1),
        avro(258, V2),
        avro(3, "not a schema"),
        avro(4, record(field("x", "Inner")), ("Inner", avro(0, record(field("a", "int"), name="Inner"))[1])),
        avro(5, '"bytes"'),
        (6, avro(0, "{}")[1]._replace(kind="JSON")),
        avro(7, record(field("next", ["null", "R"]))),
    ),
    (("t-value", 258),),
)


def test_the_wire_format() -> None:
    serde = AvroSerde(V2, registry=REGISTRY, subject="t-value")
    value = {"a": 1, "b": "x"}
    assert serde.serialize(pa.array([value, None], serde.arrow_type)) == data("0000000102" + "020278", None)
    mixed = data("0000000102" + "020278", "0000000001" + "04", None)
    assert serde.deserialize(mixed).to_pylist() == [value, {"a": 2, "b": "-"}, None]


def test_what_is_wrong_with_a_head() -> None:
    serde = AvroSerde(V2, registry=REGISTRY)
    wrong = ["", "000000", "0100000001", "000000006302", "0000000003", "0000000006", "0000000007", "000000000180", None]
    values, bad, reasons = serde.deserialize_lenient(data(*wrong, "000000000102"))
    assert bad.tolist() == [True] * 8 + [False] * 2
    assert values.to_pylist() == [None] * 9 + [{"a": 1, "b": "-"}]
    for text, reason in zip(
        ["no schema id", "no schema id", "magic byte is 0x01", "schema 99: the registry has none", "schema 3: ",
         "schema 6: it is JSON, not AVRO", "schema 7: the Avro schema is recursive", "truncated"],
        reasons.to_pylist(),
        strict=False,
    ):  # fmt: skip
        assert text in reason


def test_a_registry_that_does_not_answer_is_no_bad_record() -> None:
    serde = AvroSerde(V2, registry=Schemas(is_down=True), subject="t-value")
    with pytest.raises(RetryableError):
        serde.deserialize_lenient(data("000000000102"))
    with pytest.raises(RetryableError):
        serde.serialize(pa.array([{"a": 1, "b": ""}], serde.arrow_type))


def test_a_schema_that_uses_others() -> None:
    reader = record(field("x", json.loads(record(field("a", "int"), name="Inner"))))
    assert AvroSerde(reader, registry=REGISTRY).deserialize(data("000000000402")).to_pylist() == [{"x": {"a": 1}}]


def test_bytes_alone_have_no_length_in_the_wire_format() -> None:
    registry = Schemas((avro(5, '"bytes"'),), (("t-key", 5),))
    serde = AvroSerde('"bytes"', registry=registry, subject="t-key")
    assert serde.serialize(pa.array([b"ab"])) == data("0000000005" + "6162")
    assert serde.deserialize(data("0000000005" + "6162", "0000000005")).to_pylist() == [b"ab", b""]
    text = AvroSerde("string", registry=registry)
    assert text.deserialize_lenient(data("0000000005" + "61", "0000000005" + "ff")).values.to_pylist() == ["a", None]
    assert AvroSerde("int", registry=registry).deserialize_lenient(data("0000000005")).bad.tolist() == [True]


def test_writing_needs_a_subject_with_the_schema() -> None:
    value = pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))
    with pytest.raises(ConfigurationError, match='subject="clicks-value"'):
        AvroSerde(V1, registry=REGISTRY).serialize(value)
    with pytest.raises(ConfigurationError, match="not registered"):
        AvroSerde(V1, registry=REGISTRY, subject="t-value").serialize(value)
    registering = AvroSerde(V1, registry=REGISTRY, subject="t-value", register=True)
    assert registering.serialize(value).to_pylist()[0][:5] == b"\0" + (1_007).to_bytes(4, "big")
    for wrong in (
        {"subject": "x"},
        {"registry": REGISTRY, "register": True},
        {"registry": REGISTRY, "writer_schema": V1},
    ):
        with pytest.raises(ConfigurationError):
            AvroSerde(V1, **wrong)


def test_writing_by_a_given_id_is_by_that_schema() -> None:
    value = pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))
    assert AvroSerde(V1, registry=REGISTRY, schema_id=1).serialize(value) == data("000000000102")
    with pytest.raises(ConfigurationError, match="the schema 258 of the registry is another"):
        AvroSerde(V1, registry=REGISTRY, schema_id=258).serialize(value)
    for schema_id, reason in ((99, "the registry has none"), (6, "it is JSON")):
        with pytest.raises(ConfigurationError, match=reason):
            AvroSerde(V1, registry=REGISTRY, schema_id=schema_id).serialize(value)


def test_it_travels_and_describes_itself() -> None:
    serde = AvroSerde(V2, registry=REGISTRY, subject="t-value")
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert serde.describe() == {
        "serde": "avro",
        "type": "struct<a: int64, b: string>",
        "schema": json.dumps(json.loads(V2), separators=(",", ":")),
        "wire_format": "schema-registry",
        "subject": "t-value",
    }
    assert AvroSerde("long").describe() == {"serde": "avro", "type": "int64", "schema": "long"}
