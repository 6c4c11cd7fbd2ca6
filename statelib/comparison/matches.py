"""Which rows of two sides differ, by their hashes alone."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import taken_rows, valid_of
from statelib.comparison.buckets import Buckets, HashedRows, bits_for
from statelib.comparison.fields import TIMESTAMP
from statelib.comparison.matching_kernel import DELETED, NONE, count_rows, put_newest, surplus_rows
from statelib.comparison.row_words import hash_columns
from statelib.comparison.times import ALL_TIMES

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.comparison.fields import Fields
    from statelib.comparison.sides import Side
    from statelib.comparison.times import Interval

Way = Literal["latest", "set", "order"]

_MOST_FILTER_BITS = 26
_FILTER_BITS_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Resources:
    """What a comparison may use; no result depends on it.

    Attributes:
        scratch: A folder, which is there, for what does not fit into memory.
        budget_bytes: Memory for rows.
        rows_a_bucket: How many rows are matched at a time.
    """

    scratch: Path
    budget_bytes: int = 512 * 2**20
    rows_a_bucket: int = 1 << 16


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Rows that have found no like on the other side.

    Attributes:
        equal: How many have: of ``latest`` keys, of ``set`` records of each side.
        a: int64, places of rows of A.
        b: int64, places of rows of B. Of ``latest`` as long as ``a``: row by row those of the same key, or `NONE`.
        a_keys: uint64, the hashes of their keys: rows of one key lie together.
        b_keys: uint64.
    """

    equal: int
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    a_keys: NDArray[np.uint64]
    b_keys: NDArray[np.uint64]


def hashed(
    batch: pa.RecordBatch,
    first_place: int,
    fields: Fields,
    *,
    identity_has_time: bool,
    deletes: bool,
    within: Interval = ALL_TIMES,
) -> HashedRows:
    """The rows of a batch as hashes, in their order.

    Args:
        batch: Columns of a `Stretch`.
        first_place: Of its first row.
        fields: What is compared.
        identity_has_time: Whether the timestamp is part of what makes a row the same.
        deletes: Whether a null value stands for no row.
        within: Rows of another time are left out.
    """
    places = np.arange(first_place, first_place + len(batch))
    chosen = within.has(batch)
    if not chosen.all():
        places, batch = places[chosen], taken_rows(batch, np.flatnonzero(chosen))
    count = len(batch)
    keys = identity_columns(batch, fields, has_time=identity_has_time)
    contents = hash_columns([field.of(batch) for field in fields.fields], count)
    contents[contents == DELETED] = ~DELETED
    if deletes and batch.column("value").null_count:
        contents[~valid_of(batch.column("value"))] = DELETED
    return HashedRows(hash_columns(keys, count), hash_columns(keys, count, other=True), contents, places)


def identity_columns(rows: pa.RecordBatch, fields: Fields, *, has_time: bool) -> list[pa.Array]:
    """What makes rows the same: the key, and perhaps the timestamp."""
    key = rows.column("key")
    wanted = fields.key
    if isinstance(key.type, pa.DictionaryType):
        if not key.type.value_type.equals(wanted):
            key = key.dictionary_decode().cast(wanted)
    elif isinstance(key.type, pa.BaseExtensionType):
        key = key.storage.cast(wanted)
    elif not key.type.equals(wanted):
        key = key.cast(wanted)
    return [key, rows.column(TIMESTAMP)] if has_time else [key]


def has_time_in_identity(a: Side, b: Side, fields: Fields, way: Way) -> bool:
    """Whether records are the same only if their timestamps are: of a multiset of records that have some."""
    compared = any(field.path == TIMESTAMP for field in fields.fields)
    return way == "set" and a.has_times and b.has_times and compared


