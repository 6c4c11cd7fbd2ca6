"""How long a program's imports take, package by package, as ``-X importtime`` tells it."""

from __future__ import annotations

import re
import sys
from collections import defaultdict

STANDARD = "the standard library"

_IMPORT = re.compile(r"^import time: +(\d+) \| +\d+ \| +(\S+)", re.MULTILINE)


def imported_ms(said: str) -> dict[str, float]:
    """Milliseconds of each package, without what it imports itself; the standard library counts as one.

    Args:
        said: The standard error of ``python -X importtime``.
    """
    spent: dict[str, float] = defaultdict(float)
    for microseconds, name in _IMPORT.findall(said):
        package = name.partition(".")[0]
        spent[STANDARD if package in sys.stdlib_module_names else package] += int(microseconds) / 1000
    return dict(spent)
