"""How many examples a costly property gets, and which cases of a costly test wait for ``./dev campaign long``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def examples(everyday: int, campaign: int | None = None, **others: Any) -> settings:
    """Settings of a property: ``everyday`` examples in a plain run of the tests, a fifth of them in a fast one.

    In a campaign ``campaign``, or as many as of any other property.
    """
    profile = os.environ.get("HYPOTHESIS_PROFILE")
    if profile != "campaign":
        return settings(max_examples=-(-everyday // 5) if profile == "fast" else everyday, **others)
    return settings(**others) if campaign is None else settings(max_examples=campaign, **others)


def in_turn(cases: Iterable[Any], ways: Sequence[Any]) -> list[Any]:
    """Each case in each of two ways, for ``parametrize``: one, in turn, is for a plain run, the other is long."""
    return every_other((case, ways[(n + m) % 2]) for n, case in enumerate(cases) for m in range(2))


def every_other(cases: Iterable[Any], first: int = 0) -> list[Any]:
    """Cases for ``parametrize``: every second one from ``first`` on is for a plain run, the others are long."""
    return one_in(2, cases, first)


def one_in(number: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """Cases for ``parametrize``: one in ``number`` from ``first`` on is for a plain run, the others are long."""
    long = pytest.mark.long
    each = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*case, marks=() if n % number == first else long) for n, case in enumerate(each)]
