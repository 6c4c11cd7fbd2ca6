"""How far the records of a partition are out of order: which are late, and by how much.

A record is late if its timestamp is below the largest one before it in its partition. Of records without a timestamp
nothing is said. The timestamps of a file's first and last records are not in the Delta log, only the least and the
greatest: what that leaves open is told as bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_NEVER = np.iinfo(np.int64).min
"""Below every timestamp."""


class Bounds(NamedTuple):
    """What a number is at least and at most; the same where it is known."""

    least: int
    most: int

    @property
    def exact(self) -> int | None:
        """The number; None: it is only known to lie between the bounds."""
        return self.least if self.least == self.most else None


@dataclass(frozen=True, slots=True)
class Disorder:
    """The records of one partition, or of several, that are late.

    Attributes:
        late_records: How many.
        max_late_ms: By how much the latest of them is late; 0 if none is.
    """

    late_records: Bounds
    max_late_ms: Bounds

    @property
    def is_exact(self) -> bool:
        """Whether both are known."""
        return self.late_records.exact is not None and self.max_late_ms.exact is not None

    def with_those_of(self, other: Disorder) -> Disorder:
        """Of two partitions together."""
        return Disorder(
            Bounds(*(sum(pair) for pair in zip(self.late_records, other.late_records, strict=True))),
            Bounds(*(max(pair) for pair in zip(self.max_late_ms, other.max_late_ms, strict=True))),
        )


IN_ORDER = Disorder(Bounds(0, 0), Bounds(0, 0))
"""Nothing is late."""


def disorder_of_files(rows: NDArray[np.int64], least_ms: NDArray[np.int64], most_ms: NDArray[np.int64]) -> Disorder:
    """What the files of a partition tell, by offset: int64[files] each, with the least and the greatest timestamp."""
    if not len(rows):
        return IN_ORDER
    before = np.concatenate([[_NEVER], np.maximum.accumulate(most_ms)[:-1]])
    begins_late = before > least_ms
    is_all_late = before > most_ms
    of_one_time = least_ms == most_ms
    # The record with the greatest timestamp is not late unless an earlier file has a greater one. One record has the
    # least timestamp; of the others nothing is known, not even whether they have one.
    at_most = np.where(is_all_late, rows, np.where(of_one_time, 0, rows - 1))
    late_ms = np.where(begins_late, before - least_ms, 0)
    within_ms = np.where(of_one_time | (rows < 2), 0, np.maximum(before, most_ms) - least_ms)  # noqa: PLR2004 - a pair
    return Disorder(
        Bounds(int(begins_late.sum()), int(at_most.sum())),
        Bounds(int(late_ms.max()), int(np.maximum(late_ms, within_ms).max())),
    )


def disorder_of_records(timestamps: Iterable[pa.Array]) -> Disorder:
    """That of a partition whose timestamps are read, by offset: exact.

    Args:
        timestamps: Columns of successive batches.
    """
    reached, late, by_ms = _NEVER, 0, 0
    for column in timestamps:
        times = column.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()).drop_null().to_numpy()
        if not len(times):
            continue
        largest = np.maximum(np.maximum.accumulate(times), reached)
        late += int((times < largest).sum())
        by_ms = max(by_ms, int((largest - times).max()))
        reached = int(largest[-1])
    return Disorder(Bounds(late, late), Bounds(by_ms, by_ms))
