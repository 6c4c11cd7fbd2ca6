"""The time of rows: which are compared, maybe of some keys alone, and when what differs happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.windowed_type import is_windowed_struct
from statelib.comparison.fields import TIMESTAMP
from statelib.records.key_column import KeyColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.records.key_sample import KeySample

_HOUR = 3_600_000
_DAY = 24 * _HOUR
_MOST = 400
_WIDTHS = (_HOUR, _DAY, 7 * _DAY, 28 * _DAY, 364 * _DAY)
_FINE = 4 * 24


@dataclass(frozen=True, slots=True)
class Interval:
    """Rows of some time: the others are left out, as if nobody had written them.

    Attributes:
        since_ms: The first time, in milliseconds since 1970; None: no bound.
        until_ms: The time before which it ends.
        keys: Rows of other keys are left out as well; None: of none.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    keys: KeySample | None = None

    def has(self, rows: pa.RecordBatch | pa.Table) -> NDArray[np.bool_]:
        """bool[rows]: which rows are of it. Those without a time are not."""
        of_time = self._is_in_time(rows)
        if self.keys is None:
            return of_time
        key = _whole(rows.column("key"))
        return of_time & self.keys.has(KeyColumn(key.storage if isinstance(key.type, pa.BaseExtensionType) else key))

    def _is_in_time(self, rows: pa.RecordBatch | pa.Table) -> NDArray[np.bool_]:
        times = times_of(rows)
        if times is None or (self.since_ms, self.until_ms) == (None, None):
            return np.ones(len(rows), np.bool_)
        chosen, times_ms = valid_of(times), times.fill_null(0).to_numpy(zero_copy_only=False)
        if self.since_ms is not None:
            chosen = chosen & (times_ms >= self.since_ms)
        if self.until_ms is not None:
            chosen = chosen & (times_ms < self.until_ms)
        return chosen


ALL_TIMES = Interval()


def times_of(rows: pa.RecordBatch | pa.Table) -> pa.Array | None:
    """The time of each row, int64 in milliseconds: of a window its start, else the timestamp; None: rows have none."""
    key = _whole(rows.column("key"))
    if isinstance(key.type, pa.DictionaryType):
        is_windowed = is_windowed_struct(key.type.value_type)
        key = key.dictionary_decode() if is_windowed else key
    key = key.storage if isinstance(key.type, pa.BaseExtensionType) else key
    if is_windowed_struct(key.type):
        times = pc.struct_field(key, "window_start")
    elif TIMESTAMP in rows.schema.names:
        times = _whole(rows.column(TIMESTAMP))
    else:
        return None
    return times.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


@dataclass(frozen=True, slots=True)
class TimeCounts:
    """How many rows differ, by time: of a window its start, else the timestamp.

    Attributes:
        width_ms: An hour where all that differs spans four days at most, else a day, seven days, or longer.
        starts_ms: Milliseconds since 1970: where each interval with a difference begins, ascending.
        only_a: By interval.
        only_b: By interval.
        changed: By interval.
    """

    width_ms: int
    starts_ms: tuple[int, ...]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    changed: tuple[int, ...]


class TimeTally:
    """Counts rows by hour."""

    def __init__(self) -> None:
        self._counts = {kind: Counter[int]() for kind in ("only_a", "only_b", "changed")}

    def add(self, kind: str, times_ms: NDArray[np.int64]) -> None:
        """Adds rows of a kind."""
        hours, counts = np.unique(times_ms // _HOUR, return_counts=True)
        self._counts[kind].update(dict(zip(hours.tolist(), counts.tolist(), strict=True)))

    def result(self) -> TimeCounts | None:
        """The counts; None: there are none."""
        hours = sorted(set().union(*self._counts.values()))
        if not hours:
            return None
        span = (hours[-1] - hours[0] + 1) * _HOUR
        width = _HOUR
        if span > _FINE * _HOUR:
            width = next((w for w in _WIDTHS[1:] if span <= _MOST * w), -(-span // _MOST // _DAY) * _DAY)
        by = {kind: Counter[int]() for kind in self._counts}
        for kind, counts in self._counts.items():
            for hour, count in counts.items():
                by[kind][hour * _HOUR // width] += count
        starts = sorted(set().union(*by.values()))
        return TimeCounts(
            width,
            tuple(start * width for start in starts),
            *(tuple(by[kind][start] for start in starts) for kind in ("only_a", "only_b", "changed")),
        )
