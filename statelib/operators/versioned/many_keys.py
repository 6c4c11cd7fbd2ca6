"""The versions of many keys at once: read from a versioned store's families into flat arrays, and written back.

What is read is kept as it was stored, so that only what differs is written. The bytes are those that point access
writes (`statelib.operators.versioned.segments`), laid out for all keys together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.errors.kinds import InternalError
from statelib.operators.versioned.codec import (
    decode_latests,
    decode_rows,
    encode_latests,
    encode_rows,
    encode_segment_keys,
    extend_rows,
)
from statelib.operators.versioned.rows_kernel import match_rows
from statelib.operators.versioned.version_set import VersionSet
from statelib.stores.byte_columns import raw_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.versioned.segments import VersionedFamilies
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of segments, by key and then by segment.

    Attributes:
        key: int64[r], ascending: which of the keys.
        segment: int64[r], ascending within a key.
        raw: binary[r].
    """

    key: NDArray[np.int64]
    segment: NDArray[np.int64]
    raw: Column


@dataclass(frozen=True, slots=True)
class Loaded:
    """The versions of n keys, and how they are stored.

    Attributes:
        keys: binary[n], serialised.
        versions: Their versions.
        latest: binary[n], the raw latest values; null: none.
        rows: All that there are from ``first_segment`` on.
        first_segment: int64[n]: the first segment that was looked at.
        ended_by: int64[n], ms: versions that were not read ended at this time or earlier.
    """

    keys: Column
    versions: VersionSet
    latest: Column
    rows: Rows
    first_segment: NDArray[np.int64]
    ended_by: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Ended:
    """What belongs into segments, of many keys: values that have ended, and tombstones.

    Attributes:
        version: int64[e], ascending: which of the versions.
        key: int64[e]: whose it is.
        valid_to: int64[e], ms: when it ended; of a tombstone its own timestamp.
        segment: int64[e]: where it belongs.
    """

    version: NDArray[np.int64]
    key: NDArray[np.int64]
    valid_to: NDArray[np.int64]
    segment: NDArray[np.int64]


def load(families: VersionedFamilies, keys: Column, from_ms: NDArray[np.int64]) -> Loaded:
    """All versions of ``keys`` (each once) that are valid at or after ``from_ms`` (>= 0), and maybe some older ones.

    Segments are not looked at for a key whose latest value is older than its ``from_ms``.
    """
    latest = raw_column(families.backend.multi_get(families.latest, keys.to_pylist()))
    last = _latest_versions(latest, families.name)
    there = np.diff(last.offsets) > 0
    timestamp = np.zeros(len(keys), np.int64)
    timestamp[there] = last.valid_from
    is_before = there & (timestamp < from_ms)
    first = families.segments_of(from_ms)
    # What is older than the latest value has ended by that value's time.
    newest = np.where(there, families.segments_of(timestamp), families.segment_of(families.header.stream_time))
    rows = _read_rows(families, keys, first, np.where(is_before, -1, newest))
    first_segment = np.where(is_before, newest + 1, first)
    ended_by = np.where(is_before, timestamp, families.starts_of(first) - 1)
    versions = _row_versions(rows, len(keys), families.name).followed_by(last)
    return Loaded(keys, versions, latest, rows, first_segment, ended_by)


def store(
    families: VersionedFamilies, loaded: Loaded, versions: VersionSet, stream_time: int, write: WriteBatch
) -> None:
    """Adds to ``write`` what makes the stored versions of the loaded keys those of ``versions``.

    Raises:
        InternalError: A key was changed at a time before the one from which it was read.
    """
    first_live = families.first_live(stream_time)
    _write_latest(families, loaded, versions, write)
    ended = _ended(families, versions)
    _check_read(ended, loaded, families.name)
    rows = _with_unread(families, loaded, _encoded(ended, versions, first_live))
    stored_as = match_rows(rows.key, rows.segment, loaded.rows.key, loaded.rows.segment)
    stored = loaded.rows.raw.take(pa.array(stored_as, mask=stored_as < 0))
    is_new = _differ(rows.raw, stored)
    keys = encode_segment_keys(rows.segment, loaded.keys.take(pa.array(rows.key)))
    write.put_columns(families.segments, keys.filter(is_new), rows.raw.filter(is_new))

    gone = loaded.rows.segment >= first_live
    gone[stored_as[stored_as >= 0]] = False
    keys = encode_segment_keys(loaded.rows.segment[gone], loaded.keys.take(pa.array(loaded.rows.key[gone])))
    for key in keys.to_pylist():
        write.delete(families.segments, key)


def _latest_versions(raws: Column, store: str) -> VersionSet:
    """Of each key its latest value, if there is one."""
    there = valid_of(raws)
    timestamp, values, flags = decode_latests(raws.drop_null(), store)
    remembered = np.zeros(len(raws), np.bool_)
    remembered[there] = flags
    offsets = np.concatenate([[0], np.cumsum(there)])
    return VersionSet(offsets, timestamp, np.zeros(len(timestamp), np.bool_), values, remembered)


