"""Compiles every kernel of the engine and keeps the code on disk: ``python -m statelib.kernels.compile``.

Kernels have explicit signatures, so importing their modules compiles them. A module whose kernels numba compiles only
when they are called has a function ``warm_up()`` that calls them.
"""

from __future__ import annotations

import importlib
import pkgutil

import statelib.kernels


def compile_all() -> list[str]:
    """Compiles all kernels, or loads them from the cache.

    Returns:
        The names of the modules, in order.
    """
    names = [f"statelib.kernels.{module.name}" for module in pkgutil.iter_modules(statelib.kernels.__path__)]
    for name in names:
        if name != __name__:
            module = importlib.import_module(name)
            getattr(module, "warm_up", lambda: None)()
    return names


if __name__ == "__main__":
    compile_all()
