"""The join of a stream with itself that has one store (KIP-862, Kafka's ``KStreamKStreamSelfJoin``).

It gives what the join of two streams gives if both are the same one, and stores each record once. A record first meets,
as the left one, those that have come before it; then, as the right one, those and itself, in order of time.

As shipped (``semantics="kafka-4.3"``) a record gives a result with itself whether the windows take it or not, and none
if it is as old as the store can still have it, to the millisecond.

In Kafka Streams left and outer joins of a stream with itself become this one, too: nobody is without a match. Records
without a key are dropped there.

Accounts: ``joined``, ``stored`` (it has met nobody, not even itself), ``unmatched`` (nobody can meet it either),
``late``, ``null-key``, ``null-value``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from statelib.operators.asking import Asking, tolerated
from statelib.operators.joins.stream_stream.arrays import (
    ARRIVAL,
    CLOCKS,
    FAILED,
    JOINED,
    LEFT,
    NO_ROW,
    RESULT,
    RIGHT,
    WITHOUT_KEY,
    WITHOUT_VALUE,
    policy_of,
)
from statelib.operators.joins.stream_stream.changelog import StreamJoinChangelog
from statelib.operators.joins.stream_stream.results import JoinResults
from statelib.operators.joins.stream_stream.self_kernel import join_with_itself
from statelib.operators.joins.stream_stream.state import StreamJoinState, StreamJoinStores
from statelib.operators.joins.stream_stream.store import JoinWindowStore
from statelib.operators.key_codes import key_codes
from statelib.records.batch import NULL_KEY, Batch
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.joins.stream_stream.definition import JoinWindows
    from statelib.operators.joins.stream_stream.operator import StreamStreamJoin
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Uptake
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import WriteBatch

_CLOCK_NAMES = ("stream_time", "left")
"""Of `CLOCKS`, as they are saved: of the join, and of its store."""

_FIRST_RESULTS = 1 << 10


@dataclass(frozen=True, slots=True)
class StreamSelfJoin:
    """Joins a stream with itself.

    Attributes:
        joiner: Makes the result's value from the columns ``key``, ``left``, ``right``, ``timestamp`` (of the result).
        windows: Who meets whom.
        store: Name of the store.
        takes_null_keys: Whether the repartition before it keeps records without a key, as for a left or outer join.
    """

    joiner: Mapper
    windows: JoinWindows
    store: str
    takes_null_keys: bool = False

    @classmethod
    def of(cls, join: StreamStreamJoin) -> Self:
        """What becomes of the join of two streams, if they are one; the left side's store stays."""
        return cls(join.joiner, join.windows, join.left_store, join.takes_null_keys)

    def build(self, context: OperatorContext) -> RunningStreamSelfJoin:
        """The running operator."""
        return RunningStreamSelfJoin(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "stream_self_join",
            "joiner": self.joiner.describe(),
            **self.windows.describe(),
            "store": self.store,
        }

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        settings = {**settings_of(self.describe(), "store", "joiner"), "side": "left"}
        return (StoreSpec(self.store, "join-window", JoinWindowStore.families(self.store), settings),)

    def policy(self, semantics: Semantics) -> NDArray[Any]:
        """`POLICY`, one."""
        return policy_of(self.windows, semantics)


