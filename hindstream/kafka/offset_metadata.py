"""What a Kafka Streams application notes with the offsets that it commits: the stream time of the partition.

It is base64 of bytes, of which the first nine are read here (``TopicPartitionMetadata``)::

    version     u8: 1, or 2, which has notes of processors behind the time
    time        i64, big-endian: ms; -1: none yet

The text has no padding there, so that whatever follows does not matter.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_LAYOUT = struct.Struct(">Bq")
_CHARACTERS = 12
_VERSIONS = (1, 2)


def partition_time_ms(metadata: str | bytes | None) -> int | None:
    """The stream time that is noted; None: there is none, or somebody else has committed the offset."""
    try:
        version, time_ms = _LAYOUT.unpack(base64.b64decode((metadata or "")[:_CHARACTERS], validate=True))
    except (binascii.Error, struct.error, ValueError):
        return None
    return int(time_ms) if version in _VERSIONS and time_ms >= 0 else None


def metadata_of(place: TopicPartition) -> str | bytes | None:
    """What was noted with an offset, and maybe what lay behind it in memory: the client forgets where it ends.

    So it may be no UTF-8; the error has the bytes then.
    """
    try:
        return place.metadata
    except UnicodeDecodeError as error:
        return error.object
