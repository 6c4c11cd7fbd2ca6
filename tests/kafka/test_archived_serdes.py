"""Topics of a real broker whose values a real registry's schemas describe, decoded by Spark's workers."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hindstream.kafka.registry import SchemaRegistry
from hindstream.spark.kafka.archive import archive_topics
from statelib import AvroSerde, KafkaTopic, ProtobufSerde, RetryableError, UuidSerde
from tests.kafka.cluster import Message
from tests.kafka.test_archive import archived, connector, with_settings

if TYPE_CHECKING:
    from tests.kafka.cluster import Cluster

__all__ = ["connector"]  # a fixture
pytestmark = pytest.mark.spark

SHOP = Path(__file__).parents[1] / "serdes" / "data" / "shop.desc"
UUID = "123e4567-e89b-12d3-a456-426614174000"
AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
OLD = json.dumps({"type": "record", "name": "R", "fields": [AT]})
NEW = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int", "default": 7}, AT]})
TIME = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def written(serde: Any, value: dict[str, Any]) -> bytes:
    [data] = serde.serialize(pa.array([value], serde.arrow_type)).to_pylist()
    return data


def test_values_of_several_schemas(cluster: Cluster, tmp_path: Path, schema_registry: str, unique: str) -> None:
    registry = SchemaRegistry(schema_registry)
    old, new = (AvroSerde(text, registry=registry, subject=unique, register=True) for text in (OLD, NEW))
    name = cluster.create_topic(unique, partitions=1)
    values = [written(old, {"at": TIME}), None, written(new, {"n": 8, "at": TIME}), b"\0\x7f\xff\xff\xff", b"\1"]
    cluster.produce(name, [Message(UUID.encode(), value, 1_000 + n, partition=0) for n, value in enumerate(values)])
    settings = with_settings(tmp_path, cluster, on_bad_record="quarantine")
    topic = KafkaTopic(name, key=UuidSerde(), value=AvroSerde(NEW, registry=registry))
    (copied,) = archive_topics([topic], settings)
    assert [(part.read, part.quarantined) for part in copied.partitions] == [(3, 2)]
    rows = archived(settings, name)
    assert [row["value"] for row in rows] == [{"n": 7, "at": TIME}, None, {"n": 8, "at": TIME}]
    assert {row["key"] for row in rows} == {UUID}
    reasons = str(archived(settings, f"{name}-quarantine"))
    assert "schema 2147483647: the registry has none with this id" in reasons
    assert "the magic byte is 0x01" in reasons


def test_protobuf_values(cluster: Cluster, tmp_path: Path, schema_registry: str, unique: str) -> None:
    serde = ProtobufSerde(
        SHOP, "shop.Click.Place", registry=SchemaRegistry(schema_registry), subject=unique, register=True
    )
    name = cluster.create_topic(unique, partitions=1)
    value = {"page": "/a", "line": 3}
    cluster.produce(name, [Message(b"a", written(serde, value), 1_000, partition=0)])
    settings = with_settings(tmp_path, cluster)
    list(archive_topics([KafkaTopic(name, value=serde)], settings))
    assert [row["value"] for row in archived(settings, name)] == [value]


def test_a_registry_that_does_not_answer_changes_nothing(
    cluster: Cluster, tmp_path: Path, schema_registry: str, unique: str
) -> None:
    serde = AvroSerde(OLD, registry=SchemaRegistry(schema_registry), subject=unique, register=True)
    name = cluster.create_topic(unique, partitions=1)
    cluster.produce(name, [Message(b"a", written(serde, {"at": TIME}), 1_000, partition=0)])
    settings = with_settings(tmp_path, cluster, on_bad_record="quarantine")
    nobody = SchemaRegistry("http://127.0.0.1:9", retries=0)
    with pytest.raises(RetryableError, match="schema registry does not answer"):
        list(archive_topics([KafkaTopic(name, value=AvroSerde(OLD, registry=nobody))], settings))
    assert archived(settings, name) == []
    list(archive_topics([KafkaTopic(name, value=AvroSerde(OLD, registry=SchemaRegistry(schema_registry)))], settings))
    assert [row["value"] for row in archived(settings, name)] == [{"at": TIME}]
