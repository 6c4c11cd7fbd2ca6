"""Sees which of Jinja's templates a process compiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jinja2

if TYPE_CHECKING:
    import pytest


def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of those that are compiled from now on."""
    names: list[str] = []
    real = jinja2.Environment.compile

    def seen(self: jinja2.Environment, source: str, name: str, *more: object) -> object:
        names.append(name)
        return real(self, source, name, *more)  # type: ignore[call-overload]

    monkeypatch.setattr(jinja2.Environment, "compile", seen)
    return names
