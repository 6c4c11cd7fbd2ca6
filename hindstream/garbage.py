"""How a process of ours collects garbage: seldom, since most of what it makes stays."""

from __future__ import annotations

import atexit
import gc

_OBJECTS_BEFORE_A_LOOK = 500_000


def collect_seldom() -> None:
    """For a process that is one command, or works on tasks, at its start.

    A fifth of the time of a small command would be spent on garbage: imports make some 400,000 objects that stay, and
    Python looks at all of them again and again, also at its end. And more than half of what it takes to keep the lists
    and dicts that a user's functions make, until they are a column.
    """
    gc.set_threshold(_OBJECTS_BEFORE_A_LOOK, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # what is left, the end of the process frees
