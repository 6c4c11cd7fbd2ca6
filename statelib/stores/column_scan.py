"""Entries of a backend as columns, some thousand at a time: how a store is read as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column

_MOST_ENTRIES = 1 << 14
_MOST_BYTES = 1 << 23


def scan_columns(
    backend: Backend, family: str, first: bytes = b"", end: bytes | None = None
) -> Iterator[tuple[Column, Column]]:
    """Keys and values from ``first`` (inclusive) to ``end`` (exclusive; None: to the last), in the order of the keys.

    At most 16,384 entries at a time, and no more of them once they have 8 MiB.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    size = 0
    for key, value in backend.scan(family, first, end):
        keys.append(key)
        values.append(value)
        size += len(key) + len(value)
        if len(keys) == _MOST_ENTRIES or size >= _MOST_BYTES:
            yield pa.array(keys, pa.binary()), pa.array(values, pa.binary())
            keys, values, size = [], [], 0
    if keys:
        yield pa.array(keys, pa.binary()), pa.array(values, pa.binary())
