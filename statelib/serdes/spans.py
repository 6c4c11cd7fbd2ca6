"""Values as pieces of one byte array, and what decoders share that read them so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import binary_array, offsets_of, spans_of, valid_of
from statelib.columns.spans import copy_spans
from statelib.serdes.base import Lenient

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class Spans(NamedTuple):
    """``content[start[i]:][:length[i]]`` for each ``i``.

    Attributes:
        content: uint8.
        start: int64[n].
        length: int64[n].
    """

    content: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Spans:
        """Some of them; ``rows`` is an index or a mask."""
        return Spans(self.content, self.start[rows], self.length[rows])

    def binary(self) -> pa.BinaryArray:
        """A copy of their bytes."""
        offsets = offsets_of(self.length)
        data = np.empty(offsets[-1], np.uint8)
        copy_spans(self.content, self.start, self.length, data, offsets[:-1])
        return binary_array(offsets, data, np.ones(len(self.length), np.bool_))


def values_of(data: pa.Array) -> tuple[Spans, NDArray[np.int64]]:
    """The values of a binary array that are not null, and int64[n]: which they are."""
    spans = Spans(*spans_of(data.cast(pa.binary())))
    rows = np.flatnonzero(valid_of(data))
    return spans if len(rows) == len(data) else spans.take(rows), rows


def list_offsets(counts: NDArray[np.int64] | Sequence[int]) -> pa.Array:
    """Where lists of so many items begin and end, one behind the other, for Arrow."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.array(offsets)


def no_reasons(count: int) -> NDArray[np.object_]:
    """object[n]: None, for reasons to be put in."""
    return np.full(count, None, np.object_)


def has_reason(reasons: NDArray[np.object_]) -> NDArray[np.bool_]:
    """bool[n]: not None."""
    return np.not_equal(reasons, None).astype(np.bool_)  # type: ignore[call-overload,no-any-return]


def lenient(values: pa.Array, reasons: NDArray[np.object_]) -> Lenient:
    """Values, but null where there is a reason."""
    bad = has_reason(reasons)
    if bad.any():
        values = values.take(pa.array(np.arange(len(values)), mask=bad))
    return Lenient(values, bad, pa.array(reasons, pa.string()))


def put_together(
    count: int,
    arrow_type: pa.DataType,
    parts: Iterable[tuple[NDArray[np.int64], Lenient]],
    reasons: NDArray[np.object_],
) -> Lenient:
    """What was decoded apart.

    Args:
        count: Of all values.
        arrow_type: Of all values.
        parts: Each with int64[m]: which of the values it has. What is in none is null.
        reasons: object[count]: of values that are in no part.
    """
    parts = list(parts)
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    source = np.full(count, -1)
    at = 0
    for rows, part in parts:
        source[rows] = np.arange(at, at + len(rows))
        reasons[rows] = part.reasons.to_numpy(zero_copy_only=False)
        at += len(rows)
    values = pa.concat_arrays([*(part.values for _, part in parts), pa.nulls(0, arrow_type)])
    bad = has_reason(reasons)
    taken = values.take(pa.array(source, mask=source < 0))
    return Lenient(taken, bad, pa.array(reasons, pa.string()))
