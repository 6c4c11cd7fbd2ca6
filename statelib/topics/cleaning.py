"""What of a changelog is to be cleaned, and how (`statelib.topics.cleaner` does it)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from statelib.topics.files import ArchiveFile


@dataclass(frozen=True, slots=True)
class Expiry:
    """Which records are of what the store has expired by time.

    A store may have found its clock in these records, so that of the largest time stays, even as an old tombstone.

    Attributes:
        retention_ms: Records whose time is so much below the largest one, or more, have expired.
        key_tail: What keys end with, of which the field ``time`` counts: a window's start, a session's end, in ms.
            None: the record's timestamp counts.
    """

    retention_ms: int
    key_tail: np.dtype[np.void] | None


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What is cleaned, and how.

    Attributes:
        files: Of one partition, from its first one on.
        dirty_offset: Records before it have been cleaned before.
        by_timestamp: Whether of each key the record with the largest timestamp stays (of several, the last), as a
            versioned store has it; else the last one.
        tombstones_before: Tombstones with smaller offsets go; readers have had the time to see them.
        expiry: Of a store that expires by time; None: of another one.
    """

    files: tuple[ArchiveFile, ...]
    dirty_offset: int
    by_timestamp: bool = False
    tombstones_before: int = 0
    expiry: Expiry | None = None

    @property
    def partition(self) -> int:
        """The partition."""
        return self.files[0].partition

    @property
    def end_offset(self) -> int:
        """Records before it are cleaned."""
        return self.files[-1].last_offset + 1
