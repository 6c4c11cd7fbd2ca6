"""What a stream-stream join gives: the results of its kernel as records, and where the records went that it took up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.operators.asking import Asking
from statelib.operators.joins.stream_stream.arrays import (
    EXPIRED,
    FAILED,
    HELD,
    JOINED,
    LONE,
    LONE_WITHOUT_KEY,
    NO_ROW,
    SIDES,
    STORED,
    UNMATCHED,
    WITHOUT_KEY,
    WITHOUT_VALUE,
)
from statelib.records.batch import Batch
from statelib.records.key_column import KeyColumn, window_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.joins.stream_stream.working_set import JoinRows
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Uptake


class JoinResults:
    """See the module's docstring.

    Args:
        context: The operator's.
        joiner: Makes the results' values.
        sides: Whose values the joiner sees as left and right.
    """

    def __init__(self, context: OperatorContext, joiner: Mapper, sides: tuple[int, int] = SIDES) -> None:
        self._context = context
        self._joiner = joiner
        self._sides = sides

    def ask(
        self, keys: KeyColumn, left: pa.Array, right: pa.Array, time: NDArray[np.int64], asking: Asking,
        there: NDArray[np.bool_] | None = None,
    ) -> pa.Array:  # fmt: skip
        """What the joiner gives for pairs of values; ``there`` as for `Asking.evaluate`."""
        columns = {"key": keys.plain, "left": left, "right": right, "timestamp": pa.array(time), **window_columns(keys)}
        return asking.evaluate(self._joiner, pa.RecordBatch.from_pydict(columns), there)

    def values(self, rows: JoinRows, results: NDArray[Any], like: Batch, asking: Asking) -> pa.Array:
        """The values of results (`RESULT`).

        Args:
            rows: What they are made of.
            results: The results.
            like: Has keys of their type.
            asking: About the records that have caused them.
        """
        left, right = (
            rows.values(side, results[name]) for side, name in zip(self._sides, ("left", "right"), strict=True)
        )
        return self.ask(self._keys_of(rows, results, like)[0], left, right, results["time"], asking)

    def caused(
        self, rows: JoinRows, results: NDArray[Any], causes: Batch, on_failure: OnFailure | None
    ) -> tuple[pa.Array, Asking]:
        """The values of the results of some records, and for which of them the joiner has failed; as for `values`."""
        asking = Asking(self._context.node, causes.sequence[results["trigger"]], on_failure)
        return self.values(rows, results, causes, asking), asking

    def records(
        self, rows: JoinRows, results: NDArray[Any], value: pa.Array, causes: Batch,
        due: NDArray[np.int64] | None = None,
    ) -> Batch:  # fmt: skip
        """Results as records.

        Args:
            rows: What they are made of.
            results: `RESULT`.
            value: Their values.
            causes: The records that have caused them, whose headers they have.
            due: int64, the places of results in the order of records that none has caused; these have no headers.
        """
        keys, codes = self._keys_of(rows, results, causes)
        self._context.metrics.records_out += len(results)
        trigger = results["trigger"]
        sequence = causes.sequence[trigger] if due is None else due
        headers = causes.headers
        if headers is not None:
            headers = headers.take(pa.array(trigger)) if due is None else pa.nulls(len(results), headers.type)
        return Batch(keys, codes, value, np.ascontiguousarray(results["time"]), sequence, headers=headers)

    def account(self, arrivals: NDArray[Any], *, met_held: int = 0, left_out: int = 0, held: int = 0) -> None:
        """Accounts for records.

        Args:
            arrivals: `ARRIVAL`, joined.
            met_held: How many were held and have been met.
            left_out: For how many that were held the joiner has failed.
            held: How many are held now.
        """
        metrics, count = self._context.metrics, np.bincount(arrivals["outcome"], minlength=FAILED + 1)
        given_up = metrics.held_after + int(count[HELD]) - met_held - held
        metrics.records_in += len(arrivals)
        metrics.held_after = held
        metrics.account("joined", count[JOINED] + met_held)
        metrics.account("unmatched", count[LONE] + count[UNMATCHED] + given_up - left_out)
        metrics.account("stored", count[STORED])
        metrics.account("null-key", count[LONE_WITHOUT_KEY])
        metrics.drop("null-key", count[WITHOUT_KEY])
        metrics.drop("null-value", count[WITHOUT_VALUE])
        metrics.count("late-record-drop", count[EXPIRED])
        metrics.count("expired-window-record-drop", int(arrivals["expired"].sum()))
        metrics.lateness.observe(arrivals["lateness"][arrivals["outcome"] >= JOINED])

    def drop_late(self, batch: Batch, arrivals: NDArray[Any], uptake: Uptake) -> None:
        """Says which records of one side (`ARRIVAL`, joined) have come too late for anything."""
        late = np.flatnonzero(arrivals["outcome"] == EXPIRED)
        self._context.drop_late(
            batch, late, uptake, arrivals["behind"],
            reason="older than the join's retention", clock="store_time",
        )  # fmt: skip

    def _keys_of(self, rows: JoinRows, results: NDArray[Any], like: Batch) -> tuple[KeyColumn, NDArray[np.int64]]:
        """The keys of results, and their codes."""
        left, right = results["left"], results["right"]
        codes = rows.rows["key_code"][np.where(left != NO_ROW, left, right)]
        return KeyColumn.deserialized(self._context.keys.take(codes), like.keys.type), codes
