"""Several streams that are aggregated together, into one store (Kafka's ``CogroupedKStream``, KIP-150).

The records of all streams become one batch, in order. A value of it is a struct: the number of the record's ``stream``,
and for each stream, in a field that is called as its number, the record's value; those of other streams are null.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.stream_time import keyed_stream_time
from statelib.operators.aggregation.sql_functions import inputs_of
from statelib.operators.clocks import stream_times
from statelib.operators.key_types import check_types, with_keys_of_one_type
from statelib.operators.mappers.function_errors import among
from statelib.operators.mappers.python_values import items_of
from statelib.records.batch import Batch, concat_in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.sql_functions import Aggregation, Columns
    from statelib.operators.base import OperatorContext
    from statelib.operators.clocks import WindowClock
    from statelib.records.batch import Uptake


def together(inputs: Sequence[Batch], node: str) -> Batch:
    """The records of several streams as one batch.

    Raises:
        ConfigurationError: Their keys cannot meet; ``node`` is named.
    """
    for batch in inputs[1:]:
        one, other = inputs[0].keys.type, batch.keys.type
        what = "streams whose keys differ in type cannot be aggregated together: {} and {}"
        check_types(one, other, node=node, what=what, way_round="map the keys of one stream to the other's type before")
    rows = [replace(batch, value=pa.array(np.arange(len(batch)))) for batch in with_keys_of_one_type(inputs)]
    merged, stream = concat_in_order(rows)
    own_row = np.asarray(merged.value)
    values = [batch.value.take(pa.array(own_row, mask=stream != number)) for number, batch in enumerate(inputs)]
    names = ["stream", *(str(number) for number in range(len(inputs)))]
    return replace(merged, value=pa.StructArray.from_arrays([pa.array(stream, pa.int64()), *values], names))


def streams_of(batch: Batch) -> NDArray[np.int64]:
    """int64: the stream of each record."""
    return np.asarray(batch.value.field(0))


def values_of(batch: Batch, stream: int) -> pa.Array:
    """The values of a stream's records, null for those of others."""
    return batch.value.field(1 + stream)


def of_stream(batch: Batch, stream: int) -> tuple[NDArray[np.int64], Batch]:
    """int64: which of the records are of a stream; and these, with the values that they had there."""
    rows = np.flatnonzero(streams_of(batch) == stream)
    return rows, replace(batch, value=values_of(batch, stream)).take(rows)


def inputs_of_streams(
    functions: Sequence[Aggregation], streams: Sequence[int], batch: Batch, node: str
) -> list[Columns]:
    """What functions see of the records of several streams: each those of its own (``streams``: their numbers)."""
    seen: dict[int, Columns] = {}
    for stream in set(streams):
        rows, own = of_stream(batch, stream)
        places = [place for place, of in enumerate(streams) if of == stream]
        back = np.zeros(len(batch), dtype=np.int64)
        back[rows] = np.arange(len(rows))
        indices = pa.array(back, mask=streams_of(batch) != stream)
        with among(streams_of(batch) == stream):
            columns = inputs_of([functions[at] for at in places], own, node)
        for place, (of, by) in zip(places, columns, strict=True):
            counted = pa.repeat(True, len(own)) if of is None else of  # as if the function had a condition
            seen[place] = counted.take(indices), None if by is None else by.take(indices)
    return [seen[place] for place in range(len(functions))]


def items_of_streams(batch: Batch, chosen: pa.Array) -> list[tuple[int, Any]]:
    """The records at the indices ``chosen`` (int64, null for none) as Python's: the stream's number, and the value."""
    streams = batch.value.field(0).take(chosen).fill_null(0).to_pylist()
    by_stream = [items_of(values_of(batch, number).take(chosen)) for number in range(batch.value.type.num_fields - 1)]
    return [(stream, by_stream[stream][row]) for row, stream in enumerate(streams)]


class CogroupedStreams:
    """The streams of a running aggregation. Mostly it is one, which goes through here as it is.

    Of several, a window closes for all streams at once: by the stream time of all their records. The shipped library
    (``semantics="kafka-4.3"``) has a stream time for each stream.

    Args:
        context: The operator's.
        count: How many streams there are.
        clock: Whose stream time tells what is late.
    """

    def __init__(self, context: OperatorContext, count: int, clock: WindowClock = "operator") -> None:
        self._context = context
        self._count = count
        self._clock = clock

    @property
    def have_own_clocks(self) -> bool:
        """Whether each stream has a stream time of its own, so that the store's may be ahead of it."""
        return self._count > 1 and self._context.semantics != "kip"

    def taken_up(self, inputs: Sequence[Batch]) -> Batch:
        """The records of all streams."""
        return inputs[0] if self._count == 1 else together(inputs, self._context.node)

    def has_value(self, batch: Batch) -> NDArray[np.bool_]:
        """bool: whether each of the records has a value."""
        if self._count == 1:
            return valid_of(batch.value)
        has_value = np.zeros(len(batch), dtype=np.bool_)
        for stream in range(self._count):
            has_value |= valid_of(values_of(batch, stream))
        return has_value

    def stream_times(self, batch: Batch, key_code: NDArray[np.int64], uptake: Uptake) -> NDArray[np.int64]:
        """The stream time that decides whether each record is late, the record itself included; the clock moves on.

        Args:
            batch: The records.
            key_code: int64, their key codes; those with a negative one do not move the clock.
            uptake: What the batch is processed with.

        Returns:
            int64, ms; ascending, unless each stream has a clock of its own.
        """
        clocks = self._context.clocks
        if not self.have_own_clocks:
            times = stream_times(self._clock, batch, key_code, uptake, self._context.clock())
        else:
            times, stream = np.empty(len(batch), dtype=np.int64), streams_of(batch)
            for number in range(self._count):
                own, name = stream == number, f"stream_time-{number}"
                before = self._context.clock(name)
                times[own] = keyed_stream_time(key_code[own], batch.timestamp[own], before)
                clocks[name] = int(times[own].max(initial=before))
        if len(batch):
            clocks["stream_time"] = max(self._context.clock(), int(times.max()))
        return times

    def drop_late(
        self,
        batch: Batch,
        late: NDArray[np.int64],
        uptake: Uptake,
        lateness_ms: NDArray[np.int64],
        *,
        reason: str,
        clock: str = "stream_time",
        account: str = "late",
    ) -> None:
        """See `OperatorContext.drop_late`; late records are shown with the values that they had in their streams."""
        told = {"reason": reason, "clock": clock, "account": account}
        if self._count == 1 or self._context.late is None:
            self._context.drop_late(batch, late, uptake, lateness_ms, **told)
            return
        for stream in range(self._count):
            rows, own = of_stream(batch, stream)
            self._context.drop_late(own, np.flatnonzero(np.isin(rows, late)), uptake, lateness_ms[rows], **told)
