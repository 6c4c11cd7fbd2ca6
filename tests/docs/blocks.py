"""Commands in the runbooks: blocks of ``console``; a line that begins with ``$`` is typed, the others are printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
_PARTS = re.compile(
    r"^<!-- situation: (?P<situation>.*?) -->$|^```console\n(?P<block>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Typed:
    """A command; what it prints, with ``...`` for what may be anything."""

    command: str
    printed: str


def parts(text: str) -> list[str | Typed]:
    """Situations, by their names, and commands in the order of the page."""
    found: list[str | Typed] = []
    for part in _PARTS.finditer(text):
        if part["situation"]:
            found.append(part["situation"])
        else:
            for typed in re.split(r"^\$ ", part["block"], flags=re.MULTILINE)[1:]:
                command, _, printed = typed.partition("\n")
                found.append(Typed(command, printed))
    return found


def section(page: str, heading: str) -> str:
    """What is under a heading of a page, up to the next of its kind."""
    text = (RUNBOOKS / page).read_text(encoding="utf-8")
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
