"""Functions in a process of their own, and how much memory it took."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module gives, called in a new interpreter."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as executor:
        return executor.submit(function, *arguments).result()


def resident_bytes() -> int:
    """What of this process is in memory now."""
    return _status("VmRSS")


def peak_resident_bytes() -> int:
    """The most that was in memory since the process began: unlike ``ru_maxrss`` without its parent's."""
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
