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
    return _field("status", "VmRSS") * 1024


def peak_resident_bytes() -> int:
    """The most that was in memory since the process began: unlike ``ru_maxrss`` without its parent's."""
    return _field("status", "VmHWM") * 1024


def read_bytes() -> int:
    """What this process has read from files so far, by calls; what is mapped into memory does not count."""
    return _field("io", "rchar")


def _field(file: str, name: str) -> int:
    lines = Path(f"/proc/self/{file}").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
