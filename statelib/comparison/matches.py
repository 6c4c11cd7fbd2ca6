"""Which rows of two sides differ, by their hashes alone."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, Self

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import taken_rows, valid_of
from statelib.comparison.buckets import Buckets, HashedRows, bits_for
from statelib.comparison.fields import TIMESTAMP
from statelib.comparison.matching_kernel import DELETED, NONE, count_rows, put_newest, surplus_rows
from statelib.comparison.row_words import hash_columns
from statelib.comparison.times import ALL_TIMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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
        matcher: Finds the rows of sinks that differ; None: this process does.
    """

    scratch: Path
    budget_bytes: int = 512 * 2**20
    rows_a_bucket: int = 1 << 16
    matcher: Matcher | None = None


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


class Matcher(Protocol):
    """What `unmatched` is: another way to the same rows, such as over many hosts."""

    def __call__(
        self, a: Side, b: Side, fields: Fields, way: Way, resources: Resources, within: Interval, /
    ) -> Unmatched:
        """See `unmatched`."""


@dataclass(frozen=True, slots=True)
class Hashing:
    """How rows become hashes.

    Attributes:
        fields: What is compared.
        way: How.
        has_time: Whether the timestamp is part of what makes a row the same.
        within: Rows of another time are left out.
    """

    fields: Fields
    way: Way
    has_time: bool
    within: Interval

    def rows(self, first_place: int, batch: pa.RecordBatch, *, shared: bool = False) -> HashedRows:
        """The rows of a batch in their order. Their places are doubled for ``latest``, and odd if not ``shared``.

        Args:
            first_place: Of the first row.
            batch: Columns of a `Stretch`.
            shared: Whether the other side has them too.
        """
        places = np.arange(first_place, first_place + len(batch))
        chosen = self.within.has(batch)
        if not chosen.all():
            places, batch = places[chosen], taken_rows(batch, np.flatnonzero(chosen))
        count = len(batch)
        keys = identity_columns(batch, self.fields, has_time=self.has_time)
        contents = hash_columns([field.of(batch) for field in self.fields.fields], count)
        contents[contents == DELETED] = ~DELETED
        if self.way == "latest":
            places = places << 1 | (not shared)
            if batch.column("value").null_count:
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


def hashing_of(a: Side, b: Side, fields: Fields, way: Way, within: Interval) -> Hashing:
    """How the rows of two sides become hashes."""
    return Hashing(fields, way, has_time_in_identity(a, b, fields, way), within)


def rows_to_read(a: Side, b: Side) -> int:
    """How many rows are compared at most; of stores, which do not know, some number."""
    return sum((run.end or 0) - run.start for side in (a, b) for run in side.own) or 1 << 22


def unmatched(
    a: Side, b: Side, fields: Fields, way: Way, resources: Resources, within: Interval = ALL_TIMES
) -> Unmatched:
    """The rows that differ, of those ``within`` a time; ``way`` is ``latest`` or ``set``.

    See the package's docstring.
    """
    hashing = hashing_of(a, b, fields, way, within)
    bits = bits_for(rows_to_read(a, b), resources.rows_a_bucket)
    with ExitStack() as open_buckets:
        split = []
        for name, side in (("a", a), ("b", b)):
            file = resources.scratch / f"rows-{name}"
            buckets = open_buckets.enter_context(Buckets(bits, file, resources.budget_bytes // 4))
            for place, batch in side.batches():
                buckets.add(hashing.rows(place, batch))
            split.append(buckets)
        of_a, of_b = split
        numbers = range(1 << bits)
        if way == "latest" and a.shared:
            wanted = KeyFilter.for_rows(of_a.rows + of_b.rows)
            for number in numbers:
                wanted.add(keys_of_one_side(of_a.bucket(number), of_b.bucket(number)))
            for place, batch in a.batches(shared=True) if wanted else ():
                kept = wanted.of(hashing.rows(place, batch, shared=True))
                of_a.add(kept)
                of_b.add(kept)
        return matched(of_a, of_b, way, numbers)


def matched(a: Buckets, b: Buckets, way: Way, numbers: Iterable[int]) -> Unmatched:
    """The rows that differ, of the buckets with these numbers.

    Args:
        a: The rows of one side, and for ``latest`` the shared ones of keys that only one side has; more do no harm.
        b: Those of the other side, as well.
        way: How they are compared.
        numbers: Which buckets.
    """
    of_bucket = _of_set if way == "set" else _of_latest
    return joined([of_bucket(a.bucket(number), b.bucket(number)) for number in numbers])


def keys_of_one_side(a: HashedRows, b: HashedRows) -> NDArray[np.uint64]:
    """The hashes of keys that only one side has rows of."""
    return np.setxor1d(np.unique(a.keys), np.unique(b.keys), assume_unique=True)


class KeyFilter:
    """Hashes of keys, and some others, in at most 64 MiB.

    Args:
        bits: ``1 << bits`` places, by the last bits of a hash.
    """

    def __init__(self, bits: int) -> None:
        self._has = np.zeros(1 << bits, np.bool_)
        self._mask = np.uint64((1 << bits) - 1)

    @classmethod
    def for_rows(cls, rows: int) -> Self:
        """For the keys of so many rows."""
        return cls(min(rows.bit_length() + _FILTER_BITS_A_ROW, _MOST_FILTER_BITS))

    def __bool__(self) -> bool:
        return bool(self._has.any())

    def add(self, keys: NDArray[np.uint64]) -> None:
        """Adds keys."""
        self._has[keys & self._mask] = True

    def of(self, rows: HashedRows) -> HashedRows:
        """The rows that have one of the keys, and some others."""
        keep = self._has[rows.keys & self._mask]
        return HashedRows(*(column[keep] for column in rows))


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


def joined(parts: Sequence[Unmatched]) -> Unmatched:
    """What was found in one part of the rows after the other."""
    return Unmatched(
        sum(part.equal for part in parts),
        np.concatenate([part.a for part in parts]),
        np.concatenate([part.b for part in parts]),
        np.concatenate([part.a_keys for part in parts]),
        np.concatenate([part.b_keys for part in parts]),
    )
