"""Finds few records that still show something: delta debugging (Zeller and Hildebrandt, 2002) over their places.

First the records behind the one that shows it are left out, then all but those of a guess, if these show it alone. Of
what is left, ever smaller parts are left out, until no single record can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

MOST_TRIES = 400
_FIRST = 64


def smallest(
    places: NDArray[np.int64],
    shows: Callable[[NDArray[np.int64]], bool],
    guesses: Sequence[NDArray[np.bool_]] = (),
    most_tries: int = MOST_TRIES,
) -> NDArray[np.int64]:
    """Some of the places that still show it; with enough tries none of them can be left out.

    Args:
        places: Ascending. They show it.
        shows: Whether some do.
        guesses: bool[n], by place: parts that may show it alone; the first one that does is taken.
        most_tries: How often ``shows`` is asked.
    """
    tries = _Tries(shows, most_tries)
    places = _first_ones(places, tries)
    for guess in guesses:
        part = places[guess[places]]
        if 0 < len(part) < len(places) and tries.shows(part):
            places = part
            break
    return _without_parts(places, tries)


class _Tries:
    def __init__(self, shows: Callable[[NDArray[np.int64]], bool], most: int) -> None:
        self._shows = shows
        self._left = most

    def shows(self, places: NDArray[np.int64]) -> bool:
        """Whether they do; no, if it has been asked often enough."""
        if not self._left:
            return False
        self._left -= 1
        return self._shows(places)


def _first_ones(places: NDArray[np.int64], tries: _Tries) -> NDArray[np.int64]:
    """As few of the first ones as possible, provided that more of them always show it, too."""
    low, high = 0, _FIRST  # the first `high` show it: mostly few of many do
    while high < len(places) and not tries.shows(places[:high]):
        low, high = high, 2 * high
    high = min(high, len(places))
    while high - low > 1:
        middle = (low + high) // 2
        if tries.shows(places[:middle]):
            high = middle
        else:
            low = middle
    return places[:high]


def _without_parts(places: NDArray[np.int64], tries: _Tries) -> NDArray[np.int64]:
    parts = 2
    while len(places) > 1:
        parts = min(parts, len(places))
        for part in np.array_split(np.arange(len(places)), parts):
            rest = np.delete(places, part)
            if tries.shows(rest):
                places, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts == len(places):
                break
            parts *= 2
    return places
