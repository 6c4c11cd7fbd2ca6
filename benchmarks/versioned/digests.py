"""One number for many answers, the same in Python and in Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING = -7
"""Stands for an answer that is not there; values are not negative."""

_MASK = (1 << 64) - 1


def digest_of(numbers: Iterable[int]) -> int:
    """Depends on each number and on their order: Horner's rule with 31, modulo 2**64."""
    digest = 0
    for number in numbers:
        digest = (digest * 31 + number) & _MASK
    return digest
