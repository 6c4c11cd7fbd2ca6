"""Imports of large packages, without looking for garbage among what they make."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def importing() -> Iterator[None]:
    """For imports of hundreds of modules, once: what they make stays, and the garbage collector never looks at it.

    It would look at all of the new objects every time that they have become a quarter more, which for Great
    Expectations takes a third of the import, and at all of them again later on. In a process that forks it would also
    write to each of them, so that none of their memory is shared any more.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
