"""Every aggregate function of SQL, for properties of the aggregations that take them.

`tests.reference.sql_functions` has their results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from statelib import (
    approx_count_distinct,
    arg_max,
    arg_min,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    last,
    max_,
    mean_,
    min_,
    per_record,
    quantiles,
    stddev,
    sum_,
    top_n,
    variance,
)
from statelib.operators.aggregation.definition import several

if TYPE_CHECKING:
    from statelib import Aggregation

POSITIVE = pc.field("value", "x") > 0  # null of a null
AT_MOST_0 = per_record(lambda x: None if x is None else x <= 0, pa.bool_(), "x")

_SUMS: dict[str, Aggregation] = {
    "rows": count(),
    "xs": count("x"),
    "total": sum_("x"),
    "least": min_("x"),
    "most": max_("x"),
    "mean": mean_("x"),
    "positive_rows": count(where=POSITIVE),
    "positive_xs": count("x", where=POSITIVE),
    "positive_total": sum_("x", where=POSITIVE),
    "most_below": max_("x", where=AT_MOST_0),
    "positive_mean": mean_("x", where=POSITIVE),
}
_ALL: dict[str, Aggregation] = {
    **_SUMS,
    "variance": variance("x"),
    "variance_of_all": variance("x", population=True),
    "positive_stddev": stddev("x", where=POSITIVE),
    "stddev_of_all": stddev("x", population=True),
    "first_x": first("x"),
    "last_y": last("y"),
    "last_positive_y": last("y", where=POSITIVE),
    "first_y_by_time": first("y", by_time=True),
    "last_x_by_time": last("x", by_time=True),
    "y_of_most": arg_max("y", by="x"),
    "y_of_least": arg_min("y", by="x"),
    "x_of_most_y": arg_max("x", by="y"),
    "positive_y_of_least": arg_min("y", by="x", where=POSITIVE),
    "distinct_x": count_distinct("x"),
    "distinct_positive_y": count_distinct("y", where=POSITIVE),
    "about_x": approx_count_distinct("x"),
    "about_positive_y": approx_count_distinct("y", where=POSITIVE),
    "spread": quantiles("x", [0.9, 0, 0.5, 1]),
    "positive_median": quantiles("x", [0.5], where=POSITIVE),
    "list_of_y": collect_list("y", limit=3),
    "set_of_x": collect_set("x", limit=4, where=POSITIVE),
    "set_of_y": collect_set("y"),
    "top_y": top_n("y", "x", 2),
    "top_x_by_y": top_n("x", "y", 3),
    "bottom_positive_x": top_n("x", "x", 3, smallest=True, where=POSITIVE),
    "least_y": min_("y"),
}
SUMS = several(**_SUMS)
SQL = several(**_ALL)
EACH_KIND = (
    "rows", "total", "most", "mean", "variance", "last_y", "last_x_by_time", "y_of_most", "x_of_most_y",
    "distinct_x", "distinct_positive_y", "top_x_by_y", "about_x", "spread",
    "list_of_y", "set_of_x",
)  # fmt: skip
"""One function of each kind of state."""
KINDS = several(**{name: _ALL[name] for name in EACH_KIND})


def row(x: pa.DataType) -> pa.DataType:
    """The type of values that the functions are of."""
    return pa.struct([("x", x), ("y", pa.string())])


def values(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any] | None]:
    """Values with ``numbers`` for ``x``, and nulls everywhere."""
    return st.none() | st.fixed_dictionaries(
        {"x": st.none() | numbers, "y": st.none() | st.sampled_from(["", "p", "q", "a longer text"])}
    )
