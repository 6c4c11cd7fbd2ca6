"""What a family of RocksDB was given as table files, kept at hand until it expires.

A family in order of time that outgrows memory is given a table file at each spill, and most of them expire as ranges
before the checkpoint. To be rid of these RocksDB would read everything and write the rest anew. So a second link to
each file is kept: a family of which all else has expired, too, is made anew of the files that hold something yet, and
nothing is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Keys:
    """Where keys lie: from ``first`` to ``last``, both inclusive."""

    first: bytes
    last: bytes

    def and_those(self, others: Keys | None) -> Keys:
        """Where these lie, and those."""
        return self if others is None else Keys(min(self.first, others.first), max(self.last, others.last))


@dataclass(frozen=True, slots=True)
class Table:
    """A table file, by its second link."""

    file: Path
    keys: Keys


@dataclass(frozen=True, slots=True)
class Range:
    """Keys that were deleted: from ``first`` (inclusive) to ``end`` (exclusive)."""

    first: bytes
    end: bytes

    def has(self, keys: Keys) -> bool:
        """Whether all of them are among these."""
        return self.first <= keys.first and keys.last < self.end

    def has_some(self, keys: Keys) -> bool:
        """Whether any of them may be among these."""
        return self.first <= keys.last and keys.first < self.end


Step: TypeAlias = Table | Range


class KeptTables:
    """The table files of one family.

    Args:
        others: Where the keys lie that the family has already; None: it has none.
    """

    def __init__(self, others: Keys | None) -> None:
        self._others = others
        self._steps: list[Step] = []
        self._has_less = False

    def keep(self, table: Table) -> None:
        """Takes charge of the second link to a file that the family is given."""
        self._steps.append(table)

    def add_others(self, keys: Keys) -> None:
        """Takes note of keys that the family is given, or loses, in another way."""
        self._others = keys.and_those(self._others)

    def expire(self, gone: Range) -> None:
        """Takes note of a range that was deleted, and forgets the files and ranges that lie in it."""
        if self._others is not None and gone.has(self._others):
            self._others = None
        kept: list[Step] = []
        for step in self._steps:
            if isinstance(step, Range):
                if not (gone.first <= step.first and step.end <= gone.end):
                    kept.append(step)
            elif gone.has(step.keys):
                step.file.unlink()
                self._has_less = True
            else:
                kept.append(step)
        if any(isinstance(step, Table) and gone.has_some(step.keys) for step in kept):
            kept.append(gone)
        self._steps = kept

    def steps_anew(self) -> Sequence[Step] | None:
        """What makes the family as it is, in this order; None: that is not known, or no less than what made it."""
        return self._steps if self._has_less and self._others is None else None
