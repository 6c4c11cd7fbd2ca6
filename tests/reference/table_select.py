"""A table's changes under other keys, a change at a time (KTableRepartitionMap)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.table import Change


def regrouped(change: Change, group: Callable[[Any], Any], value: Callable[[Any], Any]) -> list[tuple[Any, Any, Any]]:
    """Group, new and old value of each record that is sent."""
    if not change.is_latest:
        return []

    def pair(row: Any) -> tuple[Any, Any] | None:
        made = None if row is None else (group(row), value(row))
        return None if made is None or None in made else made

    new, old = pair(change.new), pair(change.old)
    if new and old and new[0] == old[0]:
        return [(new[0], new[1], old[1])]
    return [
        (made[0], *values) for made, values in ((old, (None, old and old[1])), (new, (new and new[1], None))) if made
    ]
