"""The surface is complete: nobody adds an operator and forgets it there."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from statelib import operators
from tests.surface.topology import surface

OF_A_SPECIFICATION = ("build", "describe", "state_stores")


def specifications() -> set[type]:
    """Classes that are an `OperatorSpec`; what others are derived from is none of its own."""
    modules = [found.name for found in pkgutil.walk_packages(operators.__path__, "statelib.operators.")]
    classes = {
        of
        for name in modules
        for _, of in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if all(hasattr(of, method) for method in OF_A_SPECIFICATION) and not getattr(of, "_is_protocol", False)
    }
    return {of for of in classes if not any(of in other.__mro__[1:] for other in classes)}


def test_every_operator_is_in_it() -> None:
    used = {type(node.spec) for sub in surface().sub_topologies for node in sub.processors}
    assert len(used) > 30
    assert [of.__name__ for of in specifications() - used] == []
