"""A hash table on disk: what a working set that has outgrown memory is put aside in.

It is written once and holds distinct keys, each with a few int64. A key that is asked for is *taken out*: whoever asks
has it in memory from then on, so that it is in one place only. What nobody has asked for is left, to be read in the
end. In RocksDB it would cost nearly three times as much, and most of what a store spills has expired before it is to be
kept.

The file is no format that outlives its process: whoever wrote it reads it, and nobody else. It has one row a key, in
order of the keys' hashes as far as buckets tell::

    +---------------------------------------+------------+-----+------------+
    | u64: last half of the hash in bits    | value i64  | ... | key bytes  |
    | 63..32, the key's length in 31..0     |            |     |            |
    +---------------------------------------+------------+-----+------------+

All words are in the machine's byte order. A *bucket* is the rows whose hashes begin with the same bits, thirty-two or
fewer on average. In memory are the row and the place with which each begins, a filter of the keys, and which rows have
been taken: three bytes a row. So a key that is not there seldom costs a look at the file, and one that is there costs
one page of it. The file is mapped: its pages belong to the system, which drops them as it needs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from statelib.columns.arrow_buffers import from_zero, spans_of
from statelib.columns.counting import sort_by
from statelib.columns.key_filter import KeyFilter, hashes_of
from statelib.stores.rows_in_order import rows_a_piece, rows_of_pieces
from statelib.stores.spilled_rows import (
    WORD_BYTES,
    find_buckets,
    find_keys,
    find_left,
    read_word,
    take_out,
    write_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import BinaryIO

    from numpy.typing import NDArray

    from statelib.stores.backend import ColumnOf
    from statelib.stores.byte_columns import Column, Spans

    ValuesOf: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]

_BUCKET_ROWS = 32
_MOST_PIECE_BITS = 14


class SpilledTable:
    """See the module's docstring.

    Args:
        file: A new one, to be written.
        count: How many rows there are: at least one.
        keys: Gives the keys of some rows (int64), binary without nulls; no two are equal.
        values: Gives their values, int64[rows, words], as many words for each.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, file: Path, count: int, keys: ColumnOf, values: ValuesOf) -> None:
        self._file = file
        self._piece_bits = min(_bits(count, rows_a_piece(count, keys)), _MOST_PIECE_BITS)
        self._bits = max(self._piece_bits, _bits(count, _BUCKET_ROWS))
        self._first_row = np.empty((1 << self._bits) + 1, np.int64)
        self._first_byte = np.empty_like(self._first_row)
        self._left = count
        self._taken = np.zeros(-(-count // 8), np.uint8)
        self._filter = KeyFilter(count)
        self._words = values(np.arange(1)).shape[1]
        pieces = self._pieces(count, keys)
        with file.open("xb") as output:
            self._write(output, pieces, keys, values)
        self._rows = np.asarray(np.memmap(file, np.uint8, "r"))

    def __len__(self) -> int:
        """How many rows are left."""
        return self._left

    def _pieces(self, count: int, keys: ColumnOf) -> list[NDArray[np.int64]]:
        """int64: the rows of so many buckets at a time as are written at once, as they come. Also fills the filter."""
        piece = np.empty(count, np.int16)
        at_once = max(1, count >> self._piece_bits)
        for first in range(0, count, at_once):
            some = np.arange(first, min(first + at_once, count))
            hashes = hashes_of(keys(some))
            self._filter.add(hashes)
            piece[some] = _buckets(hashes, self._piece_bits)
        return rows_of_pieces(piece, 1 << self._piece_bits)

    def _write(self, output: BinaryIO, pieces: Iterable[NDArray[np.int64]], keys: ColumnOf, values: ValuesOf) -> None:
        """Writes the rows, and where each bucket begins."""
        row = byte = 0
        more_bits = self._bits - self._piece_bits  # these tell the buckets of a piece apart
        for piece, some in enumerate(pieces):
            some_keys = keys(some)
            hashes, (data, start, length) = hashes_of(some_keys), spans_of(some_keys)
            bucket = _buckets(hashes << np.uint64(self._piece_bits), more_bits)
            order = sort_by(bucket, 1 << more_bits)
            first_row = from_zero(np.bincount(bucket, minlength=1 << more_bits))
            first_byte = from_zero(length[order] + WORD_BYTES * (1 + self._words))
            rows = np.empty(first_byte[-1], np.uint8)
            write_rows(order, hashes, data, start, length, values(some).ravel(), self._words, rows)
            output.write(rows.data)
            here = slice(piece << more_bits, (piece + 1 << more_bits) + 1)
            self._first_row[here] = row + first_row
            self._first_byte[here] = byte + first_byte[first_row]
            row, byte = row + len(some), byte + len(rows)

    def take_out(self, keys: Column, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Takes out keys, each asked for once, given with their hashes (`hashes_of`).

        Returns:
            int64: which of the keys were there and had not been taken; and their values, int64[keys, words].
        """
        asked = np.flatnonzero(self._filter.may_have(hashes))
        asked = asked[np.argsort(hashes[asked])]  # one look after the other goes through the file from front to back
        data, start, length = spans_of(keys)
        found, values = np.empty(len(asked), np.int64), np.empty(len(asked) * self._words, np.int64)
        count = take_out(
            hashes[asked],
            data,
            start[asked],
            length[asked],
            self._rows,
            self._words,
            self._first_row,
            self._first_byte,
            self._bits,
            self._taken,
            found,
            values,
        )
        self._left -= count
        return asked[found[:count]], values[: count * self._words].reshape(count, self._words)

    def left(self) -> NDArray[np.int64]:
        """int64: the places of the rows that have not been taken."""
        places = np.empty(len(self), np.int64)
        find_left(self._rows, self._words, self._taken, places)
        return places

    def keys(self, places: NDArray[np.int64]) -> Spans:
        """The keys at some places, good until `close`."""
        start, length = np.empty_like(places), np.empty_like(places)
        find_keys(self._rows, self._words, places, start, length)
        return self._rows, start, length

    def values(self, places: NDArray[np.int64], word: int) -> NDArray[np.int64]:
        """int64: one word of the values at some places."""
        values = np.empty_like(places)
        read_word(self._rows, word, places, values)
        return values

    def memory_bytes(self) -> int:
        """What it takes in memory."""
        return self._first_row.nbytes + self._first_byte.nbytes + self._taken.nbytes + self._filter.memory_bytes()

    def close(self) -> None:
        """Removes the file."""
        self._file.unlink()


def _bits(count: int, most: int) -> int:
    """How many bits tell so many rows apart that ``most`` have the same on average."""
    return ((count - 1) // most).bit_length()


def _buckets(hashes: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    """int64: the bucket of each hash, out of ``1 << bits``."""
    buckets = np.empty(len(hashes), np.int64)
    find_buckets(hashes, bits, buckets)
    return buckets
