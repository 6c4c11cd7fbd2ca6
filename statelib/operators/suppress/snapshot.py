"""What suppress holds back, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.described.stored_values import buffered_columns
from statelib.described.view import View, key_column, plain_column, time_column
from statelib.operators.suppress.definition import wait_ms
from statelib.operators.suppress.store import SuppressionBufferStore
from statelib.operators.windows.definition import windows_of
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw
    from statelib.operators.suppress.codec import BufferedRows
    from statelib.operators.windows.definition import AnyWindows

_END_OF_TIME = (1 << 63) - 2


class DescribedBuffer:
    """A buffer as its description has it."""

    def __init__(self, described: Described) -> None:
        settings = described.settings
        self._name = described.name
        self.windows = described_windows(settings)
        self.suffix_words = self.windows.key_suffix_words if self.windows else 0
        self.wait_ms = wait_ms(settings["time_limit_ms"], self.windows, settings.get("held_ms", 0), described.semantics)

    def waiting(self, place: Place) -> Iterator[tuple[BufferedRows, dict[str, pa.Array]]]:
        """What waits, and the columns of its rows."""
        store = SuppressionBufferStore(place.backend, self._name, suffix_words=self.suffix_words)
        left_until_ms = max(place.clocks.get("stream_time", NO_TIMESTAMP) - self.wait_ms, -1)
        for buffered in store.everything(left_until_ms):
            yield buffered, buffered_columns(store.header, buffered.row)


def described_windows(settings: Mapping[str, Any]) -> AnyWindows | None:
    """The windows of the table that is suppressed; None: it has none."""
    return None if settings["windows"] is None else windows_of(settings["windows"])


def suppression_view(described: Described) -> View:
    """The updates that are held back, one a key, and when they leave; windows if the table has them."""
    buffer = DescribedBuffer(described)
    windows, waits_ms = buffer.windows, buffer.wait_ms

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        del ask
        for buffered, row in buffer.waiting(place):
            bounds = {"window_start": buffered.start, "window_end": buffered.end} if windows else {}
            leaves_at = np.minimum(buffered.time, _END_OF_TIME - waits_ms) + waits_ms
            yield {
                "key": buffered.key,
                **bounds,
                "value": row["value"],
                "timestamp": row["timestamp"],
                "leaves_at": leaves_at,
            }

    bounds = {"window_start": time_column(), "window_end": time_column()} if windows else {}
    columns = {
        "key": key_column(described),
        **bounds,
        "value": plain_column(described.type("value")),
        "timestamp": time_column(),
        "leaves_at": time_column(),
    }
    return View(columns, scan, "key", "window_start" if windows else "timestamp")
