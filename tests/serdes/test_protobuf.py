"""Protobuf: bytes of its documentation's examples, types, what is refused, a registry's wire format.

``data/shop.desc`` is what protoc makes of ``data/shop.proto``.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.serdes.protobuf.message_path import messages_at, path_to
from statelib.serdes.protobuf.serde import ProtobufSerde
from statelib.serdes.schema_source import RegisteredSchema
from tests.serdes.registry import Schemas

FILE = Path(__file__).parent / "data" / "shop.desc"
CLICK = ProtobufSerde(FILE, "shop.Click")
PLACE = pa.struct([("page", pa.string()), ("line", pa.int32())])
EMPTY: dict[str, Any] = {
    "number": 0, "text": "", "place": None, "packed": [], "maybe": None, "raw": b"", "small": 0, "large": Decimal(0),
    "signed": 0, "four": 0, "real": 0.0, "flag": False, "color": "NONE", "colors": [], "places": [], "counts": [],
    "by_line": [], "name": None, "id": None, "at": None, "took": None, "wrapped": None, "more": None, "price": None,
    "single": 0.0,
}  # fmt: skip


def data(*hexes: str | None) -> pa.Array:
    return pa.array([None if text is None else bytes.fromhex(text) for text in hexes], pa.binary())


def test_the_type() -> None:
    assert CLICK.arrow_type == pa.struct([
        ("number", pa.int32()), ("text", pa.string()), ("place", PLACE), ("packed", pa.list_(pa.int32())),
        ("maybe", pa.string()), ("raw", pa.binary()), ("small", pa.int64()), ("large", pa.decimal128(20, 0)),
        ("signed", pa.int64()), ("four", pa.int64()), ("real", pa.float64()), ("flag", pa.bool_()),
        ("color", pa.string()), ("colors", pa.list_(pa.string())), ("places", pa.list_(PLACE)),
        ("counts", pa.map_(pa.string(), pa.int64())), ("by_line", pa.map_(pa.int32(), PLACE)), ("name", pa.string()),
        ("id", pa.int64()), ("at", pa.timestamp("us", "UTC")),
        ("took", pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])), ("wrapped", pa.string()),
        ("more", pa.string()), ("price", pa.struct([("cents", pa.int64()), ("currency", pa.string())])),
        ("single", pa.float32()),
    ])  # fmt: skip


GOLDEN: list[tuple[str, dict[str, Any]]] = [  # the first four are of Protobuf's "Encoding"
    ("089601", {"number": 150}),
    ("120774657374696e67", {"text": "testing"}),
    ("1a03109601", {"place": {"page": "", "line": 150}}),
    ("3206038e029ea705", {"packed": [3, 270, 86942]}),
    ("", {}),
    ("08ffffffffffffffffff01", {"number": -1}),
    ("1a00", {"place": {"page": "", "line": 0}}),
    ("3a00", {"maybe": ""}),
    ("4202ff00", {"raw": b"\xff\x00"}),
    ("48ffffffff0f", {"small": (1 << 32) - 1}),
    ("50ffffffffffffffffff01", {"large": Decimal((1 << 64) - 1)}),
    ("5803", {"signed": -2}),
    ("65ffffffff", {"four": (1 << 32) - 1}),
    ("69000000000000f83f", {"real": 1.5}),
    ("7001", {"flag": True}),
    ("7805", {"color": "BLUE"}),
    ("7807", {"color": "7"}),  # a number that the enum does not name
    ("8201020107", {"colors": ["RED", "7"]}),
    ("8a01030a0161" + "8a0100", {"places": [{"page": "a", "line": 0}, {"page": "", "line": 0}]}),
    ("9201050a01611002" + "9201050a01621003", {"counts": [("a", 2), ("b", 3)]}),
    ("9a0106" + "080112021002", {"by_line": [(1, {"page": "", "line": 2})]}),
    ("a20100", {"name": ""}),
    ("a80100", {"id": 0}),
    ("b20105" + "080110e807", {"at": dt.datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=dt.UTC)}),
    ("ba0104" + "08011002", {"took": {"seconds": 1, "nanos": 2}}),
    ("c20100", {"wrapped": ""}),
    ("c201030a0161", {"wrapped": "a"}),
    ("d201020802", {"price": {"cents": 2, "currency": None}}),
    ("dd010000c03f", {"single": 1.5}),
]  # fmt: skip


@pytest.mark.parametrize(("hexes", "value"), GOLDEN, ids=range(len(GOLDEN)))
def test_bytes(hexes: str, value: dict[str, Any]) -> None:
    expected = EMPTY | value
    [decoded, null] = CLICK.deserialize(data(hexes, None)).to_pylist()
    assert decoded == expected
    assert null is None
    assert CLICK.serialize(pa.array([None, expected], CLICK.arrow_type)) == data(None, hexes)


def test_a_struct_is_json() -> None:
    hexes = "ca010a" + "0a08" + "0a0161" + "1203" + "1a0178"
    [more] = CLICK.deserialize(data(hexes)).field("more").to_pylist()
    assert json.loads(more) == {"a": "x"}
    again = CLICK.serialize(pa.array([EMPTY | {"more": more}], CLICK.arrow_type))
    assert again == data(hexes)


def test_fields_that_are_not_known_are_skipped_and_nanoseconds_are_cut_off() -> None:
    assert CLICK.deserialize(data("089601" + "a00601")).to_pylist() == [EMPTY | {"number": 150}]
    [at] = CLICK.deserialize(data("b20103" + "10e70f")).field("at").to_pylist()  # 2,023 ns
    assert at == dt.datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("08", "no shop.Click"),
        ("1a05", "no shop.Click"),
        ("1201ff", "no shop.Click"),
        ("0b", "no shop.Click"),
        ("d20100", "shop.Click lacks what is required: price.cents"),
        ("b2010a" + "08" + "ff" * 8 + "7f", "out of reach"),  # the year 292 billion
    ],
)
def test_undecodable_bytes(wrong: str, reason: str) -> None:
    values, bad, reasons = CLICK.deserialize_lenient(data("0802", wrong, None, "0804"))
    assert bad.tolist() == [False, True, False, False]
    assert values.type == CLICK.arrow_type
    assert [value and value["number"] for value in values.to_pylist()] == [2, None, None, 4]
    assert reason in reasons[1].as_py()
    with pytest.raises(InputError) as caught:
        CLICK.deserialize(data("0802", wrong))
    assert caught.value.place["row"] == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"number": None}, "null.*number"),
        ({"packed": None}, "null.*packed"),
        ({"packed": [None]}, "null.*packed"),
        ({"counts": [("a", None)]}, "null.*counts"),
        ({"small": -1}, "does not fit.*small"),
        ({"color": "GREEN"}, "no value of the enum shop.Color.*NONE, RED, BLUE"),
        ({"more": "{"}, "no Struct"),
        ({"price": {"cents": None, "currency": None}}, "cents"),
    ],
)  # fmt: skip
def test_a_value_that_the_message_cannot_hold_is_not_written(value: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"(?s){message}"):
        CLICK.serialize(pa.array([EMPTY | value], CLICK.arrow_type))


@pytest.mark.parametrize(
    ("descriptors", "name", "message"),
    [
        (b"\xff", "shop.Click", "no FileDescriptorSet.*protoc"),
        (
            FILE,
            "shop.Clock",
            "no message shop.Clock.*: money.Amount, shop.Click, shop.Click.Place, shop.Tree, shop.Unused$",
        ),
        (FILE.parent / "none.desc", "shop.Click", "cannot be read: No such file"),
        (FILE, "shop.Tree", "shop.Tree contains itself.*left"),
    ],
)
def test_descriptors_that_cannot_be_are_refused_at_once(descriptors: bytes | Path, name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ProtobufSerde(descriptors, name)


def files() -> dict[str, descriptor_pb2.FileDescriptorProto]:
    found = descriptor_pb2.FileDescriptorSet.FromString(FILE.read_bytes())
    return {file.name: file for file in found.file}


def test_only_files_that_every_library_has_may_be_left_out() -> None:
    own = [file for name, file in files().items() if not name.startswith("google/")]
    assert ProtobufSerde(descriptor_pb2.FileDescriptorSet(file=own).SerializeToString(), "shop.Click").arrow_type
    alone = descriptor_pb2.FileDescriptorSet(file=[files()["shop.proto"]]).SerializeToString()
    with pytest.raises(ConfigurationError, match="lack the import money.proto.*--include_imports"):
        ProtobufSerde(alone, "shop.Click")


def schema(name: str) -> RegisteredSchema:
    references = (("money.proto", schema("money.proto")),) if name == "shop.proto" else ()
    return RegisteredSchema("PROTOBUF", text(name), references)


def text(name: str) -> str:
    return base64.b64encode(files()[name].SerializeToString()).decode()


SOURCE = (FILE.parent / "shop.proto").read_text()
REGISTRY = Schemas(
    (
        (7, schema("shop.proto")),
        (8, RegisteredSchema("AVRO", '"long"')),
        (9, RegisteredSchema("PROTOBUF", "?")),
        (10, RegisteredSchema("PROTOBUF", SOURCE)),
    ),
    (("t-value", 7),),
)


def test_the_wire_format() -> None:
    serde = ProtobufSerde(FILE, "shop.Click", registry=REGISTRY, subject="t-value")
    value = EMPTY | {"number": 150}
    written = data("0000000007" + "0202" + "089601", None)  # one step: the file's second message
    assert serde.serialize(pa.array([value, None], serde.arrow_type)) == written
    assert serde.deserialize(written).to_pylist() == [value, None]
    place = ProtobufSerde(FILE, "shop.Click.Place", registry=REGISTRY, subject="t-value")
    nested = data("0000000007" + "040200" + "1002")
    assert place.serialize(pa.array([{"page": "", "line": 2}], PLACE)) == nested
    assert place.deserialize(nested).to_pylist() == [{"page": "", "line": 2}]
    first = ProtobufSerde(FILE, "shop.Unused", registry=REGISTRY, subject="t-value")
    assert first.serialize(pa.array([{"x": "a"}], first.arrow_type)) == data("0000000007" + "00" + "0a0161")
    assert (
        first.deserialize(data("0000000007" + "000a0161", "0000000007" + "02000a0161")).to_pylist() == [{"x": "a"}] * 2
    )


def test_a_registry_may_have_the_source() -> None:
    for name, path in (("Unused", "00"), ("Click", "0202"), ("Click.Place", "040200")):
        serde = ProtobufSerde(FILE, f"shop.{name}", registry=REGISTRY, schema_id=10)
        [written] = serde.serialize(serde.deserialize(data("000000000a" + path))).to_pylist()
        assert written.hex() == "000000000a" + path
    other = ProtobufSerde(FILE, "money.Amount", registry=REGISTRY, schema_id=10)
    with pytest.raises(ConfigurationError, match="the schema 10 of the registry has no message money.Amount"):
        other.serialize(pa.array([{"cents": 1, "currency": None}], other.arrow_type))


AFTER_MAP = """\
syntax = "proto2"; // message NotThis {
package a . b;
/* message NorThis { } */
option java_package = "message NorThat {";
message A {
  map<string, int32> counts = 1;
  oneof x { string message = 2; }
  optional group Group = 3 { optional int32 n = 1; message InGroup {} }
  enum E { Z = 0; }
  message B {}
}
message C {}
"""


def test_messages_are_counted_as_a_file_declares_them() -> None:
    source = AFTER_MAP.replace("a . b", "a.b")
    names = {path: messages_at(path, source) for path in ((0,), (0, 0), (0, 0, 0), (0, 1), (1,), (2,), (0, 2), (-1,))}
    assert names == {
        (0,): ["a.b.A"], (0, 0): ["a.b.A.Group"], (0, 0, 0): ["a.b.A.Group.InGroup"], (0, 1): ["a.b.A.B"],
        (1,): ["a.b.C"], (2,): [], (0, 2): [], (-1,): [],
    }  # fmt: skip
    assert path_to("a.b.A.B", source) == (0, 1)
    assert path_to("a.b.A.D", source) is None


def test_a_maps_entries_may_count_or_not() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="m.proto")
    outer = file.message_type.add(name="A")
    outer.nested_type.add(name="MEntry").options.map_entry = True
    outer.nested_type.add(name="B")
    encoded = base64.b64encode(file.SerializeToString()).decode()
    assert messages_at((0, 0), encoded) == ["A.B", "A.MEntry"]
    assert messages_at((0, 1), encoded) == ["A.B"]
    assert path_to("A.B", encoded) == (0, 0)


def test_what_is_wrong_with_a_head() -> None:
    serde = ProtobufSerde(FILE, "shop.Click", registry=REGISTRY)
    wrong = {
        "": "no schema id",
        "0100000007": "magic byte is 0x01",
        "0000000063": "schema 99: the registry has none",
        "0000000008": "schema 8: it is AVRO",
        "000000000900": "schema has no message [0]",
        "0000000007": "path to the message cannot be read",
        "00000000070480": "path to the message cannot be read",
        "000000000703": "path to the message cannot be read",
        "000000000700": "a shop.Unused, not a shop.Click",
        "00000000070208": "has no message [4]",
        "0000000007020208": "no shop.Click",
    }
    values, bad, reasons = serde.deserialize_lenient(data(*wrong, "00000000070202"))
    assert bad.tolist() == [True] * len(wrong) + [False]
    assert values.to_pylist() == [None] * len(wrong) + [EMPTY]
    for expected, reason in zip(wrong.values(), reasons.to_pylist(), strict=False):
        assert expected in reason


def test_a_registry_that_does_not_answer_is_no_bad_record() -> None:
    serde = ProtobufSerde(FILE, "shop.Click", registry=Schemas(is_down=True))
    with pytest.raises(RetryableError):
        serde.deserialize_lenient(data("00000000070202"))


def test_it_travels_and_describes_itself() -> None:
    serde = ProtobufSerde(FILE, "money.Amount", registry=REGISTRY)
    assert pickle.loads(pickle.dumps(serde)) == serde
    described = serde.describe()
    assert {name: described[name] for name in ("serde", "message", "wire_format")} == {
        "serde": "protobuf", "message": "money.Amount", "wire_format": "schema-registry"
    }  # fmt: skip
    again = ProtobufSerde(base64.b64decode(str(described["descriptors"])), "money.Amount")
    assert again.arrow_type == serde.arrow_type
    assert again.describe()["descriptors"] == described["descriptors"]
    assert len(str(described["descriptors"])) < 200
    assert "descriptors" not in repr(serde)


INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
PLACES = st.fixed_dictionaries({"page": st.text(max_size=5), "line": INT32})
CLICKS = st.fixed_dictionaries({
    "number": INT32, "text": st.text(max_size=5), "place": st.none() | PLACES, "packed": st.lists(INT32, max_size=3),
    "maybe": st.none() | st.text(max_size=5), "raw": st.binary(max_size=5), "small": st.integers(0, (1 << 32) - 1),
    "large": st.integers(0, (1 << 64) - 1).map(Decimal), "signed": INT64, "four": st.integers(0, (1 << 32) - 1),
    "real": st.floats(allow_nan=False), "flag": st.booleans(), "color": st.sampled_from(["NONE", "RED", "BLUE", "9"]),
    "colors": st.lists(st.sampled_from(["NONE", "RED", "-3"]), max_size=3), "places": st.lists(PLACES, max_size=3),
    "counts": st.dictionaries(st.text(max_size=3), INT64, max_size=3).map(lambda items: sorted(items.items())),
    "by_line": st.dictionaries(INT32, PLACES, max_size=3).map(lambda items: sorted(items.items())),
    "name": st.none(), "id": st.none() | INT64,
    "at": st.none() | st.datetimes(timezones=st.just(dt.UTC)),
    "took": st.none() | st.fixed_dictionaries({"seconds": INT64, "nanos": INT32}),
    "wrapped": st.none() | st.text(max_size=5), "more": st.none(),
    "price": st.none() | st.fixed_dictionaries({"cents": INT64, "currency": st.none() | st.text(max_size=3)}),
    "single": st.floats(width=32, allow_nan=False),
})  # fmt: skip


@given(st.lists(st.none() | CLICKS, max_size=4), st.integers(0, 2))
def test_round_trip(values: list[dict[str, Any] | None], start: int) -> None:
    array = pa.array(values, CLICK.arrow_type).slice(start)
    assert CLICK.deserialize(CLICK.serialize(array)).equals(array)


WRITTEN = CLICKS.map(lambda value: CLICK.serialize(pa.array([value], CLICK.arrow_type))[0].as_py())


@given(st.lists(st.none() | st.binary(max_size=12) | WRITTEN, max_size=6))
def test_what_is_lenient_never_raises_and_sees_each_value_by_itself(values: list[bytes | None]) -> None:
    array = pa.array(values, pa.binary())
    together = CLICK.deserialize_lenient(array)
    together.values.validate(full=True)
    for row in range(len(array)):
        alone = CLICK.deserialize_lenient(array[row : row + 1])
        assert alone.bad[0] == together.bad[row]
        assert alone.reasons[0] == together.reasons[row]
        assert alone.values[0].equals(together.values[row]) or "nan" in str(alone.values)
