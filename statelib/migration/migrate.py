"""One store of one task made anew."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from statelib.changelog.restore import restore
from statelib.columns.schema_text import decode_schema
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from statelib.documents.topologies import Migration
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend
    from statelib.stores.rocksdb import RocksDbBackend

_AT_ONCE = 1 << 14


def migrate_store(
    migration: Migration, records: Iterable[pa.RecordBatch], backend: RocksDbBackend, semantics: Semantics
) -> int:
    """Drops a store's families and writes ``records`` into the store as it is now.

    Args:
        migration: What the store was, and what it is.
        records: Its changelog, or its `contents` (of another database than ``backend``).
        backend: The task's; the other stores in it stay as they are.
        semantics: Those of the job.

    Returns:
        How many records there were.
    """
    backend.drop((*migration.before.families, *migration.now.families))
    schema = decode_schema(migration.now.arrow_schema)
    return restore(migration.now, schema, records, backend, semantics=semantics, takes_late=True)


def is_rename(migration: Migration) -> bool:
    """Whether a store gets nothing but another name: then its entries stay what they are, byte for byte."""
    was, is_ = migration.before, migration.now
    return was.name != is_.name and (was.kind, was.settings) == (is_.kind, is_.settings)


def rename_stores(migrations: Sequence[Migration], before: Backend, backend: RocksDbBackend) -> int:
    """Moves the entries of stores to the families of their new names.

    Args:
        migrations: What the stores were called, and what they are called; one may get the former name of another.
        before: The state as it was; not changed, and not ``backend``.
        backend: The task's.

    Returns:
        How many entries there were.
    """
    backend.drop(family for migration in migrations for family in migration.before.families)
    return sum(
        copy_entries(before, was, backend, is_)
        for migration in migrations
        for was, is_ in zip(migration.before.families, migration.now.families, strict=True)
    )


def copy_entries(source: Backend, of: str, target: Backend, to: str) -> int:
    """Copies all entries of a family.

    Args:
        source: Where they are; not changed.
        of: Their family there.
        target: Another database.
        to: Their family there.

    Returns:
        How many entries there were.
    """
    entries, count = source.scan(of), 0
    while some := list(islice(entries, _AT_ONCE)):
        write = WriteBatch()
        for key, value in some:
            write.put(to, key, value)
        target.write(write)
        count += len(some)
    return count