def unmatched(
    a: Side, b: Side, fields: Fields, way: Way, resources: Resources, within: Interval = ALL_TIMES
) -> Unmatched:
    """The rows that differ, of those ``within`` a time; ``way`` is ``latest`` or ``set``.

    See the package's docstring.
    """
    has_time = has_time_in_identity(a, b, fields, way)
    known = sum((run.end or 0) - run.start for side in (a, b) for run in side.own)
    bits = bits_for(known or 1 << 22, resources.rows_a_bucket)
    with ExitStack() as open_buckets:
        split = []
        for name, side in (("a", a), ("b", b)):
            file = resources.scratch / f"rows-{name}"
            buckets = open_buckets.enter_context(Buckets(bits, file, resources.budget_bytes // 4))
            for place, batch in side.batches():
                rows = hashed(batch, place, fields, identity_has_time=has_time, deletes=way == "latest", within=within)
                buckets.add(rows._replace(places=rows.places << 1 | 1) if way == "latest" else rows)
            split.append(buckets)
        if way == "set":
            return _joined([_of_set(split[0].bucket(n), split[1].bucket(n)) for n in range(1 << bits)])
        if a.shared and (split[0].rows or split[1].rows):
            _add_shared(a, split[0], split[1], fields, within)
        return _joined([_of_latest(split[0].bucket(n), split[1].bucket(n)) for n in range(1 << bits)])


def _add_shared(a: Side, of_a: Buckets, of_b: Buckets, fields: Fields, within: Interval) -> None:
    """Gives both sides the shared rows of keys that only one of them has rows of; more of them do no harm."""
    bits = min((of_a.rows + of_b.rows).bit_length() + _FILTER_BITS_A_ROW, _MOST_FILTER_BITS)
    wanted = np.zeros(1 << bits, np.bool_)
    for number in range(of_a.count):
        keys_a, keys_b = np.unique(of_a.bucket(number).keys), np.unique(of_b.bucket(number).keys)
        wanted[_filter_place(np.setxor1d(keys_a, keys_b, assume_unique=True), bits)] = True
    if not wanted.any():
        return
    for place, batch in a.batches(shared=True):  # the partitions' first rows, so that the places in B are the same
        rows = hashed(batch, place, fields, identity_has_time=False, deletes=True, within=within)
        keep = wanted[_filter_place(rows.keys, bits)]
        if keep.any():
            kept = HashedRows(rows.keys[keep], rows.checks[keep], rows.contents[keep], rows.places[keep] << 1)
            of_a.add(kept)
            of_b.add(kept)


def _filter_place(keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return keys & np.uint64((1 << bits) - 1)


def _of_latest(a: HashedRows, b: HashedRows) -> Unmatched:
    """The keys whose newest rows differ; keys of which there are shared rows alone do not count."""
    slots = 1 << (2 * (len(a.keys) + len(b.keys)) + 1).bit_length()
    keys, checks = np.empty(slots, np.uint64), np.empty(slots, np.uint64)
    used = np.zeros(slots, np.int64)
    contents = [np.zeros(slots, np.uint64) for _ in range(2)]
    places = [np.full(slots, NONE) for _ in range(2)]
    for rows, content, place in zip((a, b), contents, places, strict=True):
        put_newest(*rows, keys, checks, used, content, place)
    own = ((places[0] & 1) == 1) & (places[0] != NONE) | ((places[1] & 1) == 1) & (places[1] != NONE)
    of_key = np.flatnonzero(own)
    a_content, b_content = (content[of_key] for content in contents)
    differs = a_content != b_content
    there = of_key[differs]
    found = [
        np.where(content[there] == DELETED, NONE, place[there] >> 1)
        for content, place in zip(contents, places, strict=True)
    ]
    order = np.lexsort((found[1], found[0]))
    equal = int(np.count_nonzero((a_content == b_content) & (a_content != DELETED)))
    key_hashes = keys[there][order]
    return Unmatched(equal, found[0][order], found[1][order], key_hashes, key_hashes)


def _of_set(a: HashedRows, b: HashedRows) -> Unmatched:
    """The rows that one side has more often than the other."""
    found = [_surplus(rows, others) for rows, others in ((a, b), (b, a))]
    left_a, left_b = found
    return Unmatched(len(a.keys) - len(left_a), a.places[left_a], b.places[left_b], a.keys[left_a], b.keys[left_b])


def _surplus(rows: HashedRows, others: HashedRows) -> NDArray[np.int64]:
    slots = 1 << (2 * len(others.keys) + 1).bit_length()
    table = np.empty(slots, np.uint64), np.empty(slots, np.uint64), np.zeros(slots, np.int64)
    count_rows(others.keys, others.contents, others.checks, *table)
    found = np.empty(len(rows.keys), np.int64)
    return found[: surplus_rows(rows.keys, rows.contents, rows.checks, *table, found)]


def _joined(parts: list[Unmatched]) -> Unmatched:
    return Unmatched(
        sum(part.equal for part in parts),
        np.concatenate([part.a for part in parts]),
        np.concatenate([part.b for part in parts]),
        np.concatenate([part.a_keys for part in parts]),
        np.concatenate([part.b_keys for part in parts]),
    )
