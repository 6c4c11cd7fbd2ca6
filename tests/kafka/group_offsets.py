"""What consumer groups have committed, as the broker's own topic has it.

The client cannot be asked for metadata that others have committed: librdkafka's copy of it may end in what lay in
memory behind it (issue 4649 of librdkafka). And what confluent_kafka commits has a NUL at its end, which Java does not
like.

Source: Kafka's ``OffsetCommitKey.json`` and ``OffsetCommitValue.json``. Integers are big-endian::

    key     version i16 = 1, group, topic (each: length i16, UTF-8), partition i32
    value   version i16 = 4, offset i64, leader epoch i32, metadata (length + 1 as a varint, UTF-8), what we skip
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.kafka.cluster import Record

TOPIC = "__consumer_offsets"

_KEY_VERSION = 1
_VALUE_VERSION = 4


@dataclass(frozen=True)
class GroupOffset:
    """Where a group goes on in a partition, and what it has noted with that."""

    offset: int
    metadata: str = ""


def latest(records: Iterable[Record], group: str) -> dict[tuple[str, int], GroupOffset]:
    """The last commit of a group by topic and partition, from all records of the topic in order."""
    offsets: dict[tuple[str, int], GroupOffset] = {}
    for record in records:
        if int.from_bytes(record.key[:2]) != _KEY_VERSION:
            continue  # of a group's members and the like
        committer, topic, partition = _key(record.key)
        if committer != group:
            continue
        if record.value is None:
            offsets.pop((topic, partition), None)
        else:
            offsets[topic, partition] = _value(record.value)
    return offsets


def _key(data: bytes) -> tuple[str, str, int]:
    group, at = _string(data, 2)
    topic, at = _string(data, at)
    return group, topic, int.from_bytes(data[at:])


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + int.from_bytes(data[at : at + 2])
    return data[at + 2 : end].decode(), end


def _value(data: bytes) -> GroupOffset:
    version, offset, _ = struct.unpack_from(">hqi", data)
    if version != _VALUE_VERSION:
        raise ValueError(f"an offset of version {version}, not {_VALUE_VERSION}")
    length, at, shift = 0, struct.calcsize(">hqi"), 0
    while data[at] & 0x80:
        length |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    length |= data[at] << shift
    return GroupOffset(offset, data[at + 1 : at + length].decode())
