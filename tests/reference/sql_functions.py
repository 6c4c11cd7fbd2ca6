"""What aggregate functions of SQL give, of all values that an aggregate has taken, in order."""

from __future__ import annotations

from typing import Any


def sql(values: list[dict[str, Any] | None]) -> dict[str, Any]:
    """What `tests.operators.aggregation.functions.SQL` gives over the field ``x``."""
    xs = [value["x"] for value in values if value is not None and value["x"] is not None]
    positive = [x for x in xs if x > 0]
    return {
        "rows": len(values),
        "xs": len(xs),
        "total": total(xs),
        "least": min(xs, default=None),
        "most": max(xs, default=None),
        "mean": mean(xs),
        "positive_rows": len(positive),
        "positive_xs": len(positive),
        "positive_total": total(positive),
        "most_below": max((x for x in xs if x <= 0), default=None),
        "positive_mean": mean(positive),
    }


def total(xs: list[Any]) -> Any:
    """Added up in their order; None of nothing."""
    added = None
    for x in xs:
        added = (0 if added is None else added) + x
    return added


def mean(xs: list[Any]) -> Any:
    """None of nothing."""
    return total(xs) / len(xs) if xs else None
