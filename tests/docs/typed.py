"""Pages whose commands are typed one after the other: in blocks of ``console``, a line that begins with ``$``.

Each runs in a process of its own, in the folder that ``cd`` has led to, and prints what stands below it. A block of
``toml`` or ``python`` that begins with the name of a file is written into that file.
"""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.command import besides_progress, run
from tests.docs.blocks import Typed, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FAILS = ("hindstream: ", "curl: ")
COMPARES = ("hindstream diff ", "hindstream prove ", "hindstream try ")
_ANYTHING = re.compile(r"\s*^\.\.\.$\s*|(?<!\.)\.\.\.(?!\.)", re.MULTILINE)
"""Any lines, or none; or any text within a line."""

_FILE = re.compile(r"^```(?:toml|python)\n# (?P<name>\S+\.(?:toml|py))\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Took:
    """How long a command took."""

    command: str
    seconds: float


def follow(
    page: Path,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    *,
    replaced: Mapping[str, str] | None = None,
    situations: Mapping[str, Callable[[], None]] | None = None,
) -> list[Took]:
    """Types all that a page says.

    Args:
        page: It.
        folder: Where to begin, an empty folder.
        environ: Added to the environment of the commands.
        replaced: What stands in files and commands in the place of the page's own names.
        situations: What the page's comments ``<!-- situation: NAME -->`` bring about.

    Raises:
        AssertionError: A command fails where the page does not say so, or prints something else.
    """
    text = page.read_text(encoding="utf-8")
    for name, other in (replaced or {}).items():
        assert name in text
        text = text.replace(name, other)
    for file in _FILE.finditer(text):
        (folder / file["name"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / file["name"]).write_text(file["text"])
    taken = []
    for part in parts(text):
        if not isinstance(part, Typed):
            (situations or {})[part]()
        elif part.command.startswith("cd "):
            folder = folder / shlex.split(part.command)[1]
        else:
            taken.append(Took(part.command, _type(part, folder, environ or {})))
    assert taken
    return taken


def is_like(printed: str, page: str) -> bool:
    """Whether a page says what was printed: ``...`` stands for anything, and any white space for any other."""
    pieces = [r"\s+".join(map(re.escape, piece.split())) for piece in _ANYTHING.split(page)]
    return re.fullmatch(r"\s*" + r"(?:.*?)".join(rf"\s*{piece}\s*" for piece in pieces), printed, re.DOTALL) is not None


def _type(typed: Typed, folder: Path, environ: Mapping[str, str]) -> float:
    began = time.monotonic()
    done = run("bash", "-c", f"exec 2>&1; {typed.command}", cwd=folder, **environ)
    seconds = time.monotonic() - began
    printed = "".join(f"{line}\n" for line in besides_progress(done.stdout))
    fails = any(word in typed.printed for word in FAILS)
    if done.returncode == 1 and typed.command.startswith(COMPARES):
        fails = True  # there is a difference
    assert (done.returncode != 0) == fails, f"{typed.command}\n{printed}"
    if typed.printed:
        assert is_like(printed, typed.printed), (
            f"{typed.command}\nthe page says:\n{typed.printed}\nit printed:\n{printed}"
        )
    return seconds
