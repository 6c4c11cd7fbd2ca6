"""Nexmark q11, *user sessions*: how many bids did each user make in each session?

Session windows with a gap of ten seconds. A session is published once, when it can no longer grow. Its key has the
times of its first and last bid; the original's end is ten seconds later.
"""

from __future__ import annotations

from datetime import timedelta

from hindstream import BufferConfig, Job, SessionWindows, StreamsBuilder, Suppressed

GAP, GRACE = timedelta(seconds=10), timedelta(seconds=4)


def job() -> Job:
    """Bids by user and session."""
    builder = StreamsBuilder("nexmark-q11")
    (
        builder.stream("bid")
        .map("bidder", "auction")  # no more than is needed goes through the repartition topic
        .group_by_key()
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(GAP, GRACE))
        .count()
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to("q11")
    )
    return Job("nexmark-q11", builder.build())
