"""The cut of a slice, one record at a time, as the design states it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def cut(records: Iterable[tuple[int, int | None]], until_ms: int, end_offset: int) -> int:
    """The offset before which a slice ends: that of the first of (offset, timestamp) with timestamp >= ``until_ms``."""
    for offset, timestamp in records:
        if timestamp is not None and timestamp >= until_ms:
            return offset
    return end_offset
