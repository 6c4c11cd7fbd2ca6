"""Compiles every kernel of the engine and keeps the code on disk: ``python -m statelib.kernels.compile``.

Kernels have explicit signatures, so they need no arguments to be compiled.
"""

from __future__ import annotations

import importlib
import pkgutil
from importlib.util import find_spec
from pathlib import Path

from statelib.kernels.compiled import load_kernels

_ENGINE = str(Path(__file__).parents[1])
_COMPILES = "from statelib.kernels.compiled import"


def compile_all() -> list[str]:
    """Compiles all kernels, or loads them from the cache.

    Returns:
        The names of the modules that have some, in order.
    """
    names = [module.name for module in pkgutil.walk_packages([_ENGINE], "statelib.") if _compiles(module.name)]
    for name in names:
        importlib.import_module(name)
    load_kernels()
    return names


def _compiles(name: str) -> bool:
    spec = find_spec(name)
    source = spec.origin if spec else None
    return name != __name__ and source is not None and _COMPILES in Path(source).read_text(encoding="utf-8")


if __name__ == "__main__":
    compile_all()
