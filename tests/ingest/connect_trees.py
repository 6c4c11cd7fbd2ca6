"""Trees that Kafka Connect's own sinks wrote, and the records that they were given; see tests/data/connect."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unpack import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ARCHIVE = Path(__file__).parents[1] / "data" / "connect" / "trees.tar.gz"
_CUSTOMERS = ("ann", "bob", "ann", "cy", "bob", "ann", "cy", "ann")
_START_MS = 1_577_836_800_000 - 5 * 60_000  # five minutes before the year 2020


@dataclass(frozen=True)
class Sent:
    """A record that a sink was given.

    Attributes:
        key: None, or what it is in JSON.
        value: The fields by name, a string or bytes; None is a tombstone.
        headers: Names and values in their order; a name may come twice.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Mapping[str, Any] | bytes | str | None
    headers: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class _Tree:
    tombstones: bool = False
    headers: bool = False
    key: str = "string"
    value: str = "struct"


TREES = {
    "avro-default": _Tree(tombstones=True, headers=True),
    "avro-daily": _Tree(key="struct"),
    "json-hourly-gzip": _Tree(tombstones=True, headers=True),
    "json-schemaless": _Tree(value="map"),
    "parquet-field": _Tree(tombstones=True, headers=True, key="struct"),
    "parquet-none": _Tree(headers=True),
    "bytes": _Tree(key="bytes", value="bytes"),
    "aiven-jsonl-gzip": _Tree(tombstones=True, headers=True),
    "aiven-json": _Tree(tombstones=True),
    "aiven-jsonl-dated": _Tree(),
    "aiven-jsonl-bare": _Tree(value="map"),
    "aiven-jsonl-keyed": _Tree(tombstones=True),
    "aiven-csv": _Tree(tombstones=True, value="bytes"),
    "aiven-csv-plain": _Tree(tombstones=True, value="bytes"),
    "aiven-parquet": _Tree(headers=True),
    "aiven-avro": _Tree(),
}


def real_tree(name: str, folder: Path) -> Path:
    """Unpacks one of ``TREES``: the folder that stands for the bucket."""
    with tarfile.open(_ARCHIVE) as archive:
        unpack(archive, folder)
    return folder / name


def real_records(name: str) -> list[Sent]:
    """The records that the sink of a tree was given, in each partition by offset.

    Two partitions of eight records; the second was compacted, so that its offsets 103 to 106 are missing. A tree with
    tombstones has two in each partition. ``parquet-none`` and ``aiven-parquet`` keep no tombstones. In the first
    partition the seventh record is late. ``at`` is the field of the value with the time of the event, in ms.
    """
    tree = TREES[name]
    return [_record(tree, partition, number) for partition in range(2) for number in range(8)]


def _record(tree: _Tree, partition: int, number: int) -> Sent:
    offset = number if partition == 0 else 100 + number + (4 if number >= 3 else 0)
    at_ms = _START_MS + number * 100_000 + partition - (400_000 if (partition, number) == (0, 6) else 0)
    gone = tree.tombstones and number in {4, 5}
    order = f"o{partition}{number - 4 if gone else number}"
    headers = [("trace", f"t{offset}")]
    if number % 2 == 0:
        headers += [("tries", str(number)), ("trace", "again")]
    key: Any = {"order_id": order} if tree.key == "struct" else order
    value = None if gone else _value(tree, order, number, at_ms)
    return Sent(partition, offset, at_ms, key, value, tuple(headers) if tree.headers else ())


def _value(tree: _Tree, order: str, number: int, at_ms: int) -> Mapping[str, Any] | bytes:
    if tree.value == "bytes":
        return f"v{number}".encode()
    fields = {"order_id": order, "customer": _CUSTOMERS[number], "amount": number + 0.5}
    if tree.value == "map":  # without a schema: a field that is missing is not written
        return fields | ({"note": f"n{number}"} if number % 3 else {})
    return fields | {"at": at_ms - 7, "note": f'n"{number}é' if number % 3 else None}
