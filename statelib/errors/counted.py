"""Numbers of things in messages: ``1 record``, ``2,000 records``."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """The number and the noun that goes with it.

    Args:
        number: How many.
        one: What a single one is called; with its verb, if that differs too.
        many: What several or none are called; None: ``one`` with an s.
    """
    return f"{number:,} {one if number == 1 else f'{one}s' if many is None else many}"
