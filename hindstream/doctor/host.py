"""This machine: Java, the packages, the local disk and memory."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING

from hindstream.console.numbers import bytes_text
from hindstream.doctor.finding import Finding
from hindstream.spark.session.java import find_java
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.settings.settings import Settings

_LITTLE_BYTES = 2 << 30
_PROCESS_BYTES = 200 << 20
"""What a task's process takes beyond its memory budget."""


def check_java() -> Iterator[Finding]:
    """Whether there is a Java that Spark runs on."""
    java = find_java()
    yield Finding("Java", "ok", f"version {java.version}, {java.home}")


def check_packages() -> Iterator[Finding]:
    """Whether the packages are of versions that this version works with."""
    from packaging.requirements import Requirement  # noqa: PLC0415

    needs = [Requirement(text) for text in importlib.metadata.requires("hindstream") or ()]
    needs = [need for need in needs if not need.marker or need.marker.evaluate()]  # those of extras are not
    wrong = False
    for need in needs:
        version = _version(need.name)
        if version is None or not need.specifier.contains(version, prereleases=True):
            wrong = True
            what = f"{need.name} is {version or 'not installed'}, not {need.specifier}"
            step = f"pip install '{need.name}{need.specifier}', or make an environment of the lock: ./dev setup"
            yield Finding("packages", "wrong", what, step)
    if not wrong:
        what = f"hindstream {_version('hindstream')}, and the {counted(len(needs), 'package')} that it needs"
        yield Finding("packages", "ok", what)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_state_dir(settings: Settings) -> Iterator[Finding]:
    """Whether state can be put on the local disk, and how much."""
    folder = settings.local_state_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"doctor")
    except OSError as error:
        step = "set state_dir to a folder on a local disk that you may write to"
        yield Finding("state_dir", "wrong", f"{folder} cannot be written to: {error.strerror}", step)
        return
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_BYTES:
        step = "free space, or set state_dir to another disk (docs/runbooks/full-disk.md)"
        yield Finding("state_dir", "look", f"{bytes_text(free)} are free in {folder}", step)
    else:
        yield Finding("state_dir", "ok", f"{bytes_text(free)} are free in {folder}")


def check_memory(settings: Settings) -> Iterator[Finding]:
    """Whether the tasks that run here at a time have the memory that they may take."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", settings.spark_master)
    if match is None:
        return
    tasks = len(os.sched_getaffinity(0)) if match[1] == "*" else int(match[1] or 1)
    needed = tasks * (settings.memory_budget_bytes + _PROCESS_BYTES)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    at_once = counted(tasks, "task at a time", "tasks at a time")
    what = f"{at_once} may take {bytes_text(needed)}, of {bytes_text(there)}"
    if needed > there:
        step = "lower memory_budget_bytes, or the number of tasks: --set spark_master=local[N]"
        yield Finding("memory", "look", what, step)
    else:
        yield Finding("memory", "ok", what)
