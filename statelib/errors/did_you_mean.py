"""What somebody may have meant who has mistyped a name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 3


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """A next step: the nearest names, or all of them.

    Args:
        name: What was given.
        known: What there is.
        otherwise: Goes before the list of all, where nothing is near.
    """
    names = list(dict.fromkeys(known))
    return next_to(name, names) or f"{otherwise} {', '.join(names) or 'none'}"


def next_to(name: str, known: Iterable[str], shown: int = _SHOWN) -> str:
    """The question whether the nearest names are meant, at most ``shown``; empty: none is near."""
    near = difflib.get_close_matches(name, list(dict.fromkeys(known)), n=shown)
    return f"did you mean {' or '.join(near)}?" if near else ""
