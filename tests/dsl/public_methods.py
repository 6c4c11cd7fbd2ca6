"""Which public methods of the DSL tests call."""

from __future__ import annotations

import functools
import inspect
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pytest

Methods = dict[str, tuple[type, "FunctionType | staticmethod[..., Any]"]]


def public_methods(classes: Iterable[type]) -> Methods:
    """Those of classes, inherited ones too, by name: ``KStream.filter``; with their class."""
    return {
        f"{of.__name__}.{name}": (of, method)
        for of in classes
        for name in dir(of)
        if not name.startswith("_")
        and isinstance(method := inspect.getattr_static(of, name), FunctionType | staticmethod)
    }


def called_from_tests(
    monkeypatch: pytest.MonkeyPatch, methods: Mapping[str, tuple[type, Any]], run: Callable[[], object]
) -> set[str]:
    """The names of the methods that modules of tests call themselves in a run."""
    called = set()

    def noted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def calling(*args: Any, **options: Any) -> Any:
            if sys._getframe(1).f_globals["__name__"].startswith("tests."):
                called.add(name)
            return method(*args, **options)

        return calling

    with monkeypatch.context() as patched:
        for name, (of, method) in methods.items():
            is_static = isinstance(method, staticmethod)
            calling = noted(name, method.__func__ if is_static else method)
            patched.setattr(of, name.partition(".")[2], staticmethod(calling) if is_static else calling)
        run()
    return called
