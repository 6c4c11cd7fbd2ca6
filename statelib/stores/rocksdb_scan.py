"""A walk over keys of RocksDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocksdict import ReadOptions

from statelib.errors.kinds import InternalError
from statelib.stores.rocksdb_errors import mapped_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocksdict import Rdict, RdictIter

MAX_SCAN_CHUNK = 1024


class Scan:
    """A RocksDB iterator that the backend can release when it closes, read in chunks.

    It asks the native iterator for its status at the end: one that meets a damaged block merely becomes invalid, which
    looks like the end of the family (and is all that rocksdict's own ``items()`` sees).

    It also keeps its options: the native iterator reads the upper bound from them, but does not keep them alive, and
    ends anywhere once their memory holds something else.
    """

    def __init__(self, database: Rdict, first: bytes, end: bytes | None, *, reverse: bool, path: Path) -> None:
        self._options = ReadOptions()
        if end is not None:
            self._options.set_iterate_upper_bound(end)
        native = database.iter(self._options)
        self._native: RdictIter | None = native
        self._first = first
        self._reverse = reverse
        self._path = path
        if reverse:
            native.seek_to_last()
        else:
            native.seek(first)

    def chunks(self, size: int = 1) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Keys and values of all that there is: of ``size`` entries, and then of more and more at a time."""
        while True:
            if self._native is None:
                raise InternalError("the scan's backend is closed", file=self._path)
            with mapped_errors(self._path):
                keys, values = self._read(self._native, size)
            if not keys:
                return
            yield keys, values
            size = min(size * 2, MAX_SCAN_CHUNK)

    def _read(self, native: RdictIter, size: int) -> tuple[list[bytes], list[bytes]]:
        """Lists of bytes, which Python's collector of garbage does not look at, as it does at pairs."""
        keys: list[bytes] = []
        values: list[bytes] = []
        valid, key, value = native.valid, native.key, native.value
        step = native.prev if self._reverse else native.next
        first, add_key, add_value = self._first, keys.append, values.append
        for _ in range(size):
            if not valid() or (found := key()) < first:  # going down; the upper bound is the native iterator's
                break
            add_key(found)
            add_value(value())
            step()
        native.status()
        return keys, values

    def release(self) -> None:
        """Drops the native iterator, which would keep the database's lock."""
        self._native = None
