"""KIP-213's join of two tables by a foreign key, a change at a time, with nothing on its way (and KIP-914)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.reference.table_join import Table, latest, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.table import Change


class Result(NamedTuple):
    """What comes out."""

    key: Any
    value: Any
    timestamp: int


@dataclass
class ForeignKeyJoin:
    """``keeps_left``: a left join."""

    left: Table
    right: Table
    foreign_key: Callable[[Any], Any]
    keeps_left: bool = False

    def change_of_left(self, change: Change) -> list[Result]:
        """The left table has the change already."""
        old, new = (None if row is None else self.foreign_key(row) for row in (change.old, change.new))
        if not change.is_latest or (change.old is None and change.new is None):
            return []
        value, since = latest(self.right, new) if new is not None or self.keeps_left else latest(self.right, old)
        result = Result(change.key, self._joined(change.new, value), max(change.timestamp, since))
        if self.keeps_left:
            return [result]
        if new is None:  # what was joined before is taken back
            return [] if old is None else [result._replace(value=None)]
        return [] if value is None and old in (None, new) else [result]

    def change_of_right(self, change: Change) -> list[Result]:
        """All rows that refer to it, in the order of the bytes of their keys."""
        if not change.is_latest:
            return []
        keys = self.left.values if hasattr(self.left, "values") else self.left.versions
        rows = [(key, self.left.get(key)) for key in sorted(keys, key=str.encode)]
        return [
            Result(key, self._joined(row, change.new), change.timestamp)
            for key, row in rows
            if row is not None and self.foreign_key(row) == change.key
        ]

    def _joined(self, row: Any, value: Any) -> Any:
        return value_of(row, value, "left" if self.keeps_left else "inner")
