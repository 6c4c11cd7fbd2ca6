"""Entries of a backend as columns: how a store is read as a whole, and asked for many keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.stores.byte_columns import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column


def scan_columns(
    backend: Backend, family: str, first: bytes = b"", end: bytes | None = None
) -> Iterator[tuple[Column, Column]]:
    """Keys and values from ``first`` (inclusive) to ``end`` (exclusive; None: to the last), in the order of the keys.

    As many at a time as `Backend.scan_lists` gives.
    """
    for keys, values in backend.scan_lists(family, first, end):
        yield pa.array(keys, pa.binary()), pa.array(values, pa.binary())


def look_up(backend: Backend, family: str, keys: Column) -> list[bytes | None]:
    """The values of keys, in their order; asked for in that of their bytes, in which RocksDB is fastest."""
    order = in_order(keys)
    values: list[bytes | None] = [None] * len(keys)
    for place, value in zip(order.to_pylist(), backend.multi_get(family, keys.take(order).to_pylist()), strict=True):
        values[place] = value
    return values
