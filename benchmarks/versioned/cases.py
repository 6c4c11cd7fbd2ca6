"""What is varied, one thing at a time, and the puts and reads of each case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

START_MS = 1_700_000_000_000
SPAN_MS = 86_400_000
"""From the first put to the last."""


@dataclass(frozen=True)
class Case:
    """A store and what is done with it.

    Attributes:
        versions: Puts a key, on average.
        retention_ms: History retention.
        segments: Segment intervals in the retention.
        zipf: Skew of keys: the n-th busiest has a share of about ``n ** -zipf``; 0: all have as many puts.
        disorder: Share of the puts whose time is earlier, by up to half the retention or of the time that has passed.
    """

    versions: int = 100
    retention_ms: int = SPAN_MS
    segments: int = 24
    zipf: float = 0.0
    disorder: float = 0.0

    @property
    def segment_interval_ms(self) -> int:
        """Width of a segment."""
        return max(self.retention_ms // self.segments, 1)


BASE = Case()
AXES: dict[str, dict[str, Case]] = {
    "versions a key": {f"{n:,}": replace(BASE, versions=n) for n in (1, 10, 100, 1_000, 10_000)},
    "out of order": {f"{share:.0%}": replace(BASE, disorder=share) for share in (0.0, 0.1, 1.0)},
    "segments in the retention": {f"{n:,}": replace(BASE, segments=n) for n in (3, 24, 240)},
    "retention, of the time of all puts": {
        f"{share:g}": replace(BASE, retention_ms=round(SPAN_MS * share)) for share in (0.1, 1, 10)
    },
    "skew of keys (Zipf)": {f"{zipf:g}": replace(BASE, zipf=zipf) for zipf in (0.0, 0.8, 1.1)},
}
"""By what is varied, and by its value."""


@dataclass(frozen=True)
class Operations:
    """Puts, then reads, of a case.

    Attributes:
        keys: How many keys there are.
        put_key: int32[p]: numbers of keys.
        put_time: int64[p]: timestamps, ms.
        put_value: int64[p].
        read_key: int32[r].
        read_time: int64[r]: as of when, within the retention, ms.
    """

    keys: int
    put_key: NDArray[np.int32]
    put_time: NDArray[np.int64]
    put_value: NDArray[np.int64]
    read_key: NDArray[np.int32]
    read_time: NDArray[np.int64]

    def write(self, path: Path) -> None:
        """For both sides: the three counts (int64), then the arrays as above, all big-endian."""
        counts = np.array([self.keys, len(self.put_key), len(self.read_key)], ">i8")
        arrays = (self.put_key, self.put_time, self.put_value, self.read_key, self.read_time)
        big_endian = [array.astype(array.dtype.newbyteorder(">")) for array in arrays]
        path.write_bytes(b"".join(array.tobytes() for array in (counts, *big_endian)))

    @classmethod
    def read(cls, path: Path) -> Operations:
        """What `write` has written."""
        content, position = path.read_bytes(), 24
        keys, puts, reads = map(int, np.frombuffer(content, ">i8", 3))
        arrays = []
        for dtype, count in ((">i4", puts), (">i8", puts), (">i8", puts), (">i4", reads), (">i8", reads)):
            taken = np.frombuffer(content, dtype, count, position)
            position += taken.nbytes
            arrays.append(taken.astype(dtype[1:]))
        return cls(keys, *arrays)


def operations(case: Case, puts: int, reads: int, seed: int) -> Operations:
    """Random ones; times rise evenly but for the disorder. At least one key."""
    chance = np.random.default_rng(seed)
    keys = max(puts // case.versions, 1)
    if case.zipf:
        weights = np.arange(1, keys + 1, dtype=np.float64) ** -case.zipf
        put_key, read_key = (chance.choice(keys, n, p=weights / weights.sum()) for n in (puts, reads))
    else:
        put_key, read_key = np.arange(puts) % keys, chance.integers(0, keys, reads)
    passed = np.arange(puts) * SPAN_MS // puts
    early = chance.random(puts) < case.disorder
    back = (chance.random(puts) * np.minimum(case.retention_ms, passed) / 2).astype(np.int64)
    end = int(passed[-1])
    read_time = chance.integers(max(end - case.retention_ms, 0), end + 1, reads)
    return Operations(
        keys,
        put_key.astype(np.int32),
        START_MS + passed - np.where(early, back, 0),
        chance.integers(0, 1 << 40, puts),
        read_key.astype(np.int32),
        START_MS + read_time,
    )
