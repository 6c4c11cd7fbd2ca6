"""Change events that Debezium's and Confluent's own classes made (tests/data/debezium), as files may hold them."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro

from tests.ingest.lake import without_nulls
from tests.serdes.registry import Schemas, avro

FOLDER = Path(__file__).parents[1] / "data/debezium"
KEY_SCHEMA = (FOLDER / "key.avsc").read_text(encoding="utf-8")
VALUE_SCHEMA = (FOLDER / "value.avsc").read_text(encoding="utf-8")
REGISTRY = Schemas((avro(1, KEY_SCHEMA), avro(2, VALUE_SCHEMA)))
_HEAD_BYTES = 5


@dataclass(frozen=True)
class Event:
    """A record of the change topic.

    Attributes:
        offset: Its offset.
        time_ms: Its timestamp in Kafka.
        key: Its key in the registry's wire format.
        value: Its value in the same; None: a tombstone.
    """

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None

    @property
    def change(self) -> Any:
        """The envelope by fastavro; None: a tombstone."""
        return None if self.value is None else _plain(VALUE_SCHEMA, self.value)

    @property
    def row_key(self) -> Any:
        """The key by fastavro."""
        return None if self.key is None else _plain(KEY_SCHEMA, self.key)


def _plain(schema: str, data: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data[_HEAD_BYTES:]), fastavro.parse_schema(json.loads(schema)), None)


def events() -> list[Event]:
    """All of them, with a truncation and a tombstone among them."""
    lines = (FOLDER / "events-avro.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [Event(e["offset"], e["timestamp"], _decoded(e["key"]), _decoded(e["value"])) for e in found]


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def as_records(given: list[Event]) -> list[tuple[int, Any, int, Any]]:
    """What comes of changes of rows: offset, key, timestamp, value. A truncation is about no row."""
    found = []
    for event in given:
        change = event.change
        if change is None:
            found.append((event.offset, event.row_key, event.time_ms, None))
        elif change["op"] in "crud":
            after = change["after"]
            found.append((event.offset, event.row_key, change["source"]["ts_ms"], without_nulls(after)))
    return found


def told(records: list[dict[str, Any]]) -> list[tuple[int, Any, int, Any]]:
    """The same of records of an archive."""
    return [(r["offset"], r["key"], r["timestamp"], without_nulls(r["value"])) for r in records]
