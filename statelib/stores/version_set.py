"""Versions of many keys as flat arrays: what a compiled kernel walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.stores.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class VersionSet:
    """The versions of n keys as flat arrays; those of key ``i`` are rows ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes:
        offsets: int64[n + 1].
        valid_from: int64[m], milliseconds, ascending and unique within a key. A version is valid until the next one's
            ``valid_from``; the last one without end.
        is_tombstone: bool[m].
        values: binary[m]; null exactly where ``is_tombstone``.
        remembered: bool[n]: see `statelib.stores.versioned`, rule 4. Without meaning for a key that has no versions, or
            whose last one is a tombstone.
    """

    offsets: NDArray[np.int64]
    valid_from: NDArray[np.int64]
    is_tombstone: NDArray[np.bool_]
    values: pa.Array
    remembered: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.remembered)

    @staticmethod
    def of(timelines: Sequence[Timeline]) -> VersionSet:
        """The same versions as flat arrays."""
        values = [value for timeline in timelines for value in timeline.values]
        return VersionSet(
            np.cumsum([0, *(len(timeline.values) for timeline in timelines)], dtype=np.int64),
            np.array([time for timeline in timelines for time in timeline.valid_from], np.int64),
            np.array([value is None for value in values], np.bool_),
            pa.array(values, pa.binary()),
            np.array([timeline.remembered for timeline in timelines], np.bool_),
        )

    def timelines(self) -> list[Timeline]:
        """The same versions, key by key."""
        values = self.values.to_pylist()
        times = self.valid_from.tolist()
        bounds = zip(self.offsets.tolist(), self.offsets[1:].tolist(), self.remembered.tolist(), strict=False)
        return [Timeline(times[start:end], values[start:end], remembered) for start, end, remembered in bounds]
