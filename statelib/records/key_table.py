"""The dictionary of a task: byte strings to dense integer codes and back.

Operators work on codes: comparing, hashing and indexing by an int64 costs next to nothing, and state per key becomes
an array. Codes count from 0 in order of first appearance, so they are the same whatever the batches were.

Open addressing with linear probing. A slot is one int64 word, so that a probe costs one cache line::

    bits 62..32  31 bits of the key's hash (its low bits give the slot)
    bits 31..0   the code
    -1           empty

The keys themselves lie one after the other in an arena; ``offsets[code]`` to ``offsets[code + 1]`` are the bytes of a
code. At most half of the slots are taken, so a key costs 16 to 32 bytes plus 8 plus its length; in a table with scopes
8 more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import bitmap_of, byte_buffers, indices_of, valid_of
from statelib.columns.gather import gather
from statelib.columns.hashing import hash_bytes, mixed
from statelib.columns.spans import copy_bytes, equal_bytes
from statelib.errors.kinds import ConfigurationError, InternalError
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

MAX_SLOTS = 1 << 31
_FIRST_SLOTS = 1 << 10
_PREFETCH_AHEAD = 24
_EMPTY = -1
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
        if word == _EMPTY:
            return slot
        if word >> 32 == tag:
            code = word & _CODE_MASK
            at = offsets[code]
            same_shape = offsets[code + 1] - at == length and _scope(known_scopes, code) == scope
            if same_shape and equal_bytes(data, start, arena, at, length):
                return slot
        slot = (slot + 1) & mask


@compiled(*(nothing(Bytes, spans, Int64s, Int64sOut) for spans in (Int32s, Int64s)))
def _hash_keys(
    data: NDArray[np.uint8], spans: NDArray[np.int64], scopes: NDArray[np.int64], tags: NDArray[np.int64]
) -> None:
    for i in range(len(tags)):
        tags[i] = _tag(data, spans[i], spans[i + 1], _scope(scopes, i))


_Columns = (Int64sOut, BytesOut, Int64sOut, Int64sOut)


@compiled(
    *(
        several(i64, 2)(Bytes, spans, Int64s, Bools, i64, i64, Int64sOut, *_Columns, boolean)
        for spans in (Int32s, Int64s)
    )
)
def _encode(
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
        if word != _EMPTY:
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
    while slots[slot] != _EMPTY:
        slot = (slot + 1) & mask
    slots[slot] = word


@compiled(nothing(Int64s, Int64sOut))
def _rehash(old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    for word in old:
        if word != _EMPTY:
            _settle(word, new)


@compiled(nothing(Int64s, Int64sOut, *_Columns))
def _keep(
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
    slots[:] = _EMPTY
    mask = len(slots) - 1
    for code in range(len(codes)):
        if code + _PREFETCH_AHEAD < len(codes):
            prefetch(slots, tags[code + _PREFETCH_AHEAD] & mask)
        _settle((tags[code] << 32) | code, slots)


@compiled(nothing(Int64s, Int64s, Int64sOut))
def _measure_keys(codes: NDArray[np.int64], offsets: NDArray[np.int64], spans: NDArray[np.int64]) -> None:
    """Writes where keys lie that are copied one behind the other."""
    spans[0] = 0
    for i in range(len(codes)):
        length = 0 if codes[i] == NULL_KEY else offsets[codes[i] + 1] - offsets[codes[i]]
        spans[i + 1] = spans[i] + length


@compiled(nothing(Int64s, Int64s, Int64sOut, Int64sOut))
def _find_keys(
    codes: NDArray[np.int64], offsets: NDArray[np.int64], start: NDArray[np.int64], length: NDArray[np.int64]
) -> None:
    """Writes where keys lie in the arena; for `NULL_KEY` nothing is written."""
    for i in range(len(codes)):
        if codes[i] != NULL_KEY:
            start[i] = offsets[codes[i]]
            length[i] = offsets[codes[i] + 1] - start[i]


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
            copy_bytes(arena, offsets[codes[i]], data, spans[i], spans[i + 1] - spans[i])


class KeyTable:
    """Byte strings <-> codes 0, 1, 2, ... in order of first appearance.

    Args:
        scoped: Whether each key has a scope, a number from 0 on (such as a code of another table): the same bytes in
            two scopes are two keys.
    """

    def __init__(self, *, scoped: bool = False) -> None:
        self._scoped = scoped
        self.clear()

    def clear(self) -> None:
        """Forgets all keys and gives the memory back; codes start from 0 again."""
        self._slots = np.full(_FIRST_SLOTS, _EMPTY, dtype=np.int64)
        self._arena = np.empty(16 * _FIRST_SLOTS, dtype=np.uint8)
        self._offsets = np.zeros(_FIRST_SLOTS // 2 + 1, dtype=np.int64)
        self._scopes = np.empty(_FIRST_SLOTS // 2 if self._scoped else 0, dtype=np.int64)
        self._known = 0

    def __len__(self) -> int:
        return self._known

    @property
    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        return self._slots, self._arena, self._offsets, self._scopes

    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes of all keys, one after the other (a view, good until the next `encode` or `clear`)."""
        return self._arena[: self._offsets[self._known]]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each key starts in `data`; one more element than keys (a view, as `data`)."""
        return self._offsets[: self._known + 1]

    @property
    def scopes(self) -> NDArray[np.int64]:
        """The scope of each key, by code (a view, as `data`); empty in a table without scopes."""
        return self._scopes[: self._known]

    def encode(self, keys: pa.Array, scopes: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """The codes of ``keys``; unseen keys get the next ones, a null has the code `NULL_KEY`.

        Args:
            keys: binary or string of any layout, or a dictionary of these.
            scopes: int64, one a key, in a table with scopes; a key of the scope `NULL_KEY` is as a null.

        Raises:
            InternalError: There are scopes in a table without, or the other way round.
        """
        return self._lookup(keys, scopes, insert=True)

    def find(self, keys: pa.Array, scopes: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """As `encode`, but a key that has no code gets none: `ABSENT`."""
        return self._lookup(keys, scopes, insert=False)

    def _lookup(self, keys: pa.Array, scopes: NDArray[np.int64] | None, *, insert: bool) -> NDArray[np.int64]:
        if (scopes is not None) != self._scoped:
            raise InternalError("the keys of a table have scopes if and only if it is made for them")
        if isinstance(keys, pa.DictionaryArray):
            if scopes is None:
                return self._lookup_dictionary(keys, insert=insert)
            keys = keys.cast(keys.type.value_type)  # equal values of a dictionary are many keys
        data, spans, valid = byte_buffers(keys)
        scopes = self._scopes if scopes is None else scopes
        codes = np.empty(len(keys), dtype=np.int64)
        _hash_keys(data, spans, scopes, codes)
        done = 0
        while True:
            done, self._known = _encode(data, spans, scopes, valid, done, self._known, codes, *self._columns, insert)
            if done == len(codes):
                return codes
            self._grow(int(spans[done + 1] - spans[done]))

    def _lookup_dictionary(self, keys: pa.DictionaryArray, *, insert: bool) -> NDArray[np.int64]:
        if len(keys.dictionary) == 0 or keys.null_count == len(keys):
            return np.full(len(keys), NULL_KEY, dtype=np.int64)
        indices = indices_of(keys).astype(np.int32, copy=False)
        of_dictionary = self._lookup(keys.dictionary, None, insert=False)
        codes = gather(of_dictionary, indices)
        # Those that are new get codes by first appearance, not by their index.
        if insert and (of_dictionary == ABSENT).any() and (unseen := codes == ABSENT).any():
            unseen &= valid_of(keys)
            self._lookup(keys.dictionary.take(pc.unique(pa.array(indices[unseen]))), None, insert=True)
            codes = gather(self._lookup(keys.dictionary, None, insert=False), indices)
        return codes if keys.null_count == 0 else np.where(valid_of(keys), codes, NULL_KEY)

    def _grow(self, key_length: int) -> None:
        """Makes room for at least one more key of ``key_length`` bytes."""
        needed = int(self._offsets[self._known]) + key_length
        if needed > len(self._arena):
            self._arena = _with_room(self.data, max(needed, 2 * len(self._arena)))
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
            self._offsets = _with_room(self.offsets, size // 2 + 1)
            if self._scoped:
                self._scopes = _with_room(self.scopes, size // 2)

    def keep(self, codes: NDArray[np.int64]) -> None:
        """Forgets all keys but those of ``codes`` (int64, ascending), which become 0, 1, 2, ... in this order.

        The room stays as it is: who forgets keys is about to learn others.
        """
        _keep(codes, np.empty_like(codes), *self._columns)
        self._known = len(codes)

    def take(self, codes: NDArray[np.int64]) -> pa.BinaryArray | pa.LargeBinaryArray:
        """The keys of ``codes`` (int64), null for `NULL_KEY`; large_binary beyond 2 GiB.

        Raises:
            InternalError: A code is none of this table.
        """
        self._check(codes)
        codes = np.ascontiguousarray(codes)
        spans = np.empty(len(codes) + 1, dtype=np.int64)
        _measure_keys(codes, self._offsets, spans)
        data = np.empty(spans[-1], dtype=np.uint8)
        _copy_keys(codes, self._arena, self._offsets, spans, data)
        small = spans[-1] <= np.iinfo(np.int32).max
        buffers = [pa.py_buffer(spans.astype(np.int32) if small else spans), pa.py_buffer(data)]
        kind = pa.binary() if small else pa.large_binary()
        return pa.Array.from_buffers(kind, len(codes), [bitmap_of(codes != NULL_KEY), *buffers])

    def spans(self, codes: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """As `take`, where the keys lie: `data`, and int64 where each begins and how long it is; a null has no bytes.

        Raises:
            InternalError: A code is none of this table.
        """
        self._check(codes)
        start, length = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        _find_keys(np.ascontiguousarray(codes), self._offsets, start, length)
        return self.data, start, length

    def _check(self, codes: NDArray[np.int64]) -> None:
        if len(codes) and (codes.min() < NULL_KEY or codes.max() >= self._known):
            raise InternalError("a code is not in the key table", code=int(codes.max()), keys=self._known)

    def bytes_of(self, code: int) -> bytes:
        """The key of one code.

        Raises:
            InternalError: The code is none of this table.
        """
        if not 0 <= code < self._known:
            raise InternalError("a code is not in the key table", code=code, keys=self._known)
        return self._arena[self._offsets[code] : self._offsets[code + 1]].tobytes()

    def memory_bytes(self, more: int = 0) -> int:
        """What the table takes, or will with so many more keys like those that it has; room that it leaves does not."""
        slots = self._slots.nbytes * (1 + (2 * (self._known + more) > len(self._slots)))
        used = self.data.nbytes + self.offsets.nbytes + self.scopes.nbytes
        return slots + used + used * more // max(self._known, 1)


def _with_room(values: NDArray[Any], size: int) -> NDArray[Any]:
    """``values`` at the front of a larger array, whose rest is not touched: it takes no memory before it is used."""
    larger = np.empty(size, dtype=values.dtype)
    larger[: len(values)] = values
    return larger
