"""Drafts a port: recognises a topology, writes the file, and looks whether it describes the same topology.

Generated names share one counter, and a call may count that shows nowhere in the text. So where a name comes out with
too low a number, numbers are used up before: reading a topic again counts, and makes no node.
"""

from __future__ import annotations

import difflib
import re
import runpy
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindstream.porting.draft.description import is_generated, number_of, read_description
from hindstream.porting.draft.file import file_of
from hindstream.porting.draft.recognised import Recogniser
from statelib.job.job import Job

if TYPE_CHECKING:
    from hindstream.porting.draft.knowledge import Knowledge
    from hindstream.porting.draft.statements import Recognised

_MOST_TRIES = 40
_READS = re.compile(r' = builder\.stream\((\[[^]]*\]|"[^"]*")')


@dataclass(frozen=True, slots=True)
class Draft:
    """A first draft.

    Attributes:
        text: Of the file.
        unknown: What cannot be told, a sentence each.
        differences: Lines of both descriptions that differ, as a diff; empty: they are equal. Or the error of the file.
    """

    text: str
    unknown: tuple[str, ...]
    differences: tuple[str, ...]


def draft(description: str, knowledge: Knowledge, name: str, optimization: str | None = None) -> Draft:
    """Drafts a job.

    Args:
        description: What ``Topology.describe()`` prints.
        knowledge: What Kafka's classes know.
        name: The job's.
        optimization: The application's ``topology.optimization``; None: what the text shows of it.

    Raises:
        ConfigurationError: It is no such text.
    """
    recognised = Recogniser(read_description(description), knowledge).recognise(asks=optimization is None)
    counts: dict[int, int] = {}
    for _ in range(_MOST_TRIES):
        text = file_of(_counting(recognised, counts), name, optimization)
        module, error = _run(text)
        described = "" if error else module["job"].topology.describe()
        if described.strip() == description.strip():
            return Draft(text, tuple(recognised.unknown), ())
        behind = None if error else _first_behind(recognised, module)
        if behind is None or behind[0] in counts:
            break
        counts[behind[0]] = behind[1]
    differences = (error,) if error else tuple(_diff(description, described))
    return Draft(text, tuple(recognised.unknown), differences)


def _run(text: str) -> tuple[dict[str, Any], str]:
    """What the file defines; or why it cannot be run."""
    with tempfile.TemporaryDirectory(prefix="hindstream-draft-") as folder:
        file = Path(folder) / "draft.py"
        file.write_text(text, encoding="utf-8")
        try:
            module = runpy.run_path(str(file))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it is told, and left to a person
            return {}, f"{type(error).__name__}: {error}".replace(f"{folder}/", "")
    return module, "" if isinstance(module.get("job"), Job) else "it defines no job"


def _first_behind(recognised: Recognised, module: dict[str, Any]) -> tuple[int, int] | None:
    """The first line whose node has a lower number than in the application, and by how much."""
    for line, (variable, wanted) in recognised.made.items():
        made = module.get(variable)
        made = getattr(made, "node", getattr(made, "_node", None))  # the latter of a split
        expected, found = number_of(wanted), number_of(made) if isinstance(made, str) else None
        if expected is None or found is None or not is_generated(wanted) or expected == found:
            continue
        return (line, expected - found) if expected > found else None
    return None


def _counting(recognised: Recognised, counts: dict[int, int]) -> Recognised:
    """With lines that use up numbers."""
    read = next((found for line in recognised.lines if (found := _READS.search(line))), None)
    if not counts or read is None:
        return recognised
    lines = []
    for number, line in enumerate(recognised.lines):
        if number in counts:
            of = "a number" if counts[number] == 1 else f"{counts[number]} numbers"
            lines.append(f"# TODO: the application has counted {of} here for what the text does not show")
            lines += [f"builder.stream({read[1]})"] * counts[number]
        lines.append(line)
    return replace(recognised, lines=lines)


def _diff(wanted: str, described: str) -> list[str]:
    sides = (wanted.strip().split("\n"), described.strip().split("\n"))
    return list(difflib.unified_diff(*sides, "the application", "the draft", lineterm=""))
