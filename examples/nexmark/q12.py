"""Nexmark q12, *windows of ten seconds*: how many bids did each user make in each?

The original's windows are of processing time: what happened to be processed in the same ten seconds. A replay has no
wall clock and gives the same result each time, so these windows are of event time.
"""

from __future__ import annotations

from datetime import timedelta

from hindstream import BufferConfig, Job, StreamsBuilder, Suppressed, TimeWindows


def job() -> Job:
    """Bids by user and window."""
    builder = StreamsBuilder("nexmark-q12")
    (
        builder.stream("bid")
        .map("bidder", "auction")  # no more than is needed goes through the repartition topic
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(timedelta(seconds=10), timedelta(seconds=4)))
        .count()
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to("q12")
    )
    return Job("nexmark-q12", builder.build())
