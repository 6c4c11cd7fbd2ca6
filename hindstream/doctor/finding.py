"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from statelib.errors.kinds import HindstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

State = Literal["ok", "look", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's.

    Attributes:
        about: What was looked at.
        state: ``ok``; ``look``: it works, and somebody should know; ``wrong``: it does not work.
        what: What was found.
        next_step: The command that mends it, or what to change; None: nothing.
    """

    about: str
    state: State
    what: str
    next_step: str | None = None


def found(about: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """What a check finds; an error of Hindstream's is a finding too.

    Args:
        about: What the check looks at, where it ends with an error.
        check: The check.
    """
    try:
        yield from check()
    except HindstreamError as error:
        place = ", ".join(f"{name} {value}" for name, value in error.place.items())
        yield Finding(about, "wrong", f"{error.what} ({place})" if place else error.what, error.next_step)
