"""How a command collects garbage: seldom, since most of what it makes stays."""

from __future__ import annotations

import atexit
import gc

_OBJECTS_BEFORE_A_LOOK = 500_000


def collect_seldom() -> None:
    """For a process that is one command, at its start: a fifth of the time of a small one would be spent on garbage.

    Imports make some 400,000 objects that stay, and Python looks at all of them again and again, also at its end.
    """
    gc.set_threshold(_OBJECTS_BEFORE_A_LOOK, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # what is left, the end of the process frees
