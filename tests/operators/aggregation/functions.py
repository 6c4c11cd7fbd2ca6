"""Every aggregate function of SQL, for properties of the aggregations that take them.

`tests.reference.sql_functions.sql` has their results.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from statelib import count, max_, mean_, min_, per_record, sum_
from statelib.operators.aggregation.definition import several

X = pc.field("value", "x")
POSITIVE = X > 0  # null of a null
AT_MOST_0 = per_record(lambda x: None if x is None else x <= 0, pa.bool_(), "x")

FUNCTIONS = {
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
SQL = several(**FUNCTIONS)


def row(x: pa.DataType) -> pa.DataType:
    """The type of values that the functions are of."""
    return pa.struct([("x", x)])
