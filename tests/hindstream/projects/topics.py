"""Topics of many shapes, as they come out of lakes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import TIMESTAMP, topic_schema
from statelib.topics.places import archive_path

if TYPE_CHECKING:
    from pathlib import Path

TIME = pa.timestamp("us", "UTC")
ODD = pa.struct(
    [
        ("dep delay", pa.int32()), ("a.b", pa.float64()), ("x-y", pa.string()), ("class", pa.string()),
        ("value", pa.int64()), ("key", pa.string()), ("Größe", pa.float64()), ("it's \"so\"", pa.string()),
        ("timestamp", TIME), ("order.id", pa.string()),
    ]
)  # fmt: skip
NESTED = pa.struct(
    [
        ("customer", pa.struct([("eventId", pa.string()), ("address", pa.struct([("from", pa.string())]))])),
        ("basket", pa.struct([("lines", pa.list_(pa.struct([("n", pa.int32())]))), ("total price", pa.float32())])),
        ("tags", pa.map_(pa.string(), pa.int64())),
    ]
)
KINDS = pa.struct(
    [
        ("price", pa.decimal128(10, 2)), ("at", TIME), ("local", pa.timestamp("us")), ("day", pa.date32()),
        ("raw", pa.binary()), ("ok", pa.bool_()),
    ]
)  # fmt: skip
WINDOWED = pa.struct([("key", pa.string()), ("window_start", TIME), ("window_end", TIME)])
_AT = datetime(2024, 1, 1, tzinfo=UTC)


def _kinds(n: int) -> dict[str, Any]:
    local, day = _AT.replace(tzinfo=None), date(2024, 1, 1)
    return {"price": Decimal(n) / 4, "at": _AT, "local": local, "day": day, "raw": b"\xff", "ok": n % 2 == 0}


def _odd(n: int) -> dict[str, Any]:
    names = {"x-y": "x", "class": f"c{n % 3}", "key": "k", 'it\'s "so"': "y", "order.id": f"o{n}"}
    return {**names, "dep delay": n, "a.b": n / 2, "value": n, "Größe": 1.5, "timestamp": _AT}


def _nested(n: int) -> dict[str, Any]:
    customer = {"eventId": f"e{n}", "address": {"from": "x"}}
    return {"customer": customer, "basket": {"lines": [{"n": n}], "total price": n / 2}, "tags": [("a", n)]}


TOPICS: dict[str, tuple[pa.DataType, pa.DataType, Any, Any]] = {
    "odd": (pa.string(), ODD, lambda n: f"k{n % 5}", _odd),
    "odd-without-keys": (pa.string(), ODD, lambda n: None, _odd),
    "nested": (pa.int64(), NESTED, lambda n: n % 5, _nested),
    "nulls-only": (
        pa.string(),
        pa.struct([("amount", pa.float64()), ("id", pa.string()), ("n", pa.int32())]),
        lambda n: f"k{n % 5}",
        lambda n: {"amount": None, "id": None, "n": n},
    ),
    "kinds": (pa.binary(), KINDS, lambda n: bytes([n % 5, 255]), _kinds),
    "decimal-keys": (pa.decimal128(6, 3), pa.decimal128(4, 4), lambda n: Decimal(n % 5), lambda n: Decimal("0.0625")),
    "time-keys": (TIME, pa.struct([("rate", pa.decimal128(3, 3))]), lambda n: _AT, lambda n: {"rate": Decimal("0.5")}),
    "plain.numbers": (pa.string(), pa.int64(), lambda n: f"k{n % 5}", lambda n: n),
    "bytes-without-keys": (pa.string(), pa.binary(), lambda n: None, lambda n: b"x"),
    "no-fields-to-use": (
        pa.string(),
        pa.struct([("ok", pa.bool_()), ("parts", pa.list_(pa.int32()))]),
        lambda n: None,
        lambda n: {"ok": True, "parts": [n]},
    ),
    "struct-keys": (
        pa.struct([("shop", pa.string()), ("till", pa.int32())]),
        pa.struct([("amount", pa.float64())]),
        lambda n: {"shop": "s", "till": n % 3},
        lambda n: {"amount": n / 2},
    ),
    "windows": (
        WINDOWED,
        pa.struct([("records", pa.int64()), ("total", pa.float64())]),
        lambda n: {"key": f"k{n % 5}", "window_start": _AT, "window_end": _AT.replace(hour=1)},
        lambda n: {"records": n, "total": n / 2},
    ),
    "tombstones": (
        pa.string(),
        pa.struct([("qty", pa.int8())]),
        lambda n: f"k{n % 5}",
        lambda n: {"qty": 1} if n % 2 else None,
    ),
    "1-begins_with_a_digit": (pa.string(), pa.int64(), lambda n: f"k{n % 5}", lambda n: n),
    "empty": (pa.string(), pa.struct([("amount", pa.float64())]), None, None),
}  # fmt: skip
"""By topic: types of keys and values, and the key and the value of the n-th record."""

RECORDS = 90


def make_topic(warehouse: Path, topic: str) -> TopicArchive:
    """A topic with two partitions and a record every ten minutes, some of them late."""
    key_type, value_type, key, value = TOPICS[topic]
    archive = TopicArchive.create(str(warehouse / archive_path(topic)), topic_schema(key_type, value_type), 2)
    if key is not None:
        rows = [
            {"key": key(n), "value": value(n), "timestamp": 1_704_067_200_000 + (n - 3 * (n % 9 == 8)) * 600_000}
            for n in range(RECORDS)
        ]
        columns = pa.schema([("key", key_type), ("value", value_type), ("timestamp", TIMESTAMP)])
        append_records(archive, pa.Table.from_pylist(rows, columns), attempt="a", app_id="t", app_version=1)
    return archive.refresh()
