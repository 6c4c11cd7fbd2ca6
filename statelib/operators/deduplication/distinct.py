"""``distinct()`` of a windowed stream: the first record of each new window, and no other (KIP-655, initial proposal).

A window exists from its first record on; records that fall into it are duplicates. For sessions these are all records
that extend or merge existing ones. So this is a count by window of which only the ones are forwarded, each with the
record that made it: the same windows, grace and state as any windowed aggregation has. The clock is the task's, as in
the KIP's other operators.

The result has the record's value, timestamp and headers under the windowed key. Accounts: ``forwarded``, ``duplicate``,
and those of records that no window takes: ``late``, ``null-key``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.operators.aggregation.definition import single
from statelib.operators.aggregation.sql_functions import count
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.windows.definition import SessionWindows
from statelib.operators.windows.operator import WindowAggregate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.operators.base import OperatorContext
    from statelib.operators.sessions.operator import RunningSessionAggregate
    from statelib.operators.windows.day_windows import DayWindows
    from statelib.operators.windows.operator import RunningWindowAggregate
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.spec import StoreSpec
from statelib.operators.windows.definition import TimeWindows


@dataclass(frozen=True, slots=True)
class Distinct:
    """Keeps the first record of each window.

    Attributes:
        store: Name of the window or session store.
        windows: Tumbling windows, days or sessions.
        retention_ms: How long windows stay in the store; None: as long as they take records.
    """

    store: str
    windows: TimeWindows | DayWindows | SessionWindows
    retention_ms: int | None = None

    @property
    def counted(self) -> WindowAggregate | SessionAggregate:
        """How many records each window has had."""
        if isinstance(self.windows, SessionWindows):
            return SessionAggregate(self.store, self.windows, single(count()), self.retention_ms, clock="task")
        return WindowAggregate(self.store, self.windows, single(count()), self.retention_ms, clock="task")

    def build(self, context: OperatorContext) -> RunningDistinct:
        """The running operator."""
        return RunningDistinct(self, context)

    def check(self, node: str) -> None:
        """Windows must not be gone from the store before they close."""
        self.counted.check(node)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {**self.counted.describe(), "operator": "distinct"}

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of the store."""
        return self.counted.state_stores()


class RunningDistinct:
    """A running `Distinct`."""

    def __init__(self, spec: Distinct, context: OperatorContext) -> None:
        self._metrics = context.metrics
        self._counts: RunningWindowAggregate | RunningSessionAggregate = spec.counted.build(context)

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The records that open a window."""
        (batch,) = inputs
        # An update has the headers of the record that made it: the number of its row takes their place.
        counts = self._counts.process((replace(batch, headers=pa.array(np.arange(len(batch)))),), uptake)
        first = counts.filter(np.asarray(pc.fill_null(pc.equal(counts.value, pa.scalar(1, pa.int64())), False)))
        rows = cast("pa.Array", first.headers)
        taken = self._metrics.accounts.pop("aggregated", 0)
        self._metrics.account("forwarded", len(first))
        self._metrics.account("duplicate", taken - len(first))
        self._metrics.records_out += len(first) - len(counts)
        return replace(
            first,
            value=batch.value.take(rows),
            timestamp=batch.timestamp[np.asarray(rows)],
            headers=batch.headers_at(rows),
        )

    def flush(self, write: WriteBatch) -> None:
        """Writes the counts of the windows touched since the last flush."""
        self._counts.flush(write)

    def open_windows(self) -> int:
        """See `WindowedOperator`."""
        return self._counts.open_windows()

    def memory_bytes(self) -> int:
        """Size of the working set."""
        return self._counts.memory_bytes()
