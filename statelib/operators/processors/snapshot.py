"""What custom processors have scheduled, as data; their stores are those of tables, windows and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.described.view import View, plain_column, time_column
from statelib.operators.processors.codec import KEY, decode_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw


def punctuation_view(described: Described) -> View:
    """The calls that a custom processor has scheduled."""
    (family,) = described.store.families

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        del ask
        raw = place.backend.get(family, KEY)
        calls = [] if raw is None else decode_calls(raw, described.store.node)
        yield {
            "due": np.array([call.due_ms for call in calls], np.int64),
            "clock": pa.array(
                ["wall-clock time" if call.by_wall_clock else "stream time" for call in calls], pa.string()
            ),
            "interval_ms": np.array([call.interval_ms for call in calls], np.int64),
            "cancelled": np.array([call.cancelled for call in calls], np.bool_),
            "callback": pa.array([call.callback for call in calls], pa.string()),
        }

    columns = {
        "due": time_column(),
        "clock": plain_column(pa.string()),
        "interval_ms": plain_column(pa.int64()),
        "cancelled": plain_column(pa.bool_()),
        "callback": plain_column(pa.string()),
    }
    return View(columns, scan, None, "due")
