"""The one progress display of a backfill: a bar over its slices in a terminal, nothing elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def terminal() -> Console:
    """The standard output as it is now: while Airflow runs, ``sys.stdout`` is its log."""
    return Console(file=sys.stdout)


def slice_progress(console: Console) -> Progress:
    """A display that vanishes when it ends; print on ``console`` while it is there."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
