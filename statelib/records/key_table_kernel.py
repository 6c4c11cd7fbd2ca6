"""How the keys of a `KeyTable` lie in memory and are found: compiled loops over its arrays.

Open addressing with linear probing. A slot is one int64 word, so that a probe costs one cache line::

    bits 62..32  31 bits of the key's hash (its low bits give the slot)
    bits 31..0   the code
    -1           empty

The keys themselves lie one after the other in an arena; ``offsets[code]`` to ``offsets[code + 1]`` are the bytes of a
code. At most half of the slots are taken, so a key costs 16 to 32 bytes plus 8 plus its length; in a table with scopes
8 more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.hashing import hash_bytes, mixed
from statelib.columns.spans import copy_bytes, equal_bytes
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
    nothing,
    prefetch,
    several,
)
from statelib.records.batch import NULL_KEY

if TYPE_CHECKING:
    from numpy.typing import NDArray

ABSENT = -2
"""What `KeyTable.find` gives for a key that has no code."""

EMPTY = -1
"""A slot in which there is nothing."""

_PREFETCH_AHEAD = 24
_CODE_MASK = (1 << 32) - 1
_TAG_SHIFT = np.uint64(33)


@helper
def _scope(scopes: NDArray[np.int64], i: int) -> int:
    """That of a key: 0 in a table without scopes."""
    return scopes[i] if len(scopes) else 0


@helper
def _tag(data: NDArray[np.uint8], start: int, end: int, scope: int) -> int:
    """31 bits of the hash of a key and its scope."""
    tag: int = i64((hash_bytes(data, start, end) ^ mixed(np.uint64(scope))) >> _TAG_SHIFT)
    return tag


@helper
def _probe(
    data: NDArray[np.uint8],
    start: int,
    length: int,
    scope: int,
    tag: int,
    slots: NDArray[np.int64],
    arena: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    known_scopes: NDArray[np.int64],
) -> int:
    """The slot that holds the key ``data[start:][:length]`` of ``scope``, or the empty slot where it belongs."""
    mask = len(slots) - 1
    slot = tag & mask
    while True:
        word = slots[slot]
        if word == EMPTY:
            return slot
        if word >> 32 == tag:
            code = word & _CODE_MASK
            at = offsets[code]
            same_shape = offsets[code + 1] - at == length and _scope(known_scopes, code) == scope
            if same_shape and equal_bytes(data, start, arena, at, length):
                return slot
        slot = (slot + 1) & mask


@compiled(*(nothing(Bytes, spans, Int64s, Int64sOut) for spans in (Int32s, Int64s)))
def hash_keys(
    data: NDArray[np.uint8], spans: NDArray[np.int64], scopes: NDArray[np.int64], tags: NDArray[np.int64]
) -> None:
    """Writes the tag of each key."""
    for i in range(len(tags)):
        tags[i] = _tag(data, spans[i], spans[i + 1], _scope(scopes, i))


_Columns = (Int64sOut, BytesOut, Int64sOut, Int64sOut)


@compiled(
    *(
        several(i64, 2)(Bytes, spans, Int64s, Bools, i64, i64, Int64sOut, *_Columns, boolean)
        for spans in (Int32s, Int64s)
    )
)
def encode(
    data: NDArray[np.uint8],
    spans: NDArray[np.int64],
    scopes: NDArray[np.int64],
    valid: NDArray[np.bool_],
    first: int,
    known: int,
    codes: NDArray[np.int64],
    slots: NDArray[np.int64],
    arena: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    known_scopes: NDArray[np.int64],
    insert: bool,
) -> tuple[int, int]:
    """Replaces the tags in ``codes`` by codes, from row ``first`` on, until done or out of room.

    Returns:
        The first row that is not done, and the number of known keys.
    """
    count = len(codes)
    mask, most = len(slots) - 1, len(slots) // 2
    end = offsets[known]
    for i in range(first, count):
        if i + _PREFETCH_AHEAD < count:
            prefetch(slots, codes[i + _PREFETCH_AHEAD] & mask)
        scope = _scope(scopes, i)
        if scope == NULL_KEY or (len(valid) and not valid[i]):
            codes[i] = NULL_KEY
            continue
        start: int = i64(spans[i])
        length: int = i64(spans[i + 1]) - start
        tag = codes[i]
        slot = _probe(data, start, length, scope, tag, slots, arena, offsets, known_scopes)
        word = slots[slot]
        if word != EMPTY:
            codes[i] = word & _CODE_MASK
        elif not insert:
            codes[i] = ABSENT
        else:
            if end + length > len(arena) or known >= most:
                return i, known
            copy_bytes(data, start, arena, end, length)
            end += length
            offsets[known + 1] = end
            if len(scopes):
                known_scopes[known] = scope
            slots[slot] = (tag << 32) | known
            codes[i] = known
            known += 1
    return count, known


@helper
def _settle(word: int, slots: NDArray[np.int64]) -> None:
    """Puts the word of a key that is not in the table into the slot where it belongs."""
    mask = len(slots) - 1
    slot = (word >> 32) & mask
    while slots[slot] != EMPTY:
        slot = (slot + 1) & mask
    slots[slot] = word


@compiled(nothing(Int64s, Int64sOut))
def rehash(old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    """Puts all keys into new slots, which are empty."""
    for word in old:
        if word != EMPTY:
            _settle(word, new)


@compiled(nothing(Int64s, Int64sOut, *_Columns))
def keep_keys(
    codes: NDArray[np.int64],
    tags: NDArray[np.int64],
    slots: NDArray[np.int64],
    arena: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    known_scopes: NDArray[np.int64],
) -> None:
    """Moves the keys of ``codes``, ascending, to the front, and fills the slots with them alone; ``tags`` is room."""
    end = i64(0)
    for code in range(len(codes)):
        at = offsets[codes[code]]
        length = offsets[codes[code] + 1] - at
        copy_bytes(arena, at, arena, end, length)
        if len(known_scopes):
            known_scopes[code] = known_scopes[codes[code]]
        tags[code] = _tag(arena, end, end + length, _scope(known_scopes, code))
        offsets[code] = end
        end += length
    offsets[len(codes)] = end
    slots[:] = EMPTY
    mask = len(slots) - 1
    for code in range(len(codes)):
        if code + _PREFETCH_AHEAD < len(codes):
            prefetch(slots, tags[code + _PREFETCH_AHEAD] & mask)
        _settle((tags[code] << 32) | code, slots)


@compiled(nothing(Int64s, Int64s, Int64sOut))
def measure_keys(codes: NDArray[np.int64], offsets: NDArray[np.int64], spans: NDArray[np.int64]) -> None:
    """Writes where keys lie that are copied one behind the other."""
    spans[0] = 0
    for i in range(len(codes)):
        length = 0 if codes[i] == NULL_KEY else offsets[codes[i] + 1] - offsets[codes[i]]
        spans[i + 1] = spans[i] + length


@compiled(nothing(Int64s, Int64s, Int64sOut, Int64sOut))
def find_keys(
    codes: NDArray[np.int64], offsets: NDArray[np.int64], start: NDArray[np.int64], length: NDArray[np.int64]
) -> None:
    """Writes where keys lie in the arena; for `NULL_KEY` nothing is written."""
    for i in range(len(codes)):
        if codes[i] != NULL_KEY:
            start[i] = offsets[codes[i]]
            length[i] = offsets[codes[i] + 1] - start[i]


@compiled(nothing(Int64s, Bytes, Int64s, Int64sOut, BytesOut))
def copy_keys(
    codes: NDArray[np.int64],
    arena: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    spans: NDArray[np.int64],
    data: NDArray[np.uint8],
) -> None:
    """Writes the bytes of keys to where `measure_keys` has told."""
    for i in range(len(codes)):
        if codes[i] != NULL_KEY:
            copy_bytes(arena, offsets[codes[i]], data, spans[i], spans[i + 1] - spans[i])
