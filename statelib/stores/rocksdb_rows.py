"""Rows on their way into RocksDB: in order, into a batch, or as a table file of their own.

In order, a memory table takes keys five times as fast. A table file spares many keys the log, the memory table and its
flush, which is a third of the CPU, and takes no memory: a few thousand keys at a time are Python objects.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from operator import delitem, setitem
from typing import TYPE_CHECKING, Any

from rocksdict import IngestExternalFileOptions, SstFileWriter

from statelib.stores.rocksdb_tables import Keys
from statelib.stores.rows_in_order import in_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import rocksdict
    from rocksdict import ColumnFamily, Options, Rdict

    from statelib.stores.backend import Rows

_KEYS_AT_ONCE = 1 << 13

_put: Any = setitem  # a tenth less than the table's own method, and typed for Python's containers only
_delete: Any = delitem


def add(native: rocksdict.WriteBatch, handle: ColumnFamily, rows: Rows) -> None:
    """Adds rows to a batch."""
    for keys, values in _some_at_once(rows):
        if values is None:
            _exhaust(map(native.delete, keys, repeat(handle)))
        else:
            _exhaust(map(native.put, keys, values, repeat(handle)))


def make_table(rows: Rows, options: Options, file: Path) -> Keys:
    """Makes a table file of rows.

    Args:
        rows: At least one.
        options: With which the database was opened.
        file: To be written, in the database's file system.

    Returns:
        Where its keys lie.
    """
    table = SstFileWriter(options)
    table.open(str(file))
    bounds: list[bytes] = []
    for keys, values in _some_at_once(rows):
        bounds = [*bounds[:1], keys[0], keys[-1]]
        if values is None:
            _exhaust(map(_delete, repeat(table), keys))
        else:
            _exhaust(map(_put, repeat(table), keys, values))
    table.finish()
    return Keys(bounds[0], bounds[-1])


def ingest(family: Rdict, file: Path) -> None:
    """Gives a table file to a family, which takes it over."""
    ingesting = IngestExternalFileOptions()
    ingesting.set_move_files(True)
    family.ingest_external_file([str(file)], ingesting)


def _some_at_once(rows: Rows) -> Iterator[tuple[list[bytes], list[bytes] | None]]:
    for keys, values in in_pieces(rows):
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            some_values = None if values is None else values.slice(first, _KEYS_AT_ONCE).to_pylist()
            yield keys.slice(first, _KEYS_AT_ONCE).to_pylist(), some_values


def _exhaust(calls: Iterable[None]) -> None:
    """Makes the calls; a loop would cost a quarter more."""
    deque(calls, maxlen=0)