def _row_versions(rows: Rows, keys: int, store: str) -> VersionSet:
    """What rows hold, of each of ``keys`` keys."""
    counts, valid_from, values = decode_rows(rows.raw, store)
    of_key = np.bincount(rows.key, weights=counts, minlength=keys).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(of_key)])
    return VersionSet(offsets, valid_from, ~valid_of(values), values, np.zeros(keys, np.bool_))


def _read_rows(families: VersionedFamilies, keys: Column, first: NDArray[np.int64], last: NDArray[np.int64]) -> Rows:
    """The rows of each key from segment ``first`` to ``last``."""
    asked = first <= last
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], Column]] = []
    if asked.any():
        for segment in families.segment_ids(int(first[asked].min()), int(last[asked].max())):
            wanted = np.flatnonzero((first <= segment) & (segment <= last))
            found.append(_rows_of(families, keys, wanted, np.full(len(wanted), segment)))
    if not found:
        nothing = np.empty(0, np.int64)
        return Rows(nothing, nothing, raw_column([]))
    keys_of, segments, raws = zip(*found, strict=True)
    key = np.concatenate(keys_of)
    order = np.argsort(key, kind="stable")
    return Rows(key[order], np.concatenate(segments)[order], pa.concat_arrays(raws).take(pa.array(order)))


def _rows_of(
    families: VersionedFamilies, keys: Column, key: NDArray[np.int64], segment: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Column]:
    """Key, segment and bytes of those rows that exist."""
    row_keys = encode_segment_keys(segment, keys.take(pa.array(key)))
    raws = raw_column(families.backend.multi_get(families.segments, row_keys.to_pylist()))
    there = valid_of(raws)
    return key[there], segment[there], raws.drop_null()


def _write_latest(families: VersionedFamilies, loaded: Loaded, versions: VersionSet, write: WriteBatch) -> None:
    last = versions.offsets[1:] - 1
    there = np.diff(versions.offsets) > 0
    there[there] = ~versions.is_tombstone[last[there]]
    last = last[there]
    raws = encode_latests(versions.valid_from[last], versions.values.take(pa.array(last)), versions.remembered[there])
    keys, stored = loaded.keys.filter(pa.array(there)), loaded.latest.filter(pa.array(there))
    is_new = _differ(raws, stored)
    write.put_columns(families.latest, keys.filter(is_new), raws.filter(is_new))
    for key in loaded.keys.filter(pa.array(~there & valid_of(loaded.latest))).to_pylist():
        write.delete(families.latest, key)


def _check_read(ended: _Ended, loaded: Loaded, store: str) -> None:
    """Raises `InternalError`: see `store`."""
    unread = ended.valid_to <= loaded.ended_by[ended.key]
    if unread.any():
        at = int(np.argmax(unread))
        raise InternalError(
            f"a version ends at {ended.valid_to[at]}, but what ended by {loaded.ended_by[ended.key[at]]} was not read",
            store=store,
        )


def _with_unread(families: VersionedFamilies, loaded: Loaded, rows: Rows) -> Rows:
    """Rows that are to be written without having been read, with what they hold before: copied, not decoded.

    A key whose latest value was older than what was asked has at most one: that in which this value ends, if others
    ended there before.
    """
    unread = np.flatnonzero(rows.segment < loaded.first_segment[rows.key])
    if len(unread) == 0:
        return rows
    keys = encode_segment_keys(rows.segment[unread], loaded.keys.take(pa.array(rows.key[unread])))
    before = [b""] * len(rows.key)
    for row, raw in zip(unread.tolist(), families.backend.multi_get(families.segments, keys.to_pylist()), strict=True):
        before[row] = raw or b""
    return Rows(rows.key, rows.segment, extend_rows(raw_column(before), rows.raw, families.name))


def _ended(families: VersionedFamilies, versions: VersionSet) -> _Ended:
    key = versions.key_of()
    is_ended = versions.is_tombstone.copy()
    is_ended[:-1] |= key[1:] == key[:-1]
    ends = np.where(versions.is_tombstone, versions.valid_from, np.roll(versions.valid_from, -1))
    version = np.flatnonzero(is_ended)
    return _Ended(version, key[version], ends[version], families.segments_of(ends[version]))


def _encoded(ended: _Ended, versions: VersionSet, first_live: int) -> Rows:
    """The rows of live segments."""
    live = ended.segment >= first_live
    version, key, segment = ended.version[live], ended.key[live], ended.segment[live]
    is_first = np.ones(len(version), np.bool_)
    is_first[1:] = (key[1:] != key[:-1]) | (segment[1:] != segment[:-1])
    first = np.flatnonzero(is_first)
    offsets = np.append(first, len(version))
    values = versions.values.take(pa.array(version))
    raw = encode_rows(offsets, ended.valid_to[live][offsets[1:] - 1], versions.valid_from[version], values)
    return Rows(key[first], segment[first], raw)


def _differ(raws: Column, stored: Column) -> pa.BooleanArray:
    """Whether each is not what is stored, if anything is."""
    return pc.fill_null(pc.not_equal(raws, stored), True)
