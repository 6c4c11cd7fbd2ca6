"""Joins of two tables by key, a change at a time (KTableKTableInnerJoin, -LeftJoin, -RightJoin, -OuterJoin)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tests.reference.table import Change, HistoryTable, PlainTable

Kind = Literal["inner", "left", "outer"]
Table = PlainTable | HistoryTable


def latest(table: Table, key: Any) -> tuple[Any, int]:
    """What a table has for a key, and since when."""
    if isinstance(table, PlainTable):
        return table.values.get(key, (None, -1))
    value = table.get(key)
    return value, -1 if value is None else max(table.versions[key])


def value_of(left: Any, right: Any, kind: Kind) -> Any:
    """What a key has in the join."""
    there = {
        "inner": left is not None and right is not None,
        "left": left is not None,
        "outer": left is not None or right is not None,
    }
    return (left, right) if there[kind] else None


@dataclass
class TableJoin:
    """The join of what one side forwards with what the other has."""

    kind: Kind

    def change(self, change: Change, other: tuple[Any, int], *, is_left: bool) -> list[Change]:
        if not change.is_latest:
            return []
        value, since = other
        keeps_own = self.kind == "outer" or (self.kind == "left" and is_left)
        if value is None and not (keeps_own and (change.new is not None or change.old is not None)):
            return []

        def joined(own: Any) -> Any:
            return value_of(own, value, self.kind) if is_left else value_of(value, own, self.kind)

        return [Change(change.key, joined(change.new), joined(change.old), max(change.timestamp, since))]
