"""The dictionary of a task: byte strings to dense integer codes and back.

Operators work on codes: comparing, hashing and indexing by an int64 costs next to nothing, and state per key becomes
an array. Codes count from 0 in order of first appearance, so they are the same whatever the batches were.

Open addressing with linear probing. A slot is one int64 word, so that a probe costs one cache line::

    bits 62..32  31 bits of the key's hash (its low bits give the slot)
    bits 31..0   the code
    -1           empty

The keys themselves lie one after the other in an arena; ``offsets[code]`` to ``offsets[code + 1]`` are the bytes of a
code. At most half of the slots are taken, so a key costs 16 to 32 bytes plus 8 plus its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.batch import NULL_KEY
from statelib.errors import ConfigurationError, InternalError
from statelib.kernels.compiled import (
    Bools,
    Bytes,
    BytesOut,
    Int32s,
    Int64s,
    Int64sOut,
    boolean,
    compiled,
    helper,
    i64,
    load_word,
    nothing,
    prefetch,
    several,
)
from statelib.kernels.hashing import hash_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

ABSENT = -2
"""What `KeyTable.find` gives for a key that has no code."""

MAX_SLOTS = 1 << 31
_FIRST_SLOTS = 1 << 10
_PREFETCH_AHEAD = 12
_EMPTY = -1
_CODE_MASK = (1 << 32) - 1
_TAG_SHIFT = np.uint64(33)


@helper
def _tag(data: NDArray[np.uint8], start: int, end: int) -> int:
    """31 bits of the key's hash."""
    tag: int = i64(hash_bytes(data, start, end) >> _TAG_SHIFT)
    return tag


@helper
def _equal(a: NDArray[np.uint8], a_start: int, b: NDArray[np.uint8], b_start: int, length: int) -> bool:
    position = 0
    while position + 8 <= length:
        if load_word(a, a_start + position) != load_word(b, b_start + position):
            return False
        position += 8
    while position < length:
        if a[a_start + position] != b[b_start + position]:
            return False
        position += 1
    return True


@helper
def _probe(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    tag: int,
    slots: NDArray[np.int64],
    arena: NDArray[np.uint8],
    offsets: NDArray[np.int64],
) -> int:
    """The slot that holds the key ``data[start:end]``, or the empty slot where it belongs."""
    mask = len(slots) - 1
    slot = tag & mask
    length = end - start
    while True:
        word = slots[slot]
        if word == _EMPTY:
            return slot
        if word >> 32 == tag:
            code = word & _CODE_MASK
            at = offsets[code]
            if offsets[code + 1] - at == length and _equal(data, start, arena, at, length):
                return slot
        slot = (slot + 1) & mask


@compiled(*(nothing(Bytes, spans, Int64sOut) for spans in (Int32s, Int64s)))
def _hash_keys(data: NDArray[np.uint8], spans: NDArray[np.int64], tags: NDArray[np.int64]) -> None:
    for i in range(len(tags)):
        tags[i] = _tag(data, spans[i], spans[i + 1])


@compiled(
    *(
        several(i64, 2)(Bytes, spans, Bools, i64, i64, Int64sOut, Int64sOut, BytesOut, Int64sOut, boolean)
        for spans in (Int32s, Int64s)
    )
)
def _encode(
    data: NDArray[np.uint8],
    spans: NDArray[np.int64],
    valid: NDArray[np.bool_],
    first: int,
    known: int,
    codes: NDArray[np.int64],
    slots: NDArray[np.int64],
    arena: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    insert: bool,
) -> tuple[int, int]:
    """Replaces the tags in ``codes`` by codes, from row ``first`` on, until done or out of room.

    Returns:
        The first row that is not done, and the number of known keys.
    """
    count = len(codes)
    mask = len(slots) - 1
    for i in range(first, count):
        if i + _PREFETCH_AHEAD < count:
            prefetch(slots, codes[i + _PREFETCH_AHEAD] & mask)
        if len(valid) and not valid[i]:
            codes[i] = NULL_KEY
            continue
        start: int = i64(spans[i])
        end: int = i64(spans[i + 1])
        tag = codes[i]
        slot = _probe(data, start, end, tag, slots, arena, offsets)
        word = slots[slot]
        if word != _EMPTY:
            codes[i] = word & _CODE_MASK
        elif not insert:
            codes[i] = ABSENT
        else:
            at = offsets[known]
            if at + end - start > len(arena) or 2 * (known + 1) > len(slots):
                return i, known
            for position in range(end - start):
                arena[at + position] = data[start + position]
            offsets[known + 1] = at + end - start
            slots[slot] = (tag << 32) | known
            codes[i] = known
            known += 1
    return count, known


