"""Serdes with a real schema registry."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from hindstream.kafka.registry import SchemaRegistry
from statelib import AvroSerde, ConfigurationError, JsonSerde, ProtobufSerde
from statelib.serdes.schema_source import RegisteredSchema

pytestmark = pytest.mark.slow

SHOP = Path(__file__).parents[1] / "serdes" / "data" / "shop.desc"
PLACE = pa.struct([("page", pa.string()), ("line", pa.int32())])


def order(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


AMOUNT = {"name": "amount", "type": "int"}
OLD = order(AMOUNT)
NEW = order({"name": "amount", "type": "long"}, {"name": "currency", "type": "string", "default": "EUR"})


def test_avro_that_evolves(schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    old = AvroSerde(OLD, registry=registry, subject=f"{unique}-value", register=True)
    new = AvroSerde(NEW, registry=registry, subject=f"{unique}-value", register=True)
    first = old.serialize(pa.array([{"amount": 1}], old.arrow_type))
    second = pickle.loads(pickle.dumps(new)).serialize(
        pa.array([{"amount": 2, "currency": "CHF"}, None], new.arrow_type)
    )
    together = pa.concat_arrays([first, second, pa.array([b"\0\x7f\xff\xff\xff\2", first[0].as_py() + b"!"])])
    values, bad, reasons = new.deserialize_lenient(together)
    assert values.to_pylist()[:3] == [{"amount": 1, "currency": "EUR"}, {"amount": 2, "currency": "CHF"}, None]
    assert bad.tolist() == [False, False, False, True, True]
    assert "schema 2147483647: the registry has none" in reasons[3].as_py()
    found = AvroSerde(OLD, registry=registry, subject=f"{unique}-value")
    assert found.serialize(pa.array([{"amount": 1}], old.arrow_type)) == first
    schema_id = int.from_bytes(first[0].as_py()[1:5], "big")
    found_by_id = registry.schema(schema_id)
    assert found_by_id is not None
    assert (found_by_id.kind, json.loads(found_by_id.text)) == ("AVRO", json.loads(OLD))
    given = AvroSerde(OLD, registry=registry, schema_id=schema_id)
    assert given.serialize(pa.array([{"amount": 1}], old.arrow_type)) == first
    assert json.loads(registry.latest(f"{unique}-value").text) == json.loads(NEW)


def test_what_is_not_registered_is_not_written(schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    serde = AvroSerde(OLD, registry=registry, subject=unique)
    with pytest.raises(ConfigurationError, match=f"not registered.*subject {unique}.*register=True"):
        serde.serialize(pa.array([{"amount": 1}], serde.arrow_type))
    with pytest.raises(ConfigurationError, match="check the subject"):
        registry.latest(unique)
    with pytest.raises(ConfigurationError, match="refuses.*check the address"):
        SchemaRegistry(f"{schema_registry}/elsewhere").schema(1)


def test_avro_that_uses_another_schema(schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    name = unique.replace("-", "_")
    inner = RegisteredSchema("AVRO", json.dumps({"type": "record", "name": name, "fields": [AMOUNT]}))
    outer = RegisteredSchema("AVRO", order({"name": "inner", "type": name}), ((name, inner),))
    schema_id = registry.id_of(f"{unique}-value", outer, register=True)
    reader = order({"name": "inner", "type": json.loads(inner.text)})
    data = pa.array([b"\0" + schema_id.to_bytes(4, "big") + b"\2"])
    assert AvroSerde(reader, registry=registry).deserialize(data).to_pylist() == [{"inner": {"amount": 1}}]


def test_protobuf_with_an_import(schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    serde = ProtobufSerde(SHOP, "shop.Click.Place", registry=registry, subject=f"{unique}-value", register=True)
    values = pa.array([{"page": "a", "line": 1}, None], PLACE)
    data = serde.serialize(values)
    assert serde.deserialize(data).equals(values)
    assert [name for name, _ in registry.latest(f"{unique}-value").references] == ["money.proto"]
    assert (
        ProtobufSerde(SHOP, "shop.Click.Place", registry=registry, subject=f"{unique}-value").serialize(values) == data
    )
    other = ProtobufSerde(SHOP, "shop.Click", registry=registry)
    assert other.deserialize_lenient(data).reasons[0].as_py() == "a shop.Click.Place, not a shop.Click"


def test_protobuf_that_was_registered_as_source(schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    source = (SHOP.parent / "money.proto").read_text()
    schema_id = registry.id_of(f"{unique}-value", RegisteredSchema("PROTOBUF", source), register=True)
    serde = ProtobufSerde(SHOP, "money.Amount", registry=registry, schema_id=schema_id)
    values = pa.array([{"cents": 5, "currency": None}], serde.arrow_type)
    data = serde.serialize(values)
    assert data.to_pylist() == [b"\0" + schema_id.to_bytes(4, "big") + b"\0\x08\5"]
    assert serde.deserialize(data).equals(values)


def test_json(schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    schema = '{"type": "object", "properties": {"page": {"type": "string"}, "line": {"type": "integer"}}}'
    serde = JsonSerde(PLACE, registry=registry, subject=f"{unique}-value", json_schema=schema, register=True)
    values = pa.array([{"page": "a", "line": 1}, None], PLACE)
    data = serde.serialize(values)
    assert serde.deserialize(data).equals(values)
    schema_id = int.from_bytes(data[0].as_py()[1:5], "big")
    assert registry.schema(schema_id) == RegisteredSchema("JSON", schema)
    avro = AvroSerde(OLD, registry=registry)
    assert "it is JSON, not AVRO" in avro.deserialize_lenient(data).reasons[0].as_py()


def test_what_confluents_own_serializer_writes(schema_registry: str, unique: str) -> None:
    # Apicurio loses the answer to one of some hundred requests for what it does not offer, such as associations.
    theirs = SchemaRegistryClient({"url": schema_registry, "timeout": 5})
    serializer = AvroSerializer(theirs, NEW)
    value = {"amount": -64, "currency": "é"}
    data = serializer(value, SerializationContext(unique, MessageField.VALUE))
    serde = AvroSerde(NEW, registry=SchemaRegistry(schema_registry), subject=f"{unique}-value")
    assert serde.deserialize(pa.array([data])).to_pylist() == [value]
    assert serde.serialize(pa.array([value], serde.arrow_type)).to_pylist() == [data]
