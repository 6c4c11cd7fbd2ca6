"""A key and its window (Kafka's ``Windowed``)."""

from __future__ import annotations

from typing import Any, NamedTuple


class Windowed(NamedTuple):
    """A key and its window (Kafka's ``Windowed``); milliseconds since 1970.

    Attributes:
        key: The plain key.
        window_start: Inclusive.
        window_end: Exclusive for time windows, inclusive for sliding windows and sessions.
    """

    key: Any
    window_start: int
    window_end: int