@compiled(nothing(Int64s, Int64sOut))
def _rehash(old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    mask = len(new) - 1
    for word in old:
        if word != _EMPTY:
            slot = (word >> 32) & mask
            while new[slot] != _EMPTY:
                slot = (slot + 1) & mask
            new[slot] = word


@compiled(nothing(Int64s, Int64s, Int64sOut))
def _rehash_kept(old: NDArray[np.int64], renumbered: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    """As `_rehash`, of the keys that have a new code (not `ABSENT`), by old code."""
    mask = len(new) - 1
    for word in old:
        if word != _EMPTY:
            code = renumbered[word & _CODE_MASK]
            if code != ABSENT:
                slot = (word >> 32) & mask
                while new[slot] != _EMPTY:
                    slot = (slot + 1) & mask
                new[slot] = (word >> 32 << 32) | code


@compiled(nothing(Int64s, Bytes, Int64s, Int64sOut, BytesOut))
def _copy_keys(
    codes: NDArray[np.int64],
    arena: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    spans: NDArray[np.int64],
    data: NDArray[np.uint8],
) -> None:
    for i in range(len(codes)):
        if codes[i] != NULL_KEY:
            at = offsets[codes[i]]
            to = spans[i]
            for position in range(spans[i + 1] - to):
                data[to + position] = arena[at + position]


class KeyTable:
    """Byte strings <-> codes 0, 1, 2, ... in order of first appearance."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all keys and gives the memory back; codes start from 0 again."""
        self._slots = np.full(_FIRST_SLOTS, _EMPTY, dtype=np.int64)
        self._arena = np.empty(16 * _FIRST_SLOTS, dtype=np.uint8)
        self._offsets = np.zeros(_FIRST_SLOTS // 2 + 1, dtype=np.int64)
        self._known = 0

    def __len__(self) -> int:
        return self._known

    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes of all keys, one after the other (a view, good until the next `encode` or `clear`)."""
        return self._arena[: self._offsets[self._known]]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each key starts in `data`; one more element than keys (a view, as `data`)."""
        return self._offsets[: self._known + 1]

    def encode(self, keys: pa.Array) -> NDArray[np.int64]:
        """The codes of ``keys``; unseen keys get the next ones, a null has the code `NULL_KEY`.

        Args:
            keys: binary or string of any layout, or a dictionary of these.
        """
        return self._lookup(keys, insert=True)

    def find(self, keys: pa.Array) -> NDArray[np.int64]:
        """As `encode`, but a key that has no code gets none: `ABSENT`."""
        return self._lookup(keys, insert=False)

    def _lookup(self, keys: pa.Array, *, insert: bool) -> NDArray[np.int64]:
        if isinstance(keys, pa.DictionaryArray):
            return self._lookup_dictionary(keys, insert=insert)
        data, spans, valid = _buffers(keys)
        codes = np.empty(len(keys), dtype=np.int64)
        _hash_keys(data, spans, codes)
        done = 0
        while True:
            done, self._known = _encode(
                data, spans, valid, done, self._known, codes, self._slots, self._arena, self._offsets, insert
            )
            if done == len(codes):
                return codes
            self._grow(int(spans[done + 1] - spans[done]))

    def _lookup_dictionary(self, keys: pa.DictionaryArray, *, insert: bool) -> NDArray[np.int64]:
        indices = keys.indices
        if len(keys.dictionary) == 0 or indices.null_count == len(indices):
            return np.full(len(keys), NULL_KEY, dtype=np.int64)
        if insert:  # codes follow first appearance, which a dictionary's order need not
            used = pc.unique(indices.drop_null())
            self._lookup(keys.dictionary.take(used), insert=True)
        codes = self._lookup(keys.dictionary, insert=False)
        rows = np.asarray(pc.fill_null(indices.cast(pa.int64()), 0))
        return np.where(np.asarray(indices.is_valid()), codes[rows], NULL_KEY)

    def _grow(self, key_length: int) -> None:
        """Makes room for at least one more key of ``key_length`` bytes."""
        needed = int(self._offsets[self._known]) + key_length
        if needed > len(self._arena):
            self._arena = np.concatenate([self.data, np.empty(max(needed, len(self._arena)), dtype=np.uint8)])
        if 2 * (self._known + 1) > len(self._slots):
            size = 2 * len(self._slots)
            if size > MAX_SLOTS:
                raise ConfigurationError(
                    f"more than {MAX_SLOTS // 2} different keys are in memory at once",
                    next_step="give the task less memory, shorter slices or fewer keys (more partitions)",
                )
            slots = np.full(size, _EMPTY, dtype=np.int64)
            _rehash(self._slots, slots)
            self._slots = slots
            self._offsets = np.concatenate([self.offsets, np.empty(size // 2 - self._known, dtype=np.int64)])

    def keep(self, codes: NDArray[np.int64]) -> None:
        """Forgets all keys but those of ``codes`` (int64, each once), which become 0, 1, 2, ... in this order.

        The room stays as it is: who forgets keys is about to learn others.
        """
        spans = np.zeros(len(codes) + 1, dtype=np.int64)
        np.cumsum(self._offsets[codes + 1] - self._offsets[codes], out=spans[1:])
        arena = np.empty_like(self._arena)
        _copy_keys(codes, self._arena, self._offsets, spans, arena)
        renumbered = np.full(self._known, ABSENT)
        renumbered[codes] = np.arange(len(codes))
        slots = np.full_like(self._slots, _EMPTY)
        _rehash_kept(self._slots, renumbered, slots)
        self._offsets[: len(spans)] = spans
        self._arena, self._slots, self._known = arena, slots, len(codes)

    def take(self, codes: NDArray[np.int64]) -> pa.BinaryArray | pa.LargeBinaryArray:
        """The keys of ``codes`` (int64), null for `NULL_KEY`; large_binary beyond 2 GiB.

        Raises:
            InternalError: A code is none of this table.
        """
        if len(codes) and (codes.min() < NULL_KEY or codes.max() >= self._known):
            raise InternalError("a code is not in the key table", code=int(codes.max()), keys=self._known)
        null = codes == NULL_KEY
        spans = np.zeros(len(codes) + 1, dtype=np.int64)
        rows = np.where(null, 0, codes)
        np.cumsum(np.where(null, 0, self._offsets[rows + 1] - self._offsets[rows]), out=spans[1:])
        data = np.empty(spans[-1], dtype=np.uint8)
        _copy_keys(np.ascontiguousarray(codes), self._arena, self._offsets, spans, data)
        validity = None if not null.any() else pa.array(~null).buffers()[1]
        small = spans[-1] <= np.iinfo(np.int32).max
        return pa.Array.from_buffers(
            pa.binary() if small else pa.large_binary(),
            len(codes),
            [validity, pa.py_buffer(spans.astype(np.int32) if small else spans), pa.py_buffer(data)],
        )

    def bytes_of(self, code: int) -> bytes:
        """The key of one code.

        Raises:
            InternalError: The code is none of this table.
        """
        if not 0 <= code < self._known:
            raise InternalError("a code is not in the key table", code=code, keys=self._known)
        return self._arena[self._offsets[code] : self._offsets[code + 1]].tobytes()

    def memory_bytes(self) -> int:
        """What the table holds in memory."""
        return self._slots.nbytes + self._arena.nbytes + self._offsets.nbytes


_ALL_VALID = np.empty(0, dtype=np.bool_)


def _buffers(keys: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.signedinteger], NDArray[np.bool_]]:
    """An Arrow array's bytes, int32 or int64 offsets and validity (empty: no nulls), without copying the bytes."""
    kind = keys.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        span: type[np.signedinteger] = np.int32
    else:
        if not (pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)):
            keys = keys.cast(pa.large_binary())  # views and fixed-size binary
        span = np.int64
    _, offsets, data = keys.buffers()
    if offsets is None or len(keys) == 0:
        spans = np.zeros(len(keys) + 1, dtype=span)
    else:
        spans = np.frombuffer(offsets, span, len(keys) + 1, keys.offset * np.dtype(span).itemsize)
    everything = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return everything, spans, np.asarray(keys.is_valid()) if keys.null_count else _ALL_VALID
