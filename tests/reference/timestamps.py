"""The timestamps that Kafka Streams' ``RecordQueue`` gives the records of a partition, one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Extractor = Literal["own", "fail", "skip", "partition-time"]
"""``own``: a user's; the others are Kafka's."""


def extract(extractor: Extractor, timestamps: Iterable[int | None]) -> list[int | Literal["dropped", "bad"]]:
    """What becomes of records: the timestamp of each, or that it is dropped and counted, or ends the application.

    Args:
        extractor: Which one.
        timestamps: What it finds in each record; None: nothing.
    """
    partition_time = -1
    outcomes: list[int | Literal["dropped", "bad"]] = []
    for found in timestamps:
        timestamp = found
        if timestamp is None or timestamp < 0:
            match extractor:
                case "own":  # a null cannot be a Java long
                    outcomes.append("bad" if timestamp is None else "dropped")
                    continue
                case "fail":
                    outcomes.append("bad")
                    continue
                case "skip":
                    outcomes.append("dropped")
                    continue
                case _ if partition_time < 0:
                    outcomes.append("bad")
                    continue
                case _:
                    timestamp = partition_time
        partition_time = max(partition_time, timestamp)
        outcomes.append(timestamp)
    return outcomes
