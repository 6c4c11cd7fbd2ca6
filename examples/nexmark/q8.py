"""Nexmark q8, *monitor new users*: who came and opened an auction within the same ten seconds?

``distinct`` forwards the first record of each key and window: each new person, and each seller's first auction. Both
streams have windowed keys, so that they meet only within the same window, and no two of a window are more than ten
seconds apart.
"""

from __future__ import annotations

from datetime import timedelta

from hindstream import Job, JoinWindows, StreamsBuilder, TimeWindows

SIZE, GRACE = timedelta(seconds=10), timedelta(seconds=4)


def job() -> Job:
    """Person and window."""
    builder = StreamsBuilder("nexmark-q8")
    windows = TimeWindows.of_size_and_grace(SIZE, GRACE)
    persons = builder.stream("person").map_values("name").group_by_key().windowed_by(windows).distinct()
    sellers = builder.stream("auction").map("seller", "id").group_by_key().windowed_by(windows).distinct()
    together = JoinWindows.of_time_difference_and_grace(SIZE, GRACE)
    persons.join(sellers, {"name": "left"}, together).to("q8")
    return Job("nexmark-q8", builder.build())
