"""The smallest input: whatever shows a difference, nothing can be left out of what is found."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hindstream.porting.shrinking import smallest


@given(st.integers(1, 60), st.data())
def test_what_is_needed_together_is_found(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=5))
    places = smallest(np.arange(count), lambda some: needed <= {*some.tolist()})
    assert {*places.tolist()} == needed


@given(st.integers(2, 40), st.data())
def test_of_several_reasons_one_is_left(count: int, data: st.DataObject) -> None:
    reasons = data.draw(st.lists(st.sets(st.integers(0, count - 1), min_size=1, max_size=3), min_size=1, max_size=4))
    places = smallest(np.arange(count), lambda some: any(reason <= {*some.tolist()} for reason in reasons))
    assert {*places.tolist()} in reasons


def test_a_guess_that_shows_it_is_taken_and_another_one_is_not() -> None:
    asked: list[int] = []

    def shows(some: np.ndarray) -> bool:
        asked.append(len(some))
        return {700, 990} <= {*some.tolist()}

    odd, tens = (np.arange(1_000) % of == rest for of, rest in ((2, 1), (10, 0)))
    assert smallest(np.arange(1_000), shows, [odd, tens]).tolist() == [700, 990]
    assert len(asked) < 50


def test_it_ends_when_it_has_asked_often_enough() -> None:
    assert len(smallest(np.arange(100), lambda some: 99 in some, most_tries=0)) == 100
