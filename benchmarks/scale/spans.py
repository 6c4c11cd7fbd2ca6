"""Writes down when named functions begin and end, and what the process and its descendants have taken by then.

It is a part of the process that is measured, so it imports hardly anything. Linux only.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import json
import os
import sys
import time
from collections import defaultdict

TYPE_CHECKING = False  # as type checkers know it: `typing` takes some milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

START = "start"
"""The name of what was before `watch`: it begins with the process."""

_TICKS = os.sysconf("SC_CLK_TCK")


def watch(file: str, *functions: str) -> None:
    """Appends a line to ``file`` for what was before, and from now on for each call that ends.

    A line is JSON: the process id, the name, the clocks at the beginning, the clocks at the end; see `clocks`.

    Args:
        file: Several processes may share it.
        functions: ``module:function`` or ``module:Class.method``. Modules are imported when the program does it; who
            imports a function by its name gets the one that is watched.
    """
    _write(file, START, (_process_began(), 0.0, 0.0, 0.0), clocks())
    if any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        return  # what reads the same file twice, or is a fork of what has read it
    watcher = _Watcher(file, functions)
    for name in watcher.functions.keys() & sys.modules.keys():
        watcher.wrap(sys.modules[name])
    sys.meta_path.insert(0, watcher)


def clocks() -> tuple[float, float, float, float]:
    """Seconds: since 1970, and of CPU that this process, its Java and other descendants (Python workers) have taken."""
    java = workers = 0
    todo = _children(os.getpid())
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:  # noqa: PTH123 - no pathlib here
                name, _, rest = stat.read().partition("(")[2].rpartition(")")
            todo += _children(pid)
        except OSError:  # it has just ended
            continue
        ticks = sum(map(int, rest.split()[11:15]))  # with those of its children that it has waited for
        if name == "java":
            java += ticks
        else:
            workers += ticks
    return time.time(), sum(os.times()[:4]), java / _TICKS, workers / _TICKS


class _Watcher(importlib.abc.MetaPathFinder):
    def __init__(self, file: str, functions: Sequence[str]) -> None:
        self._file = file
        self.functions: dict[str, list[str]] = defaultdict(list)
        for place in functions:
            module, _, name = place.partition(":")
            self.functions[module].append(name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        if fullname not in self.functions:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_wrap(module: ModuleType) -> None:
                execute(module)
                self.wrap(module)

            spec.loader.exec_module = execute_and_wrap  # type: ignore[method-assign]
        return spec

    def wrap(self, module: ModuleType) -> None:
        """Puts what is watched in the place of the functions."""
        for name in self.functions[module.__name__]:
            *path, last = name.split(".")
            owner: Any = functools.reduce(getattr, path, module)
            setattr(owner, last, self._watched(f"{module.__name__}:{name}", getattr(owner, last)))

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            began = clocks()
            try:
                return function(*args, **kwargs)
            finally:
                _write(self._file, name, began, clocks())

        return watched


def _write(file: str, name: str, began: Sequence[float], ended: Sequence[float]) -> None:
    """At once: a process may end without a chance to do it later."""
    with open(file, "a", encoding="utf-8") as lines:  # noqa: PTH123 - no pathlib here
        lines.write(json.dumps([os.getpid(), name, began, ended]) + "\n")


def _children(pid: int) -> list[int]:
    """Of all its threads."""
    found: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - no pathlib here
        try:
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children:  # noqa: PTH123
                found += map(int, children.read().split())
        except OSError:  # it has just ended
            continue
    return found


def _process_began() -> float:
    """Seconds since 1970, to a hundredth; of a fork: when it was forked."""
    with open("/proc/self/stat", encoding="utf-8") as stat, open("/proc/uptime", encoding="ascii") as uptime:  # noqa: PTH123
        ticks = int(stat.read().rpartition(")")[2].split()[19])
        return time.time() - (float(uptime.read().split()[0]) - ticks / _TICKS)
