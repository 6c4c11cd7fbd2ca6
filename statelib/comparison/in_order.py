"""Compares records one by one, partition by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.windowed_type import archived
from statelib.comparison.differing_rows import PLACE
from statelib.comparison.sides import placed_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.comparison.sides import Side, Stretch
    from statelib.comparison.tally import Tally
    from statelib.comparison.times import Interval


def in_order(a: Side, b: Side, tally: Tally, within: Interval) -> None:
    """Adds the n-th record of each partition of A and that of B as a pair; what one side has more, alone.

    Counted are those ``within`` a time.
    """
    for partition in sorted({run.partition for side in (a, b) for run in side.own}):
        rest: list[pa.Table | None] = [None, None]
        streams = [_tables([run for run in side.own if run.partition == partition], within) for side in (a, b)]
        while True:
            for n, stream in enumerate(streams):
                if rest[n] is None:
                    rest[n] = next(stream, None)
            one, other = rest
            if one is None or other is None:
                break
            both = min(len(one), len(other))
            tally.add_pairs(one.slice(0, both), other.slice(0, both))
            rest = [table.slice(both) if len(table) > both else None for table in (one, other)]
        for kind, more, stream in zip(("only_a", "only_b"), rest, streams, strict=True):
            if more is not None:
                tally.add_only(kind, more)
                for table in stream:
                    tally.add_only(kind, table)


def _tables(runs: Sequence[Stretch], within: Interval) -> Iterator[pa.Table]:
    for run in runs:
        for place, batch in placed_batches(run, run.start, run.end):
            if not len(batch):
                continue
            key = batch.column("key")
            if isinstance(key, pa.DictionaryArray):
                key = key.dictionary_decode()
            columns = {name: batch.column(name) for name in batch.schema.names if name not in {"key", "offset"}}
            places = pa.array(np.arange(place, place + len(batch)))
            table = pa.table({"key": archived(key), **columns, PLACE: places})
            chosen = within.has(table)
            if chosen.any():
                yield table if chosen.all() else table.filter(pa.array(chosen))
