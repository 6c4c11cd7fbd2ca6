"""A job to compare with others of its kind: its events, and its topology with what may be changed of it."""

from __future__ import annotations

import random
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from statelib import Materialized, StreamsBuilder, TimeWindows, count, sum_

HOUR = 3_600_000
VALUE = pa.struct([("amount", pa.float64()), ("item", pa.string())])


def events():
    """Three days, in which some come late."""
    chance = random.Random(7)
    rows = []
    for n in range(600):
        time = max(n * HOUR // 8 - chance.choice([0, 0, 0, 2, 5]) * HOUR, 0)
        rows.append((chance.choice("abc"), {"amount": chance.random(), "item": f"i{n % 40}"}, time))
    return rows


def topology(suffix, grace_hours=1, least=0.2, more=None, renumbered=False):
    builder = StreamsBuilder("job")
    stream = builder.stream("events")
    if renumbered:  # the same, with one node more
        stream = stream.filter(pc.field("value", "amount") >= 0)
    windows = TimeWindows.of_size_and_grace(timedelta(hours=1), timedelta(hours=grace_hours))
    table = (
        stream.group_by_key()
        .windowed_by(windows)
        .aggregate({"events": count(), "total": sum_("amount")}, Materialized.as_("totals"))
    )
    table.to_stream().to(f"totals{suffix}")
    stream.filter(pc.field("value", "amount") >= least).to(f"large{suffix}")
    if more is not None:
        stream.filter(pc.field("value", "amount") >= more).to("more")
    return builder.build()
