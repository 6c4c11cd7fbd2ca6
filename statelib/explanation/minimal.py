"""Leaves out of a set what changes nothing (delta debugging: Zeller and Hildebrandt, 2002)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Member = TypeVar("_Member")


def minimal(
    members: Sequence[_Member], is_enough: Callable[[Sequence[_Member]], bool], *, most_tests: int
) -> tuple[list[_Member], bool]:
    """Members that are enough, and of which none can be left out alone.

    Args:
        members: All of them, which are enough; in order.
        is_enough: Whether some of them, in order, are.
        most_tests: How often to ask.

    Returns:
        What is left, and whether each of it is known to matter.
    """
    kept, size, tests = list(members), max(len(members) // 2, 1), 0
    while True:
        start, removed = 0, False
        while start < len(kept):
            if tests >= most_tests:
                return kept, False
            tests += 1
            rest = kept[:start] + kept[start + size :]
            if is_enough(rest):
                kept, removed = rest, True
            else:
                start += size
        if size == 1 and not removed:
            return kept, True
        size = max(min(size // 2, len(kept) // 2), 1)