class RunningStreamSelfJoin:
    """The running operator."""

    def __init__(self, spec: StreamSelfJoin, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._metrics = context.metrics
        self._policy = spec.policy(context.semantics)
        self._clocks = np.zeros(1, dtype=CLOCKS)
        for name in _CLOCK_NAMES:
            self._clocks[name] = context.clock(name)
        self._arrivals = max(context.clock("arrivals"), 0)
        self._stores = StreamJoinStores(context, spec.store, None, None)
        self._state: StreamJoinState | None = None
        self._changelog = StreamJoinChangelog([context.changelogs.get(spec.store)], None, context.keys)
        self._results = JoinResults(context, spec.joiner, sides=(LEFT, LEFT))

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The results of each record, in the order of records."""
        (given,) = inputs
        batch = replace(given, key_code=key_codes(given, self._context))
        state = self._opened(batch.value.type)
        arrivals = self._arrivals_of(batch, state)
        if self._context.on_failure is not None:
            self._ask_for_themselves(batch, arrivals)
        results, value = self._join(state, arrivals, batch)
        self._results.drop_late(batch, arrivals, uptake)
        made = self._results.records(state.rows, results, value, batch)
        state.rows.compact(self._expired)
        return made

    def flush(self, write: WriteBatch) -> None:
        """Writes the records that have come since the last flush and may still be met; removes what nobody needs."""
        if self._state is not None:
            self._state.flush(self._expired, write)
            self._state = None

    def memory_bytes(self) -> int:
        """The records of the keys that have been asked for."""
        return 0 if self._state is None else self._state.rows.memory_bytes()

    @property
    def _expired(self) -> tuple[int, int]:
        """The largest time that is out of the store's retention, ms; for either side."""
        expired = int(self._clocks["left"][0]) - self._spec.windows.retention_ms
        return expired, expired

    def _opened(self, value: pa.DataType) -> StreamJoinState:
        """The working set, made now if there is none since the last flush."""
        if self._state is None:
            until = int(self._clocks["left"][0])
            self._state = StreamJoinState(self._context.keys, self._stores, (value, value), (until, until))
        return self._state

    def _arrivals_of(self, batch: Batch, state: StreamJoinState) -> NDArray[Any]:
        """`ARRIVAL`; those with key and value have rows."""
        has_value, codes = np.asarray(batch.value.is_valid()), key_codes(batch, self._context)
        arrivals = np.zeros(len(batch), dtype=ARRIVAL)
        arrivals["time"] = batch.timestamp
        arrivals["outcome"] = np.where(has_value, np.where(codes != NULL_KEY, JOINED, WITHOUT_KEY), WITHOUT_VALUE)
        taken = np.flatnonzero(arrivals["outcome"] == JOINED)
        value = state.rows.add_values(LEFT, batch.value) + taken
        arrival = self._arrivals + np.arange(len(taken))
        self._arrivals += len(taken)
        arrivals["row"] = NO_ROW
        arrivals["row"][taken] = state.rows.add(LEFT, codes[taken], batch.timestamp[taken], arrival, value)
        return arrivals

    def _ask_for_themselves(self, batch: Batch, arrivals: NDArray[Any]) -> None:
        """Asks for the results of records with themselves, as Kafka does before it does anything else."""
        asking = Asking.of(self._context, batch.sequence)
        there = arrivals["outcome"] == JOINED
        self._results.ask(batch.keys, batch.value, batch.value, batch.timestamp, asking, there)
        arrivals["outcome"][asking.failed] = FAILED

    def _join(self, state: StreamJoinState, arrivals: NDArray[Any], batch: Batch) -> tuple[NDArray[Any], pa.Array]:
        """`RESULT` and the values; of a record for which the joiner fails those before. Keeps clocks and figures."""
        rows = state.rows.rows[arrivals["row"][arrivals["outcome"] == JOINED]]
        windows = self._spec.windows
        least = rows["time"] - max(windows.before_ms, windows.after_ms)
        of_right = np.full(len(rows), RIGHT, dtype=np.int64)  # what a right record meets is the store's
        state.load(of_right, rows["key_code"], least, self._expired)
        room: NDArray[Any] = np.empty(max(2 * len(arrivals), _FIRST_RESULTS), dtype=RESULT)
        none_was_held = np.zeros(len(state.rows.rows), dtype=np.bool_)
        joined, count = join_with_itself(arrivals, self._policy, self._clocks, state.rows.newest, state.rows.rows, room)
        results: NDArray[Any] = joined[:count]
        if self._changelog.wanted:
            self._changelog.add(state.rows, none_was_held, arrivals, results, retention_ms=windows.retention_ms)
        for name in _CLOCK_NAMES:
            self._context.clocks[name] = int(self._clocks[name][0])
        self._context.clocks["arrivals"] = self._arrivals
        on_failure = self._context.on_failure
        value, asking = self._results.caused(state.rows, results, batch, on_failure and tolerated)
        given = np.ones(len(results), np.bool_)
        for at, what in asking.reasons.items():
            row = int(results["trigger"][at])
            if given[at] and on_failure is not None:
                given[at:] &= results["trigger"][at:] != row
                arrivals["outcome"][row] = FAILED
                on_failure(int(batch.sequence[row]), what)
        self._results.account(arrivals)
        return (results, value) if given.all() else (results[given], value.filter(pa.array(given)))
