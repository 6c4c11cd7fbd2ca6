"""How keys and values become bytes and back, a whole Arrow array at a time.

`serde_for` picks by type. Plain types get Kafka's own bytes (``org.apache.kafka.common.serialization``), so that keys
land in the partitions, and changelogs have the bytes, of the live application::

    int8..int64, float32, float64, timestamps, dates, times    big-endian, in the type's width
    boolean                                                    0x01 or 0x00
    string                                                     UTF-8
    binary                                                     as it is
    decimals                                                   big-endian two's complement, in the type's width
    struct, list, map, null                                    the native row format (`statelib.columns.row_format`)
    windowed keys                                              the key's bytes, times behind them (`windowed`)

Null always stays null, which is a tombstone where it is a value.

Begin with `base`, then `by_type`.
"""

from __future__ import annotations

from statelib.serdes.base import Lenient, Serde, StrictSerde
from statelib.serdes.by_type import DictionarySerde, serde_for, serialized
from statelib.serdes.plain import BytesSerde, FixedWidthSerde, StringSerde
from statelib.serdes.rows import RowSerde

__all__ = [
    "BytesSerde",
    "DictionarySerde",
    "FixedWidthSerde",
    "Lenient",
    "RowSerde",
    "Serde",
    "StrictSerde",
    "StringSerde",
    "serde_for",
    "serialized",
]
