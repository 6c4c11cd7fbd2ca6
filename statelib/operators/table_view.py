"""How a join looks into a table (Kafka's ``KTableValueGetter``).

Only some tables have a store. A filtered or mapped table without one is looked up in the store of the nearest table
above it that has one, and what is found there takes the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.operators.table_steps import through

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from statelib.operators.aggregations import AggregatorSpec
    from statelib.operators.table_steps import TableStep
    from statelib.operators.table_writer import TableStore


@dataclass(frozen=True, slots=True)
class TableView:
    """Where a table's values are, and how they are made of what is there.

    Attributes:
        store: The store of the table itself, or of one above it.
        steps: From the table that has the store to this one.
        aggregator: What has made that table, if the store holds its states instead of values.
    """

    store: TableStore
    steps: tuple[TableStep, ...] = ()
    aggregator: AggregatorSpec | None = None

    def shown(self, key: pa.Array, value: pa.Array, node: str) -> pa.Array:
        """This table's values, of the values that the table with the store has for ``key``."""
        return through(self.steps, key, value, node)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"store": self.store.name, "steps": [step.describe() for step in self.steps]}
