"""Where results are printed for people: on standard output."""

from __future__ import annotations

import sys

from rich.console import Console

_NO_END_OF_LINE = 1 << 16


def standard_output() -> Console:
    """The standard output as it is now: while Airflow runs, ``sys.stdout`` is its log.

    Lines are folded for a terminal only: what goes elsewhere has a row a line. Brackets are no markup of rich's: they
    stand in names and in commands, as in ``pip install 'hindstream[airflow]'``.
    """
    width = None if sys.stdout.isatty() else _NO_END_OF_LINE
    return Console(file=sys.stdout, width=width, markup=False)
