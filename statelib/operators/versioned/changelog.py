"""The changelog that an application restores a versioned store from (see `statelib.operators.tables.changelog`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.described.exporting import PairsExporter, Records
from statelib.operators.versioned.scan import history
from statelib.operators.versioned.snapshot import opened
from statelib.stores.backend import WriteBatch
from statelib.stores.byte_columns import joined, packed, split_head, times
from statelib.stores.column_scan import scan_columns
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.exporting import Share
    from statelib.operators.versioned.scan import Versions

_FAMILY = "versions"
_SORTING_MEMORY_BYTES = 32 << 20
_PLACE = np.dtype([("timestamp", ">i8"), ("is_version", "u1")])


class VersionedExporter(PairsExporter):
    """All versions within the history retention, and the latest of each key, in order of time and then of keys.

    The shipped store takes a version at its restore only while it is not older than what came before it by more than
    the retention, looks at the end of each portion of records to see what has expired, and forgets by that a deletion
    that a late record then undoes. In order of time nothing is late: what is restored is what was exported.

    As shipped (``semantics="kafka-4.3"``) a latest value may have an interval behind it that ends where it begins, so
    that its deletion leaves a trace (`statelib.operators.versioned.store`, rule 4). Where no value before it makes one,
    a deletion of the same timestamp comes before it.
    """

    _aggregates = True

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`; puts them into order on disk."""
        sorting = RocksDbBackend(share.scratch, memory_bytes=_SORTING_MEMORY_BYTES, families=[_FAMILY])
        try:
            self._sort(share, sorting)
            for places, raws in scan_columns(sorting, _FAMILY):
                heads, keys = split_head(places, _PLACE, self._described.name)
                there, values = split_head(raws, np.dtype("u1"), self._described.name)
                which = pa.array(np.arange(len(there)), mask=there == 0)
                yield Records(self._keys.placed_by(keys), keys, values.take(which), heads["timestamp"].astype(np.int64))
        finally:
            sorting.close()

    def _sort(self, share: Share, sorting: RocksDbBackend) -> None:
        families = opened(self._described, share.place)
        retention_ms: int = self._described.settings["history_retention_ms"]
        horizon_ms = families.header.stream_time - retention_ms
        for versions in history(families, retention_ms):
            keys, values = self._keys.written(versions.keys), self._values.written(versions.values)
            write = WriteBatch()
            write.put_columns(_FAMILY, _places(keys, versions.valid_from, is_version=True), _framed(values))
            if self._described.semantics != "kip":
                traced = np.flatnonzero(_needs_trace(versions) & (versions.valid_from >= horizon_ms))
                places = _places(keys.take(pa.array(traced)), versions.valid_from[traced], is_version=False)
                write.put_columns(_FAMILY, places, _framed(pa.nulls(len(traced), pa.binary())))
            sorting.write(write)


def _places(keys: pa.Array, timestamp: np.ndarray[tuple[int], np.dtype[np.int64]], *, is_version: bool) -> pa.Array:
    return joined(times(timestamp), packed(np.full(len(keys), is_version, np.uint8)), keys)


def _framed(values: pa.Array) -> pa.Array:
    """The values, told from none by the byte before them."""
    return joined(packed(valid_of(values).astype(np.uint8)), values.fill_null(b""))


def _needs_trace(versions: Versions) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Latest values of which a deletion leaves a trace, though no value before them ended there."""
    after_value = np.zeros(len(versions.valid_from), np.bool_)
    same_key = np.asarray(pc.equal(versions.keys[1:], versions.keys[:-1]))
    after_value[1:] = same_key & ~versions.is_tombstone[:-1]
    return versions.remembered & ~versions.is_tombstone & ~after_value
