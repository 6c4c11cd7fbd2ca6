"""One store of one task made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.changelog.restore import restore
from statelib.schema_text import decode_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from statelib.manifests import Migration
    from statelib.semantics import Semantics
    from statelib.stores.rocksdb import RocksDbBackend


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
