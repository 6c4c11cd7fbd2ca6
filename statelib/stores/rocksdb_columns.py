"""Columns of keys on their way into RocksDB: in order, into a batch, or as a table file of their own.

In order, a memory table takes keys five times as fast. A table file spares many keys the log, the memory table and its
flush, which is a third of the CPU, and takes no memory: a few thousand keys at a time are Python objects.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from typing import TYPE_CHECKING

from rocksdict import IngestExternalFileOptions, SstFileWriter

from statelib.stores.byte_columns import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import rocksdict
    from rocksdict import ColumnFamily, Options, Rdict

    from statelib.stores.byte_columns import Column

_KEYS_AT_ONCE = 1 << 13


def add(native: rocksdict.WriteBatch, handle: ColumnFamily, keys: Column, values: Column | None) -> None:
    """Adds keys to a batch, to be set, or to be deleted if ``values`` is None."""
    for some, some_values in _some_at_once(keys, values):
        if some_values is None:
            _exhaust(map(native.delete, some, repeat(handle)))
        else:
            _exhaust(map(native.put, some, some_values, repeat(handle)))


def ingest(family: Rdict, options: Options, keys: Column, values: Column | None, file: Path) -> None:
    """Sets keys, or deletes them if ``values`` is None, all at once.

    Args:
        family: Of the database.
        options: With which the database was opened.
        keys: Each once.
        values: As many, or None.
        file: Where the table is put together, in the database's file system; RocksDB takes it over.
    """
    table = SstFileWriter(options)
    table.open(str(file))
    for some, some_values in _some_at_once(keys, values):
        if some_values is None:
            _exhaust(map(table.__delitem__, some))
        else:
            _exhaust(map(table.__setitem__, some, some_values))
    table.finish()
    ingesting = IngestExternalFileOptions()
    ingesting.set_move_files(True)
    family.ingest_external_file([str(file)], ingesting)


def _some_at_once(keys: Column, values: Column | None) -> Iterator[tuple[list[bytes], list[bytes] | None]]:
    order = in_order(keys)
    for first in range(0, len(keys), _KEYS_AT_ONCE):
        rows = order.slice(first, _KEYS_AT_ONCE)
        yield keys.take(rows).to_pylist(), None if values is None else values.take(rows).to_pylist()


def _exhaust(calls: Iterable[None]) -> None:
    """Makes the calls; a loop would cost a quarter more."""
    deque(calls, maxlen=0)
