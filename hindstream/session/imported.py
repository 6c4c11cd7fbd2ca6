"""What a session imports, and whether a command would have imported the same."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.session.place import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COMMAND_LINE = "hindstream.cli.main"

PRELOADED = (
    COMMAND_LINE,
    "hindstream.cli.look.show",
    "hindstream.cli.look.status",
    "hindstream.cli.replay.run",
    "hindstream.interactive.run",
    "hindstream.report.write",
    "hindstream.spark.phases.data_docs",
    "hindstream.spark.phases.pipeline",
    "hindstream.spark.phases.replay_here",
    "pandas",
    "statelib.dsl",
    "statelib.ingest",
    "statelib.task",
)
"""What commands import that wait for it; they import the rest as ever."""

_TEMPLATES = "hindstream.report.rendering"
_MODULES = {ending.removeprefix(".") for ending in importlib.machinery.all_suffixes()}


def preload() -> None:
    """Imports all modules that matter, and loads kernels and templates; no thread and no open file is left of it."""
    for name in PRELOADED:
        importlib.import_module(name)
    from statelib.kernels.compiled import load_kernels  # noqa: PLC0415

    load_kernels()
    importlib.import_module(_TEMPLATES).load_templates()


def state_of_code() -> tuple[int, int]:
    """How many files the packages have, and when the newest was changed: also whether others were installed."""
    root = Path(__file__).parents[2]
    changed = [time_ns for package in PACKAGES for time_ns in _changed(str(root / package))]
    folders = [Path(path) for path in sys.path if path.endswith("-packages")]
    installed = [path.stat().st_mtime_ns for path in folders if path.exists()]
    return len(changed), max(changed + installed)


def _changed(folder: str) -> Iterator[int]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.stat().st_mtime_ns
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _changed(entry.path)


def hidden_modules(path: Iterable[str]) -> set[str]:
    """Imported modules in whose place a process with that path for modules would have imported others."""
    imported = {name for name in sys.modules if "." not in name}
    mine = {os.path.realpath(folder) for folder in sys.path}
    found = set[str]()
    for folder in path:
        if os.path.realpath(folder) in mine:
            continue
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                name, _, ending = entry.name.partition(".")
                is_module = ending in _MODULES or (not ending and Path(entry.path, "__init__.py").exists())
                if name in imported and is_module:
                    found.add(name)
    return found
