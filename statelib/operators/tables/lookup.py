"""Looks tables up as they are at each record: views (`statelib.operators.tables.view`) at work.

The operator that looks into a table gets, as inputs, what the tables that have the view's stores forward. From that and
the stores it knows what each key has at each instant of the task's order. It forgets all that when the task flushes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.key_codes import key_codes
from statelib.operators.tables.change import only_latest
from statelib.operators.tables.steps import through
from statelib.operators.tables.stored_latest import Found
from statelib.operators.tables.working_set import LatestValues, Updates
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.asking import Asking
    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.view import JoinedView, TableView
    from statelib.operators.tables.working_set import Lookups
    from statelib.records.batch import Batch
    from statelib.records.key_column import KeyColumn


class TableLookup(Protocol):
    """What a table has, at each instant; see the module's docstring."""

    def look_up(self, keys: KeyColumn, lookups: Lookups, changes: Sequence[Batch], asking: Asking) -> Found:
        """Takes up changes and answers questions, in order of sequence.

        Args:
            keys: The key of each question.
            lookups: The questions.
            changes: What the tables with the view's stores forward, in the order of ``view.stores``.
            asking: About those that ask, of functions that make what is found of what is stored.

        Returns:
            This table's values, and since when; `NO_TIMESTAMP` where it has none, or a function has failed.
        """

    def forget(self) -> None:
        """Forgets everything: the stores are written, and key codes end."""

    def memory_bytes(self) -> int:
        """Size of the working set."""


class StoreLookup:
    """A table that has a store, or is made in steps of one that has."""

    def __init__(self, view: TableView, context: OperatorContext) -> None:
        self._view = view
        self._context = context
        self._expiry = view.store.expiry(context)
        self._values: LatestValues | None = None

    def look_up(self, keys: KeyColumn, lookups: Lookups, changes: Sequence[Batch], asking: Asking) -> Found:
        """See `TableLookup`."""
        (forwarded,) = changes
        table, _ = only_latest(forwarded)
        if self._values is None:  # opened here, after the last flush has been written
            stored = self._view.store.stored(self._context, table.value.type, self._view.aggregator)
            self._values = LatestValues(self._context, stored)
        updates = Updates(table.sequence, key_codes(table, self._context), table.timestamp, table.value)
        value, since = self._values.look_up(lookups, updates)
        if self._expiry is not None:
            value = where_there(value, self._expiry.alive(keys, lookups.sequence, table))
        return shown(through(self._view.steps, keys, value, asking), since)

    def forget(self) -> None:
        """See `TableLookup`."""
        self._values = None

    def memory_bytes(self) -> int:
        """See `TableLookup`."""
        return 0 if self._values is None else self._values.memory_bytes()


class JoinedLookup:
    """A join of two tables without a store."""

    def __init__(self, view: JoinedView, context: OperatorContext) -> None:
        self._view = view
        self._left = view.left.lookup(context)
        self._right = view.right.lookup(context)

    def look_up(self, keys: KeyColumn, lookups: Lookups, changes: Sequence[Batch], asking: Asking) -> Found:
        """See `TableLookup`."""
        of_left = len(self._view.left.stores)
        left = self._left.look_up(keys, lookups, changes[:of_left], asking)
        right = self._right.look_up(keys, lookups, changes[of_left:], asking)
        timestamp = np.maximum(left.timestamp, right.timestamp)
        joined = self._view.joined.of(keys, left.value, right.value, timestamp, asking)
        return shown(through(self._view.steps, keys, joined, asking), timestamp)

    def forget(self) -> None:
        """See `TableLookup`."""
        self._left.forget()
        self._right.forget()

    def memory_bytes(self) -> int:
        """See `TableLookup`."""
        return self._left.memory_bytes() + self._right.memory_bytes()


def shown(value: pa.Array, timestamp: NDArray[np.int64]) -> Found:
    """What is found of these values and times: nothing has no time."""
    return Found(value, np.where(valid_of(value), timestamp, NO_TIMESTAMP))


def where_there(value: pa.Array, there: NDArray[np.bool_]) -> pa.Array:
    """The values; null where they are not there."""
    return value if there.all() else value.take(pa.array(np.arange(len(value)), mask=~there))
