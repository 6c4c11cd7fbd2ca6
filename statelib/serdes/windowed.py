"""Kafka Streams' serdes of windowed keys: the key's bytes followed by times.

::

    time window      +--------------------+---------------------------+
                     | the key, its serde | start i64, big-endian, ms |
                     +--------------------+---------------------------+
    session          +--------------------+---------+-----------+
                     | the key, its serde | end i64 | start i64 |
                     +--------------------+---------+-----------+

Source: ``org.apache.kafka.streams.state.internals.WindowKeySchema`` and ``SessionKeySchema``, as pipes use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import binary_array, offsets_of, spans_of, valid_of
from statelib.columns.spans import copy_spans
from statelib.columns.times import LAST_TIME_MS, end_of_windows
from statelib.columns.window_grids import described_grid
from statelib.columns.windowed_type import TIME, AlignedKeys, archived, archived_type, as_windowed, windowed_struct
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.serdes.base import Lenient, StrictSerde
from statelib.serdes.spans import Spans, no_reasons, put_together, values_of
from statelib.settings.durations import milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from numpy.typing import NDArray

    from statelib.columns.window_grids import WindowGrid
    from statelib.columns.windowed_type import KeyWindows, WindowedType
    from statelib.serdes.base import Serde

_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class TimeWindowedSerde(StrictSerde):
    """Kafka's ``WindowedSerdes.TimeWindowedSerde``: keys of time windows. The bytes hold the start of the window only.

    Values are ``struct<key, window_start, window_end>``, as in the archives of windowed results.

    Args:
        key: The serde of the plain key.
        window_size_ms: The windows' size; for sliding windows the time difference.
        grid: Computes the end for windows that differ in size: see `KeyWindows`.
    """

    key: Serde
    window_size_ms: int
    grid: WindowGrid | None = None

    @classmethod
    def of(cls, key: Serde, window_size: timedelta | AlignedKeys) -> TimeWindowedSerde:
        """The serde for windows of a size, or for given windows (Kafka's ``WindowedSerdes.timeWindowedSerdeFrom``)."""
        if isinstance(window_size, AlignedKeys):
            return cls(key, window_size.size_ms, window_size.of_keys.grid)
        return cls(key, milliseconds(window_size, "window_size", at_least=1))

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Serde`."""
        return windowed_struct(self.key.arrow_type)

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`.

        Raises:
            InputError: A window is of another size, or has no key.
        """
        present = _present(values, self.arrow_type)
        start, end = _times(present)
        self.check_size(start, end)
        return _with_tails(values, self.key.serialize(present.field("key")), start)

    def check_size(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Looks whether windows (ms) are of the size.

        Raises:
            InputError: One is not.
        """
        if (wrong := end != self._end(start)).any():
            row = int(wrong.argmax())
            of = f"windows of {self.window_size_ms} ms" if self.grid is None else str(self.grid)
            what = f"a window of {end[row] - start[row]} ms in a serde of {of}"
            raise InputError(what, row=row, next_step="declare the serde with the size of the windows")

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        spans, rows = values_of(data)
        start, wrong = _number(spans, _NUMBER_BYTES)
        end = self._end(start)
        return _decoded(len(data), self, spans, rows, _NUMBER_BYTES, start, end, wrong)

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {
            "serde": "time-windowed",
            "type": str(self.arrow_type),
            "key": self.key.describe(),
            "window_size_ms": self.window_size_ms,
            **({} if self.grid is None else {"grid": described_grid(self.grid)}),
        }

    def _end(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.grid is not None:
            times = np.clip(start, 0, LAST_TIME_MS)  # what is none is told as such by the caller
            return np.minimum(self.grid.end_of(times), LAST_TIME_MS)
        return end_of_windows(start, self.window_size_ms)


@dataclass(frozen=True, slots=True)
class SessionWindowedSerde(StrictSerde):
    """Kafka's ``WindowedSerdes.SessionWindowedSerde``: keys of sessions.

    Values are ``struct<key, window_start, window_end>``, as in the archives of sessions; the end is inclusive.

    Args:
        key: The serde of the plain key.
    """

    key: Serde

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Serde`."""
        return windowed_struct(self.key.arrow_type)

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`.

        Raises:
            InputError: A session has no key.
        """
        present = _present(values, self.arrow_type)
        start, end = _times(present)
        return _with_tails(values, self.key.serialize(present.field("key")), end, start)

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        spans, rows = values_of(data)
        start, wrong = _number(spans, _NUMBER_BYTES)
        end, wrong_end = _number(spans, 2 * _NUMBER_BYTES)
        return _decoded(len(data), self, spans, rows, 2 * _NUMBER_BYTES, start, end, wrong | wrong_end | (end < start))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "session-windowed", "type": str(self.arrow_type), "key": self.key.describe()}


@dataclass(frozen=True, slots=True)
class WindowedKeySerde(StrictSerde):
    """The serde of a `WindowedType`: which of the two above it is, its windows tell.

    Args:
        arrow_type: The type.
        key: Of the plain key.
    """

    arrow_type: WindowedType
    key: Serde

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`.

        Raises:
            ConfigurationError: The windows are of several kinds.
        """
        return serde_of_windows(self.arrow_type.windows, self.key).serialize(values.storage)

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        values, bad, reasons = serde_of_windows(self.arrow_type.windows, self.key).deserialize_lenient(data)
        return Lenient(pa.ExtensionArray.from_storage(self.arrow_type, values), bad, reasons)

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "windowed", "type": str(self.arrow_type), "key": self.key.describe()}


@dataclass(frozen=True, slots=True)
class ArchivedKeySerde(StrictSerde):
    """The bytes of a `WindowedType` for keys as archives and people have them: structs, of any depth.

    Args:
        windowed: The type's own serde.
    """

    windowed: WindowedKeySerde

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Serde`."""
        return archived_type(self.windowed.arrow_type)

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`; errors as of `WindowedKeySerde`."""
        return self.windowed.serialize(as_windowed(values.cast(self.arrow_type), self.windowed.arrow_type))

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        values, bad, reasons = self.windowed.deserialize_lenient(data)
        return Lenient(archived(values), bad, reasons)

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return self.windowed.describe()


def serde_of_windows(windows: KeyWindows, key: Serde) -> TimeWindowedSerde | SessionWindowedSerde:
    """The serde of windowed keys.

    Args:
        windows: Of what kind the windows are.
        key: Of the keys without them.

    Raises:
        ConfigurationError: They are of several kinds or sizes, of which no bytes tell the end.
    """
    if windows.kind == "mixed":
        raise ConfigurationError(
            "keys with windows of different kinds or sizes cannot be serialised: the bytes would not tell the windows",
            next_step="merge() streams with windows of one size, or give them plain keys with select_key() before",
        )
    if windows.kind == "session" or windows.size_ms is None:
        return SessionWindowedSerde(key)
    return TimeWindowedSerde(key, windows.size_ms, windows.grid)


def with_windows(
    keys: pa.BinaryArray, windows: KeyWindows, key: Serde, start: NDArray[np.int64], end: NDArray[np.int64]
) -> pa.BinaryArray:
    """The bytes of windowed keys, of those of the keys without their windows.

    Args:
        keys: These bytes; null stays null.
        windows: Of what kind the windows are.
        key: The serde of ``keys``.
        start: int64, ms.
        end: The same.

    Raises:
        ConfigurationError: See `serde_of_windows`.
        InputError: A window is not of the size that the kind has.
    """
    serde, valid = serde_of_windows(windows, key), valid_of(keys)
    start, end = start[valid], end[valid]
    if isinstance(serde, TimeWindowedSerde):
        serde.check_size(start, end)
        return _with_tails(keys, keys.drop_null(), start)
    return _with_tails(keys, keys.drop_null(), end, start)


def _present(values: pa.Array, arrow_type: pa.DataType) -> pa.StructArray:
    """Those that are not null, times in milliseconds.

    Raises:
        InputError: A key or a time is null, or does not fit.
    """
    try:
        present = values.drop_null().cast(arrow_type)
    except pa.ArrowException as error:
        step = f"map them to {arrow_type}"
        raise InputError(f"{values.type} are no windowed keys: {error}", next_step=step) from None
    for name in ("key", "window_start", "window_end"):
        if present.field(name).null_count:
            raise InputError(f"a windowed key without {name}", next_step="leave such records out")
    return present


def _times(present: pa.StructArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    start, end = (np.asarray(present.field(name).cast(pa.int64())) for name in ("window_start", "window_end"))
    return start, end


def _with_tails(values: pa.Array, keys: pa.BinaryArray, *times: NDArray[np.int64]) -> pa.BinaryArray:
    """The keys' bytes, each with its times behind, where ``values`` are not null."""
    content, start, length = spans_of(keys)
    tail = np.stack(times, axis=1).astype(">i8").view(np.uint8).reshape(len(keys), _NUMBER_BYTES * len(times))
    valid = valid_of(values)
    lengths = np.zeros(len(values), np.int64)
    lengths[valid] = length + tail.shape[1]
    offsets = offsets_of(lengths)
    data = np.empty(offsets[-1], np.uint8)
    at = offsets[:-1][valid]
    copy_spans(content, start, length, data, at)
    data[(at + length)[:, None] + np.arange(tail.shape[1])] = tail
    return binary_array(offsets, data, valid)


def _number(spans: Spans, before_end: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """int64[n]: the number that begins so many bytes before the end; bool[n]: where it is none, or no time."""
    content, start, length = spans
    long_enough = length >= before_end
    number = np.zeros(len(start), np.int64)
    at = (start + length - before_end)[long_enough]
    number[long_enough] = content[at[:, None] + np.arange(_NUMBER_BYTES)].view(">i8").reshape(-1)
    wrong = ~long_enough | (number < 0) | (number > LAST_TIME_MS)
    return np.where(wrong, 0, number), wrong


def _decoded(
    count: int,
    serde: TimeWindowedSerde | SessionWindowedSerde,
    spans: Spans,
    rows: NDArray[np.int64],
    tail_bytes: int,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    wrong: NDArray[np.bool_],
) -> Lenient:
    reasons = no_reasons(count)
    short = spans.length < tail_bytes
    reasons[rows[wrong]] = "the bytes behind the key are not the times of a window"
    reasons[rows[short]] = f"less than the {tail_bytes} bytes of a window's times"
    good = ~wrong
    content, begin, length = spans.take(good)
    keys, bad, said = serde.key.deserialize_lenient(Spans(content, begin, length - tail_bytes).binary())
    times = [pa.array(time[good]).cast(TIME) for time in (start, end)]
    values = pa.StructArray.from_arrays([keys, *times], fields=list(serde.arrow_type), mask=pa.array(bad))
    return put_together(count, serde.arrow_type, [(rows[good], Lenient(values, bad, said))], reasons)
