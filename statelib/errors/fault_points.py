"""Fault points: named steps between two effects, at which a fault test may kill a process.

A phase calls ``step("commit.before-create")`` between two of its effects. Nothing happens there unless an observer is
installed, which only tests do, in their own process::

    with observed(lambda name: print(name)):
        commit(...)
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Observer = Callable[[str], None]

_observers: list[Observer] = []


def step(name: str) -> None:
    """Tells the observers, if there are any, that execution has come to ``name``: ``<phase>.<instant>``."""
    for observer in _observers:
        observer(name)


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Calls ``observer`` with the name of each step that is passed inside the block; what it raises is not caught."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)
