"""How soon the command line answers, and what imports bring along."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from benchmarks.scale.imports import STANDARD, imported_ms
from benchmarks.scale.measurement import Figure, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterator

USED_BY_TASKS = frozenset({
    "deltalake", "llvmlite", "numba", "numpy", "obstore", "pyarrow", "pydantic", "pydantic_core", "rocksdict",
    "sortedcontainers",
})  # fmt: skip
"""Third-party packages that a task cannot do without."""

BROUGHT_ALONG = frozenset({"cffi", "charset_normalizer", "pandas", "pycparser", "scipy", "yaml"})
"""What pyarrow (pandas, at its first array), numba and numpy import of their own accord: shown, but not counted."""


@dataclass
class Start(Measurement):
    """Each import in a new interpreter; the least of all repeats counts.

    Attributes:
        repeats: How often each is started.
        heavy_ms: A package that takes as long as this to import, without what it imports itself, is heavy.
    """

    name: ClassVar[str] = "start"

    repeats: int = 10
    heavy_ms: int = 10

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        command = str(Path(sys.executable).with_name("hindstream"))
        seconds = [_seconds([command, "--help"]) for _ in range(self.repeats)]
        yield Figure("hindstream --help", min(seconds), "s", at_most=0.3, details={"most": max(seconds)})
        for module, used in (("statelib", frozenset()), ("statelib.task", USED_BY_TASKS)):
            packages = min((_packages(module) for _ in range(self.repeats)), key=lambda ms: sum(ms.values()))
            heavy = {name: ms for name, ms in packages.items() if ms >= self.heavy_ms and name not in used}
            heavy = dict(sorted(heavy.items(), key=lambda item: -item[1]))
            details = {f"{name}, ms": ms for name, ms in heavy.items()} | {"all, ms": sum(packages.values())}
            ours = len(heavy.keys() - BROUGHT_ALONG)
            yield Figure(f"heavy packages that import {module} itself brings unused", ours, at_most=0, details=details)


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _packages(module: str) -> dict[str, float]:
    """Milliseconds that the import of ``module`` spends in each package that is not the standard library's or ours."""
    code = f"import {module}"
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], check=True, capture_output=True, text=True)
    ours = module.partition(".")[0]
    return {name: ms for name, ms in imported_ms(done.stderr).items() if name not in {STANDARD, ours}}
