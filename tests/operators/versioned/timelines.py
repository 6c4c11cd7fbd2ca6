"""Versions of many keys as flat arrays, and key by key as point access has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.operators.versioned.timeline import Timeline
from statelib.operators.versioned.version_set import VersionSet

if TYPE_CHECKING:
    from collections.abc import Sequence


def version_set(timelines: Sequence[Timeline]) -> VersionSet:
    """Timelines as flat arrays."""
    values = [value for timeline in timelines for value in timeline.values]
    return VersionSet(
        np.cumsum([0, *(len(timeline.values) for timeline in timelines)], dtype=np.int64),
        np.array([time for timeline in timelines for time in timeline.valid_from], np.int64),
        np.array([value is None for value in values], np.bool_),
        pa.array(values, pa.binary()),
        np.array([timeline.remembered for timeline in timelines], np.bool_),
    )


def timelines(versions: VersionSet) -> list[Timeline]:
    """The same versions, key by key."""
    values = versions.values.to_pylist()
    times = versions.valid_from.tolist()
    bounds = zip(versions.offsets.tolist(), versions.offsets[1:].tolist(), versions.remembered.tolist(), strict=False)
    return [Timeline(times[start:end], values[start:end], remembered) for start, end, remembered in bounds]
