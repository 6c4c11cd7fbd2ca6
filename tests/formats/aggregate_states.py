"""``python -m tests.formats.aggregate_states FILE``: a warehouse with the state of every aggregate function.

The one in ``data`` was made when the last of these functions came. A state's bytes have no other version than its
columns and what a sketch says of itself: so this warehouse must be read, and written the same, from then on.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib import (
    Materialized,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
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
    quantiles,
    stddev,
    sum_,
    top_n,
    variance,
)
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from statelib.topology import Topology

SECOND = timedelta(seconds=1)
CUT_MS = 400_000
TYPES = (pa.string(), pa.struct([("x", pa.int64()), ("f", pa.float64()), ("text", pa.string())]))
ROWS = [
    (
        f"k{i * i % 3}",
        {"x": i % 500 - 9, "f": (i % 37) ** 3 / 7 - 100, "text": None if i % 11 == 0 else f"t{i % 700}"},
        i * 500 - i % 3 * 2_000 + 5_000,
    )
    for i in range(1_600)
]
OF_TABLES = {
    "n": count(), "xs": count("x"), "distinct": count_distinct("x"), "sum": sum_("x"), "mean": mean_("f"),
    "variance": variance("f"), "stddev": stddev("x", population=True), "spread": quantiles("f", [0.1, 0.5, 0.9]),
}  # fmt: skip
OF_STREAMS = {
    **OF_TABLES, "about": approx_count_distinct("text"), "about_few": approx_count_distinct("f"),
    "least": min_("text"), "most": max_("f"), "first": first("text"), "last": last("x"),
    "first_by_time": first("x", by_time=True), "last_by_time": last("text", by_time=True),
    "arg_min": arg_min("text", by="f"), "arg_max": arg_max("x", by="text"), "top": top_n("text", "f", 3),
    "bottom": top_n("x", "text", 2, smallest=True), "list": collect_list("text", limit=20), "set": collect_set("f"),
}  # fmt: skip


def topology() -> Topology:
    """All functions by key, window and session; of a table those that take values back."""
    builder = StreamsBuilder("job")
    grouped = builder.stream("events").group_by_key()
    windows = grouped.windowed_by(TimeWindows.of_size_and_grace(100 * SECOND, 20 * SECOND))
    sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap_and_grace(2 * SECOND, 5 * SECOND))
    for name, some in (("by-key", grouped), ("by-window", windows), ("by-session", sessions)):
        some.aggregate(OF_STREAMS, Materialized.as_(name)).to_stream().to(f"{name}-out")
    rows = builder.table("rows", Materialized.as_("rows-store")).group_by("value.text", "value")
    rows.aggregate(OF_TABLES, Materialized.as_("of-table")).to_stream().to("of-table-out")
    return builder.build()


def half(directory: Path) -> Pipeline:
    """The first half of the records replayed."""
    pipeline = Pipeline(directory, topology())
    pipeline.archive("events", ROWS, TYPES)
    pipeline.archive("rows", [(f"r{n % 40}", value, time) for n, (_, value, time) in enumerate(ROWS[:300])], TYPES)
    pipeline.run(CUT_MS)
    return pipeline


def main(file: str) -> None:
    """Makes ``file``, a ``.tar.gz``."""
    with tempfile.TemporaryDirectory() as directory:
        half(Path(directory))
        with tarfile.open(file, "w:gz") as archive:
            archive.add(f"{directory}/warehouse", "warehouse")


if __name__ == "__main__":
    main(sys.argv[1])
