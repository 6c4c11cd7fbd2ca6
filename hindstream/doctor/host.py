"""This machine: Java, the packages, the local disk and memory."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING

from hindstream.doctor.finding import Finding
from hindstream.numbers import bytes_text
from spark_jobs.java import find_java
from statelib.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.config import Settings

_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[.*\])?==(?P<version>[0-9.]+)")
"""A requirement of no extra's with an exact version."""

_LITTLE_BYTES = 2 << 30
_PROCESS_BYTES = 200 << 20
"""What a task's process takes beyond its memory budget."""


def check_java() -> Iterator[Finding]:
    """Whether there is a Java that Spark runs on."""
    java = find_java()
    yield Finding("Java", "ok", f"version {java.version}, {java.home}")


def check_packages() -> Iterator[Finding]:
    """Whether the packages that decide the bytes of outputs and state are those that this version was made for."""
    pins = [match for text in importlib.metadata.requires("hindstream") or () if (match := _PIN.fullmatch(text))]
    wrong = False
    for pin in pins:
        try:
            version = importlib.metadata.version(pin["name"])
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        if version != pin["version"]:
            wrong = True
            step = "make an environment of the lock: ./dev setup, or pip install -r requirements.lock"
            yield Finding("packages", "wrong", f"{pin['name']} is {version}, not {pin['version']}", step)
    if not wrong:
        version = importlib.metadata.version("hindstream")
        yield Finding("packages", "ok", f"hindstream {version}, and the {counted(len(pins), 'package')} that it pins")


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
