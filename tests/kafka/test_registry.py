"""The schema registry of the test bed."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

pytestmark = pytest.mark.slow

_AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "long"}]})
_COMMON = 'syntax = "proto3";\npackage shop;\nmessage Money { int64 cents = 1; }\n'
_ORDER = 'syntax = "proto3";\npackage shop;\nimport "money.proto";\nmessage Order { Money amount = 1; }\n'


def test_it_gives_back_an_avro_schema_by_its_id(schema_registry: str, unique: str) -> None:
    id_ = _call(f"{schema_registry}/subjects/{unique}/versions", {"schema": _AVRO})["id"]
    answer = _call(f"{schema_registry}/schemas/ids/{id_}")
    assert json.loads(answer["schema"]) == json.loads(_AVRO)
    assert answer.get("schemaType", "AVRO") == "AVRO"  # the default is not named


def test_it_gives_back_a_protobuf_schema_with_what_it_refers_to(schema_registry: str, unique: str) -> None:
    common = f"{unique}-money"
    _call(f"{schema_registry}/subjects/{common}/versions", {"schema": _COMMON, "schemaType": "PROTOBUF"})
    reference = {"name": "money.proto", "subject": common, "version": 1}
    order = {"schema": _ORDER, "schemaType": "PROTOBUF", "references": [reference]}
    id_ = _call(f"{schema_registry}/subjects/{unique}/versions", order)["id"]
    assert _call(f"{schema_registry}/schemas/ids/{id_}") == order
    assert _call(f"{schema_registry}/subjects/{common}/versions/1")["schema"] == _COMMON


def _call(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = json.dumps(body).encode() if body else None
    content = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, content), timeout=30) as response:
        return json.load(response)
