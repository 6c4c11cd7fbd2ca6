"""A job without a name for any store, as it was written when generated names were not yet Kafka's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from statelib import BufferConfig, JoinWindows, SessionWindows, StreamsBuilder, Suppressed, TimeWindows
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

SECOND = timedelta(seconds=1)
CUT_MS = 120_000
TYPES = (pa.string(), pa.int64())
ROWS = [(f"k{i * i % 7}", i % 50, i * 1_500 - i % 3 * 2_000 + 5_000) for i in range(160)]
BOTH = {"l": "left", "r": "right"}


def topology() -> Topology:
    """Stores of most kinds, behind repartition topics and not."""
    builder = StreamsBuilder("job")
    events, left, right = builder.stream("events"), builder.table("left"), builder.table("right")
    for large in (True, False):  # alike, and called by numbers: told apart by their order alone
        some = events.filter_not(pc.field("value") > 25) if large else events.filter(pc.field("value") > 25)
        some.deduplicate_by_key(20 * SECOND).to(f"once-{large}")
    left.join(right, BOTH).to_stream().to("joined")
    right.group_by("value").count().to_stream().to("regrouped")
    events.group_by("value").count().to_stream().to("counted")
    windows = TimeWindows.of_size_and_grace(10 * SECOND, 5 * SECOND)
    final = Suppressed.until_window_closes(BufferConfig.unbounded())
    events.group_by_key().windowed_by(windows).count().suppress(final).to_stream().to("final")
    sessions = SessionWindows.of_inactivity_gap_and_grace(4 * SECOND, 5 * SECOND)
    events.group_by_key().windowed_by(sessions).reduce(max).to_stream().to("sessions")
    near = JoinWindows.of_time_difference_and_grace(3 * SECOND, 5 * SECOND)
    events.left_join(events, BOTH, near).to("met")
    left.join(right.to_stream().repartition().to_table(), BOTH, foreign_key="key").to_stream().to("referred")
    return builder.build()


def half(directory: Path) -> Pipeline:
    """The first half of the records replayed."""
    pipeline = Pipeline(directory, topology())
    for number, topic in enumerate(("events", "left", "right")):
        pipeline.archive(topic, ROWS[number:], TYPES, partitions=2)
    pipeline.run(CUT_MS)
    return pipeline
