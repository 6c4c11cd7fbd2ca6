"""What aggregate functions of SQL give, of all values that an aggregate has taken, in order."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Rows = list[dict[str, Any]]


class Near(float):
    """A number that is equal to those next to it: the rounding of a float depends on the way it was computed."""

    __slots__ = ()
    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isclose(self, other, rel_tol=1e-9, abs_tol=1e-6)


class InBucket(float):
    """A number that is equal to those of its bucket, and so to its middle."""

    __slots__ = ()
    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isclose(self, other, rel_tol=1 / 256)


def timed(value: Any, timestamp: int) -> Any:
    """A value that knows its record's timestamp, if it has fields, as functions that ask for it see it."""
    return {**value, "timestamp": timestamp} if isinstance(value, dict) else value


def total(xs: Iterable[Any]) -> Any:
    """Added up in their order; None of nothing."""
    added = None
    for x in xs:
        added = (0 if added is None else added) + x
    return added


def mean(xs: list[Any]) -> Any:
    """None of nothing."""
    return total(xs) / len(xs) if xs else None


def variance(xs: list[Any], *, population: bool = False) -> Near | None:
    """Computed without rounding."""
    of = len(xs) - (not population)
    if of <= 0:
        return None
    exact = [Fraction(x) for x in xs]
    middle = sum(exact) / len(exact)
    return Near(sum((x - middle) ** 2 for x in exact) / of)


def stddev(xs: list[Any], *, population: bool = False) -> Near | None:
    """The square root."""
    of = variance(xs, population=population)
    return None if of is None else Near(math.sqrt(of))


def quantiles(xs: list[Any], at: list[float]) -> list[float] | None:
    """Those that are there, at or below each quantile. Of floats what is given is off by one part in 256 at most."""
    ascending = sorted(xs)
    there = [ascending[math.floor(one * (len(xs) - 1))] for one in at] if xs else None
    return there and [x if isinstance(x, int) else InBucket(x) for x in there]


def _x(rows: Rows) -> list[Any]:
    return _those(rows, "x")


def _those(rows: Rows, field: str) -> list[Any]:
    return [row[field] for row in rows if row.get(field) is not None]


def _positive(rows: Rows) -> Rows:
    return [row for row in rows if row["x"] is not None and row["x"] > 0]


def _last(values: list[Any]) -> Any:
    return values[-1] if values else None


def _by(rows: Rows, field: str, by: str, choose: Callable[..., Any]) -> Any:
    """Of the row that ``choose``, min or max, chooses: the first of several."""
    there = [row for row in rows if row.get(by) is not None]
    return choose(there, key=lambda row: row[by]).get(field) if there else None


def _top(rows: Rows, field: str, by: str, n: int, *, smallest: bool = False) -> Any:
    there = sorted(_there(rows, by), key=lambda row: row[by], reverse=not smallest)  # equal ones stay in their order
    return [row.get(field) for row in there[:n]] or None


def _there(rows: Rows, field: str) -> Rows:
    return [row for row in rows if row.get(field) is not None]


SUMS: dict[str, Callable[[Rows], Any]] = {
    "xs": lambda rows: len(_x(rows)),
    "total": lambda rows: total(_x(rows)),
    "least": lambda rows: min(_x(rows), default=None),
    "most": lambda rows: max(_x(rows), default=None),
    "mean": lambda rows: mean(_x(rows)),
    "positive_rows": lambda rows: len(_positive(rows)),
    "positive_xs": lambda rows: len(_positive(rows)),
    "positive_total": lambda rows: total(_x(_positive(rows))),
    "most_below": lambda rows: max((x for x in _x(rows) if x <= 0), default=None),
    "positive_mean": lambda rows: mean(_x(_positive(rows))),
}
"""What gives the same bits however it is computed."""

MODELS: dict[str, Callable[[Rows], Any]] = {
    **SUMS,
    "variance": lambda rows: variance(_x(rows)),
    "variance_of_all": lambda rows: variance(_x(rows), population=True),
    "positive_stddev": lambda rows: stddev(_x(_positive(rows))),
    "stddev_of_all": lambda rows: stddev(_x(rows), population=True),
    "first_x": lambda rows: next(iter(_x(rows)), None),
    "last_y": lambda rows: _last(_those(rows, "y")),
    "last_positive_y": lambda rows: _last(_those(_positive(rows), "y")),
    "first_y_by_time": lambda rows: _by(_there(rows, "y"), "y", "timestamp", min),
    "last_x_by_time": lambda rows: _by(_there(rows, "x")[::-1], "x", "timestamp", max),
    "y_of_most": lambda rows: _by(rows, "y", "x", max),
    "y_of_least": lambda rows: _by(rows, "y", "x", min),
    "x_of_most_y": lambda rows: _by(rows, "x", "y", max),
    "positive_y_of_least": lambda rows: _by(_positive(rows), "y", "x", min),
    "distinct_x": lambda rows: len(set(_x(rows))),
    "distinct_positive_y": lambda rows: len(set(_those(_positive(rows), "y"))),
    "about_x": lambda rows: len(set(_x(rows))),  # of few values a sketch is exact
    "about_positive_y": lambda rows: len(set(_those(_positive(rows), "y"))),
    "spread": lambda rows: quantiles(_x(rows), [0.9, 0, 0.5, 1]),
    "positive_median": lambda rows: quantiles(_x(_positive(rows)), [0.5]),
    "list_of_y": lambda rows: _those(rows, "y")[:3] or None,
    "set_of_x": lambda rows: [*dict.fromkeys(_x(_positive(rows)))][:4] or None,
    "set_of_y": lambda rows: [*dict.fromkeys(_those(rows, "y"))] or None,
    "top_y": lambda rows: _top(rows, "y", "x", 2),
    "top_x_by_y": lambda rows: _top(rows, "x", "y", 3),
    "bottom_positive_x": lambda rows: _top(_positive(rows), "x", "x", 3, smallest=True),
    "least_y": lambda rows: min(_those(rows, "y"), default=None),
}


def sql(values: list[dict[str, Any] | None], models: dict[str, Callable[[Rows], Any]] | None = None) -> dict[str, Any]:
    """What `tests.operators.aggregation.functions.SQL` gives; ``models``: of some of its functions."""
    rows = [value for value in values if value is not None]
    return {"rows": len(values), **{name: of(rows) for name, of in (MODELS if models is None else models).items()}}
