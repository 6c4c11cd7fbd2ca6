"""A backend over RocksDB: one database a task, one column family a family.

How it is set, and why: `statelib.stores.rocksdb_options`. Table files that have expired as a whole are left out instead
of merged: see `statelib.stores.rocksdb_tables`.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import rocksdict
from rocksdict import AccessType, Checkpoint, Rdict

from statelib.errors.kinds import ConfigurationError, CorruptedDataError, InternalError
from statelib.stores.backend import PORTION, in_large_lists
from statelib.stores.rocksdb_compaction import MOST_EXPIRING_FILES, compact
from statelib.stores.rocksdb_errors import mapped, mapped_errors
from statelib.stores.rocksdb_options import DEFAULT_MEMORY_BYTES, database_options
from statelib.stores.rocksdb_rows import add, ingest, make_table
from statelib.stores.rocksdb_scan import MAX_SCAN_CHUNK, Scan
from statelib.stores.rocksdb_tables import KeptTables, Keys, Range, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocksdict import ColumnFamily

    from statelib.stores.backend import Rows, WriteBatch

_KEYS_PER_GET = 64
_KEPT_SUFFIX = ".kept"
_DATABASE_FILES = ("CURRENT", "MANIFEST-*", "*.sst")


class RocksDbBackend:
    """`Backend` over a RocksDB directory.

    Args:
        path: The directory; one process at a time may have it open.
        create: Whether a directory that is not there, or is empty, becomes a new database.
        read_only: Open without the lock, as of now; `write` is then an error.
        memory_bytes: Bound for block cache, filters and write buffers together.
        compacts_itself: In the background, as files become many; else `compact` has to be called.
        families: What is about to be written: those that are not there yet are made at once, in a third of the time.
            Read-only: what is about to be read, if that is not everything; others seem to be empty.

    Raises:
        ConfigurationError: The directory is open in another process, or is not there and ``create`` is false.
        CorruptedDataError: A file of the database is missing or damaged; the error names it.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        create: bool = True,
        read_only: bool = False,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        compacts_itself: bool = True,
        families: Iterable[str] = (),
    ) -> None:
        self._path = Path(path)
        self._read_only = read_only
        self._compacts_itself = compacts_itself
        self._families: dict[str, Rdict] = {}
        self._handles: dict[str, ColumnFamily] = {}
        self._expiring: set[str] = set()
        self._kept: dict[str, KeptTables] = {}  # of families that expire, from their first table on
        self._scans: WeakSet[Scan] = WeakSet()
        self._db: Rdict | None = None
        self.writes = 0
        self._options = database_options(memory_bytes, compacts_itself=compacts_itself)
        existing = self._existing_families(create=create and not read_only)
        wanted = [*families]
        names = [name for name in existing if not wanted or name in wanted] if read_only else [*existing, *wanted]
        opened = dict.fromkeys(names, self._options)
        access = AccessType.read_only(False) if read_only else AccessType.read_write()
        with mapped_errors(self._path):
            self._db = Rdict(str(self._path), self._options, opened, access)
            for family in opened:
                self._use(family)

    def get(self, family: str, key: bytes) -> bytes | None:
        """See `Backend`."""
        database = self._families.get(family)
        if database is None:
            self._database()  # raises if it is closed
            return None
        try:
            value: bytes | None = database.get(key)
        except Exception as error:
            raise mapped(error, self._path) from error
        return value

    def multi_get(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Backend`."""
        database = self._family(family)
        if database is None:
            return [None] * len(keys)
        found: list[bytes | None] = []
        try:
            for first in range(0, len(keys), _KEYS_PER_GET):
                values: Any = database.get(list(keys[first : first + _KEYS_PER_GET]))
                found += values
        except Exception as error:
            raise mapped(error, self._path) from error
        return found

    def scan(
        self, family: str, first: bytes = b"", end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """See `Backend`; writes after the scan began do not show in it."""
        scan = self._scan(family, first, end, reverse=reverse)
        # Many scans want only their first item.
        return iter(()) if scan is None else chain.from_iterable(zip(*lists, strict=True) for lists in scan.chunks())

    def scan_lists(
        self, family: str, first: bytes = b"", end: bytes | None = None
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """See `Backend`."""
        scan = self._scan(family, first, end)
        return iter(()) if scan is None else in_large_lists(scan.chunks(MAX_SCAN_CHUNK))

    def _scan(self, family: str, first: bytes, end: bytes | None, *, reverse: bool = False) -> Scan | None:
        """None: there is nothing."""
        database = self._family(family)
        if database is None or (end is not None and end <= first):
            return None
        with mapped_errors(self._path):
            scan = Scan(database, first, end, reverse=reverse, path=self._path)
        self._scans.add(scan)
        return scan

    def count(self, family: str, first: bytes = b"") -> int:
        """See `Backend`."""
        database = self._family(family)
        if database is None:
            return 0
        count = 0
        with mapped_errors(self._path):
            native = database.iter()
            native.seek(first)
            valid, step = native.valid, native.next
            while valid():
                count += 1
                step()
            native.status()
        return count

    def is_empty(self, family: str) -> bool:
        """See `Backend`."""
        database = self._family(family)
        if database is None:
            return True
        with mapped_errors(self._path):
            first = database.iter()
            first.seek_to_first()
            first.status()
            return not first.valid()

    def write(self, batch: WriteBatch) -> None:
        """See `Backend`."""
        self._database()
        if self._read_only:
            raise InternalError("a read-only state directory was written to", file=self._path)
        self._expiring |= batch.expiring
        native = rocksdict.WriteBatch(raw_mode=True)
        for family, first, end in batch.ranges:
            if first < end:
                native.delete_range(first, end, self._handle(family))
        for family, key, value in batch.operations:
            if value is None:
                native.delete(key, self._handle(family))
            else:
                native.put(key, value, self._handle(family))
        self._take_note(batch)
        for family, rows in batch.rows:
            if rows.count <= PORTION and family not in self._kept:
                add(native, self._handle(family), rows)
            else:
                self._write(native)
                native = rocksdict.WriteBatch(raw_mode=True)
                self._write_table(family, rows)
        self._write(native)

    def _take_note(self, batch: WriteBatch) -> None:
        """Tells the tables that are kept what else their families are given, and what expires."""
        for family, first, end in batch.ranges:
            if family in self._kept and first < end:
                with mapped_errors(self._path):
                    self._kept[family].expire(Range(first, end))
        for family, key, _ in batch.operations if self._kept else ():
            if family in self._kept:
                self._kept[family].add_others(Keys(key, key))

    def _write_table(self, family: str, rows: Rows) -> None:
        self._handle(family)
        self.writes += 1
        file = self._path / "rows.new"
        if family in self._expiring and family not in self._kept and not self._compacts_itself:
            self._kept[family] = KeptTables(self._bounds(family))
        with mapped_errors(self._path):
            keys = make_table(rows, self._options, file)
            if family in self._kept:
                link = self._path / f"{self.writes}{_KEPT_SUFFIX}"
                link.hardlink_to(file)
                self._kept[family].keep(Table(link, keys))
            ingest(self._families[family], file)

    def _bounds(self, family: str) -> Keys | None:
        """Where the keys of a family lie; None: it has none."""
        first = next(self.scan(family), None)
        last = next(self.scan(family, reverse=True), None)
        return None if first is None or last is None else Keys(first[0], last[0])

    def _write(self, native: rocksdict.WriteBatch) -> None:
        database = self._database()
        self.writes += 1
        with mapped_errors(self._path):
            database.write(native)

    def drop(self, families: Iterable[str]) -> None:
        """Removes families with all that they hold; one that is not there is no error."""
        with mapped_errors(self._path):
            for family in families:
                if self._families.pop(family, None) is not None:
                    del self._handles[family]
                    self._database().drop_column_family(family)

    def approximate_bytes(self, family: str) -> int:
        """See `Backend`."""
        return self._property(family, "rocksdb.total-sst-files-size") + self._property(
            family, "rocksdb.cur-size-all-mem-tables"
        )

    def approximate_keys(self, family: str) -> int:
        """See `Backend`."""
        return self._property(family, "rocksdb.estimate-num-keys")

    def flush(self) -> None:
        """Writes all memory tables to SSTs."""
        self._database()
        with mapped_errors(self._path):
            for database in self._families.values():
                database.flush()

    def compact(self, *, more_will_expire: bool = False) -> None:
        """Drops what has expired, and merges SSTs where they have become many, to the end.

        Nothing is to be done if it compacts itself.

        Args:
            more_will_expire: Whether families of which ranges have expired may wait.
        """
        database = self._database()
        if not self._compacts_itself:
            if not more_will_expire:
                self._drop_expired()
            waiting = self._expiring if more_will_expire else set()
            patient = [family for name, family in self._families.items() if name in waiting]
            others = [family for name, family in self._families.items() if name not in waiting]
            with mapped_errors(self._path):
                compact(database, others)
                compact(database, patient, most_files=MOST_EXPIRING_FILES)

    def _drop_expired(self) -> None:
        """Makes families anew of the tables that have not expired, where that leaves something out."""
        anew = {family: steps for family, kept in self._kept.items() if (steps := kept.steps_anew()) is not None}
        for family, steps in anew.items():
            self.drop([family])
            handle = self._handle(family)
            for step in steps:
                with mapped_errors(self._path):
                    if isinstance(step, Table):
                        ingest(self._families[family], step.file)
                    else:
                        gone = rocksdict.WriteBatch(raw_mode=True)
                        gone.delete_range(step.first, step.end, handle)
                        self._database().write(gone)
            del self._kept[family]

    def checkpoint(self, directory: Path | str) -> None:
        """Makes a consistent copy in ``directory``, which must not exist; its SSTs are hard links.

        What was written before the call is in the copy, and it opens like any other database.
        """
        if Path(directory).exists():
            raise InternalError("the directory of a checkpoint exists already", file=directory)
        with mapped_errors(self._path):
            Checkpoint(self._database()).create_checkpoint(str(directory))

    def close(self) -> None:
        """See `Backend`; a second call does nothing."""
        database, self._db = self._db, None
        if database is None:
            return
        # Closing writes what is in memory. If RocksDB has failed, it cannot, and whoever met the failure was told.
        has_failed = database.property_int_value("rocksdb.background-errors")
        # RocksDB keeps its lock as long as any of these lives.
        for scan in self._scans:
            scan.release()
        self._scans.clear()
        self._handles.clear()
        families = [self._families.pop(name) for name in list(self._families)]
        with suppress(Exception) if has_failed else mapped_errors(self._path):
            for family in families:
                family.close()
            database.close()
        if self._kept:
            with mapped_errors(self._path):
                for link in self._path.glob(f"*{_KEPT_SUFFIX}"):
                    link.unlink()

    def _existing_families(self, *, create: bool) -> list[str]:
        if not (self._path / "CURRENT").exists():
            if any(next(self._path.glob(pattern), None) for pattern in _DATABASE_FILES):
                # RocksDB would start an empty database over the remains.
                raise CorruptedDataError(
                    "a state directory has lost its file CURRENT",
                    file=self._path / "CURRENT",
                    next_step="restore the directory from a checkpoint",
                )
            if not create:
                raise ConfigurationError("there is no state directory", file=self._path)
            with mapped_errors(self._path):
                self._path.mkdir(parents=True, exist_ok=True)
            return []
        with mapped_errors(self._path):
            return [name for name in Rdict.list_cf(str(self._path), self._options) if name != "default"]

    def _use(self, family: str) -> None:
        database = self._database()
        self._families[family] = database.get_column_family(family)
        self._handles[family] = database.get_column_family_handle(family)

    def _handle(self, family: str) -> ColumnFamily:
        if family not in self._handles:
            with mapped_errors(self._path):
                self._database().create_column_family(family, self._options)
                self._use(family)
        return self._handles[family]

    def _family(self, family: str) -> Rdict | None:
        self._database()
        return self._families.get(family)

    def _database(self) -> Rdict:
        if self._db is None:
            raise InternalError("the RocksDB backend is closed", file=self._path)
        return self._db

    def _property(self, family: str, name: str) -> int:
        database = self._family(family)
        return 0 if database is None else database.property_int_value(name) or 0
