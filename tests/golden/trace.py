"""Reads golden traces: JSON lines written by the real Kafka Streams, one file a scenario, several cases each.

A case is one ``header`` line, its ``step`` lines, and one ``end`` line. Files may be gzipped (``.jsonl.gz``).
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class TraceError(Exception):
    """A trace file is not in the format that this module reads."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a trace, on fresh stores.

    Attributes:
        scenario: Such as ``versioned-store``.
        name: Unique within its file.
        params: All parameters of the case, from its header.
        steps: The step lines in order; ``steps[n]["i"] == n``.
        end: The end line: totals or final store content.
    """

    scenario: str
    name: str
    params: dict[str, Any]
    steps: list[dict[str, Any]]
    end: dict[str, Any]


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a trace file, in order.

    Raises:
        TraceError: If the file is not a trace, or is cut off.
    """
    header: dict[str, Any] | None = None
    steps: list[dict[str, Any]] = []
    with _open(path) as lines:
        for number, text in enumerate(lines, start=1):
            place = f"{path}, line {number}"
            line = _parse(text, place)
            if line.get("type") == "header" and header is None:
                header, steps = line, []
            elif line.get("type") == "step" and header is not None and line["i"] == len(steps):
                steps.append(line)
            elif line.get("type") == "end" and header is not None and line["steps"] == len(steps):
                yield Case(header["scenario"], header["case"], header["params"], steps, line)
                header = None
            else:
                raise TraceError(f"{place}: a {line.get('type')!r} line is out of place here")
    if header is not None:
        raise TraceError(f"{path}: case {header['case']} has no end line: the file is cut off")


def _open(path: Path) -> TextIO:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def _parse(text: str, place: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(f"{place}: not JSON: {error}") from error
    if not isinstance(line, dict):
        raise TraceError(f"{place}: not a JSON object")
    return line
