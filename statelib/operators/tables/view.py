"""How a join looks into a table (Kafka's ``KTableValueGetter``).

Only some tables have a store. A filtered or mapped table without one is looked up in the store of the nearest table
above it that has one, and what is found there takes the same steps (`TableView`). A join of two tables without one is
looked up in both, and what is found there is joined (`JoinedView`). A suppressed table is looked up in its buffer and
in the table above it: `statelib.operators.suppress.view`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.tables.lookup import JoinedLookup, StoreLookup
from statelib.records.key_column import window_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.operators.asking import Asking
    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.mapping import Mapper
    from statelib.operators.tables.lookup import TableLookup
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.tables.stored_latest import LookedInto
    from statelib.records.key_column import KeyColumn
    from statelib.stores.stored_rows import StoredStates


class NamedStore(Protocol):
    """A store that a view is made of."""

    @property
    def name(self) -> str:
        """Its name."""


class AnyView(Protocol):
    """How one looks into a table; immutable and picklable."""

    @property
    def stores(self) -> Sequence[NamedStore]:
        """The stores that are looked into; of each, its node's changes are taken up (`TableLookup`)."""

    def then(self, step: TableStep) -> AnyView:
        """The view of a table that is made of this one."""

    def lookup(self, context: OperatorContext) -> TableLookup:
        """The view at work; ``context``: the operator's that looks."""

    def describe(self) -> Mapping[str, object]:
        """As plain data."""


@dataclass(frozen=True, slots=True)
class TableView:
    """Where a table's values are, and how they are made of what is there.

    Attributes:
        store: The store of the table itself, or of one above it.
        steps: From the table that has the store to this one.
        aggregator: What has made that table, if the store holds its states instead of values.
    """

    store: LookedInto
    steps: tuple[TableStep, ...] = ()
    aggregator: StoredStates | None = None

    @property
    def stores(self) -> tuple[LookedInto, ...]:
        """The one store."""
        return (self.store,)

    def then(self, step: TableStep) -> TableView:
        """The view of a table that is made of this one."""
        return replace(self, steps=(*self.steps, step))

    def lookup(self, context: OperatorContext) -> StoreLookup:
        """See `AnyView`."""
        return StoreLookup(self, context)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"store": self.store.name, "steps": [step.describe() for step in self.steps]}


@dataclass(frozen=True, slots=True)
class JoinedValues:
    """What a key has in the join of two tables.

    Attributes:
        joiner: Makes a value from the columns ``key``, ``left``, ``right``, ``timestamp`` (of the result), and of
            windowed keys ``window_start`` and ``window_end``.
        keeps_left: Whether a left value is joined with null, if there is no right one.
        keeps_right: The same the other way round.
    """

    joiner: Mapper
    keeps_left: bool = False
    keeps_right: bool = False

    def of(
        self,
        keys: KeyColumn,
        left: pa.Array,
        right: pa.Array,
        timestamp: NDArray[np.int64],
        asking: Asking,
    ) -> pa.Array:
        """The joined values, null where there is nothing; the joiner is not asked for those. Null too where it fails.

        Args:
            keys: The keys.
            left: What they have on the left; null: nothing.
            right: The same on the right.
            timestamp: int64, ms, of the results.
            asking: About the records that they are joined for.
        """
        has_left, has_right = valid_of(left), valid_of(right)
        there = (has_left & has_right) | (has_left & self.keeps_left) | (has_right & self.keeps_right)
        columns = {"key": keys.plain, "left": left, "right": right, "timestamp": pa.array(timestamp)}
        columns |= window_columns(keys)
        return asking.evaluate(self.joiner, pa.RecordBatch.from_pydict(columns), there)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"joiner": self.joiner.describe(), "keeps_left": self.keeps_left, "keeps_right": self.keeps_right}


@dataclass(frozen=True, slots=True)
class JoinedView:
    """Where the values of a join of two tables are, and how they are made of what is there.

    Attributes:
        left: Of the one table.
        right: Of the other.
        joined: How their values are joined.
        steps: From the join to this table.
    """

    left: AnyView
    right: AnyView
    joined: JoinedValues
    steps: tuple[TableStep, ...] = ()

    @property
    def stores(self) -> tuple[NamedStore, ...]:
        """Those of the left table, then those of the right one."""
        return (*self.left.stores, *self.right.stores)

    def then(self, step: TableStep) -> JoinedView:
        """The view of a table that is made of this one."""
        return replace(self, steps=(*self.steps, step))

    def lookup(self, context: OperatorContext) -> JoinedLookup:
        """See `AnyView`."""
        return JoinedLookup(self, context)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {
            "left": self.left.describe(),
            "right": self.right.describe(),
            "joined": self.joined.describe(),
            "steps": [step.describe() for step in self.steps],
        }
