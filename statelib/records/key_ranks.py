"""Places of keys in the order of their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.arrow_buffers import spans_of
from statelib.columns.bytes_order import sort_order
from statelib.columns.counting import distinct

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.records.key_table import KeyTable


def bytes_ranks(keys: pa.Array) -> NDArray[np.int64]:
    """int64: the place of each key (binary) in the order of their bytes; equal ones are in any order."""
    return _ranks(sort_order(*spans_of(keys)))


def key_ranks(codes: NDArray[np.int64], keys: KeyTable) -> NDArray[np.int64]:
    """int64[n]: the place of each key among the different ones of ``codes`` (int64[n], none null), from 0."""
    found, number = distinct(codes)
    return distinct_key_ranks(found, keys)[number]


def distinct_key_ranks(codes: NDArray[np.int64], keys: KeyTable) -> NDArray[np.int64]:
    """As `key_ranks`, of codes that are all different."""
    return _ranks(sort_order(*keys.spans(codes)))


def bytes_behind_decide(keys: pa.Array) -> bool:
    """Whether keys (binary) with the same bytes behind each, of which the first is zero, may be in another order.

    That takes two keys of which the longer one begins with the other and goes on with a zero.
    """
    data, start, length = spans_of(keys)
    if len(length) == 0 or length.min() == length.max():
        return False
    return bool((data[start.min() : (start + length).max()] == 0).any())


class AllKeys:
    """All keys of a table that grows and forgets none, and their places; worked out anew when there are more."""

    def __init__(self, table: KeyTable) -> None:
        self.table = table
        self._ranks = np.empty(0, dtype=np.int64)
        self._serialized: pa.Array = table.take(self._ranks)
        self._bytes_behind_decide = False

    @property
    def ranks(self) -> NDArray[np.int64]:
        """int64, by code: the place of each key in the order of their bytes."""
        self._bring_up_to_date()
        return self._ranks

    @property
    def serialized(self) -> pa.Array:
        """The keys (binary), by code."""
        self._bring_up_to_date()
        return self._serialized

    @property
    def bytes_behind_decide(self) -> bool:
        """See the function of this name."""
        self._bring_up_to_date()
        return self._bytes_behind_decide

    def _bring_up_to_date(self) -> None:
        if len(self._ranks) < len(self.table):
            codes = np.arange(len(self.table))
            self._ranks, self._serialized = distinct_key_ranks(codes, self.table), self.table.take(codes)
            self._bytes_behind_decide = bytes_behind_decide(self._serialized)


def _ranks(order: NDArray[np.int64]) -> NDArray[np.int64]:
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
