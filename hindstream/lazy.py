"""Names that a package offers and loads where they are first used, so that importing it costs next to nothing.

A package does this where type checkers do not look: to them, a package with a ``__getattr__`` has any name.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def offers(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a package (PEP 562).

    Args:
        package: Its name.
        homes: Where each name is defined, ``module:name``.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    return find, lambda: sorted({*vars(sys.modules[package]), *homes})
