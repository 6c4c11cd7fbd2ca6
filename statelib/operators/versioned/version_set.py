"""Versions of many keys as flat arrays: what a compiled kernel walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
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
        remembered: bool[n]: see `statelib.operators.versioned.store`, rule 4. Without meaning for a key that has no
            versions, or whose last one is a tombstone.
    """

    offsets: NDArray[np.int64]
    valid_from: NDArray[np.int64]
    is_tombstone: NDArray[np.bool_]
    values: pa.Array
    remembered: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.remembered)

    def key_of(self) -> NDArray[np.int64]:
        """int64[m]: the key of each version."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def followed_by(self, later: VersionSet) -> VersionSet:
        """Of each key these versions and then those of ``later``, which begin later and say what is remembered."""
        if len(self.valid_from) == 0:
            return later
        order = np.argsort(np.concatenate([self.key_of(), later.key_of()]), kind="stable")
        return VersionSet(
            self.offsets + later.offsets,
            np.concatenate([self.valid_from, later.valid_from])[order],
            np.concatenate([self.is_tombstone, later.is_tombstone])[order],
            pa.concat_arrays([self.values, later.values]).take(pa.array(order)),
            later.remembered,
        )
