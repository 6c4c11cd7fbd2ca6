"""Pages whose commands are typed one after the other: in blocks of ``console``, a line that begins with ``$``.

Each runs in a process of its own, in the folder that ``cd`` has led to, and prints what stands below it.
"""

from __future__ import annotations

import doctest
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.command import run
from tests.docs.blocks import Typed, parts

if TYPE_CHECKING:
    from pathlib import Path

LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FAILS = ("hindstream: ", "curl: ")


@dataclass(frozen=True)
class Took:
    """How long a command took."""

    command: str
    seconds: float


def follow(page: Path, folder: Path, **environ: str) -> list[Took]:
    """Types all that a page says, in an empty folder.

    Raises:
        AssertionError: A command fails where the page does not say so, or prints something else.
    """
    taken = []
    for part in parts(page.read_text(encoding="utf-8")):
        if not isinstance(part, Typed):
            continue
        words = shlex.split(part.command)
        if words[0] == "cd":
            folder = folder / words[1]
            continue
        began = time.monotonic()
        typed = run("bash", "-c", f"exec 2>&1; {part.command}", cwd=folder, **environ)
        taken.append(Took(part.command, time.monotonic() - began))
        printed = typed.stdout
        fails = any(word in part.printed for word in FAILS)
        assert (typed.returncode != 0) == fails, f"{part.command}\n{printed}"
        if part.printed:
            like = doctest.OutputChecker().check_output(part.printed, printed, LIKE)
            assert like, f"{part.command}\nthe page says:\n{part.printed}\nit printed:\n{printed}"
    assert taken
    return taken
