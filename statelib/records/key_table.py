"""The dictionary of a task: byte strings to dense integer codes and back.

Operators work on codes: comparing, hashing and indexing by an int64 costs next to nothing, and state per key becomes
an array. Codes count from 0 in order of first appearance, so they are the same whatever the batches were.

How they are found: `statelib.records.key_table_kernel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import any_binary_array, byte_buffers, indices_of, valid_of
from statelib.columns.gather import gather
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.records.batch import NULL_KEY
from statelib.records.key_table_kernel import (
    ABSENT,
    EMPTY,
    copy_keys,
    encode,
    find_keys,
    hash_keys,
    keep_keys,
    measure_keys,
    rehash,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_SLOTS = 1 << 31
_FIRST_SLOTS = 1 << 10


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
        self._slots = np.full(_FIRST_SLOTS, EMPTY, dtype=np.int64)
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
        hash_keys(data, spans, scopes, codes)
        done = 0
        while True:
            done, self._known = encode(data, spans, scopes, valid, done, self._known, codes, *self._columns, insert)
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
            slots = np.full(size, EMPTY, dtype=np.int64)
            rehash(self._slots, slots)
            self._slots = slots
            self._offsets = _with_room(self.offsets, size // 2 + 1)
            if self._scoped:
                self._scopes = _with_room(self.scopes, size // 2)

    def keep(self, codes: NDArray[np.int64]) -> None:
        """Forgets all keys but those of ``codes`` (int64, ascending), which become 0, 1, 2, ... in this order.

        The room stays as it is: who forgets keys is about to learn others.
        """
        keep_keys(codes, np.empty_like(codes), *self._columns)
        self._known = len(codes)

    def take(self, codes: NDArray[np.int64]) -> pa.BinaryArray | pa.LargeBinaryArray:
        """The keys of ``codes`` (int64), null for `NULL_KEY`; large_binary beyond 2 GiB.

        Raises:
            InternalError: A code is none of this table.
        """
        self._check(codes)
        codes = np.ascontiguousarray(codes)
        spans = np.empty(len(codes) + 1, dtype=np.int64)
        measure_keys(codes, self._offsets, spans)
        data = np.empty(spans[-1], dtype=np.uint8)
        copy_keys(codes, self._arena, self._offsets, spans, data)
        return any_binary_array(spans, data, codes != NULL_KEY)

    def spans(self, codes: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """As `take`, where the keys lie: `data`, and int64 where each begins and how long it is; a null has no bytes.

        Raises:
            InternalError: A code is none of this table.
        """
        self._check(codes)
        start, length = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        find_keys(np.ascontiguousarray(codes), self._offsets, start, length)
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
