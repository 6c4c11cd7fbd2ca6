"""What the store of a table holds, as the records of a compacted changelog."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.operators.changelog import SCHEMA
from statelib.operators.tables.codec import decode_value
from statelib.operators.versioned.segments import VersionedFamilies
from statelib.operators.versioned.store import VersionedKeyValueStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.topologies import StoreDescription
    from statelib.stores.backend import Backend

_AT_ONCE = 1 << 14


def contents(store: StoreDescription, backend: Backend) -> Iterator[pa.RecordBatch]:
    """All that a store holds, some keys at a time, in bytewise order of keys and of each key in order of time.

    Args:
        store: A key-value or versioned store.
        backend: Where it is.

    Returns:
        Batches of `statelib.operators.changelog.SCHEMA`; a null value is a tombstone.

    Raises:
        ConfigurationError: It is of another kind.
    """
    if store.kind == "key-value":
        return _latest(store, backend)
    if store.kind == "versioned":
        return _versions(store, backend)
    raise ConfigurationError(f"a {store.kind} store cannot be migrated", store=store.name)


def _latest(store: StoreDescription, backend: Backend) -> Iterator[pa.RecordBatch]:
    entries = backend.scan(store.families[0])
    while some := list(islice(entries, _AT_ONCE)):
        decoded = [decode_value(raw, store.name) for _, raw in some]
        columns = ([key for key, _ in some], [row for _, row in decoded], [timestamp for timestamp, _ in decoded])
        yield pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def _versions(store: StoreDescription, backend: Backend) -> Iterator[pa.RecordBatch]:
    retention_ms, interval_ms = store.settings["history_retention_ms"], store.settings["segment_interval_ms"]
    versioned = VersionedKeyValueStore(
        backend, store.name, history_retention_ms=retention_ms, segment_interval_ms=interval_ms
    )
    families = VersionedFamilies(backend, store.name, retention_ms, versioned.segment_interval_ms)
    keys = families.keys(b"", None, 0)
    while some := list(islice(keys, _AT_ONCE)):
        column = pa.array(some, pa.binary())
        versions = versioned.load(column).versions
        yield pa.RecordBatch.from_arrays(
            [
                column.take(pa.array(versions.key_of())),
                versions.values.cast(pa.binary()),
                pa.array(versions.valid_from.astype(np.int64)),
            ],
            schema=SCHEMA,
        )
