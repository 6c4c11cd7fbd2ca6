"""Cuts topics into slices. SIGNATURES; bodies follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from statelib.topics.archive import TopicArchive


@dataclass(frozen=True, slots=True)
class SourceSlice:
    """What one run replays of one partition: offsets [start_offset, end_offset)."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: int  # exact, holes not counted


def cut_at(archive: TopicArchive, until_ms: int) -> dict[int, int]:
    """By partition, the offset of the first record with timestamp >= until_ms, else the end offset."""
    raise NotImplementedError


def plan_slice(archive: TopicArchive, start_offsets: Mapping[int, int] | None = None, *, until_ms: int | None = None,
               end_offsets: Mapping[int, int] | None = None, on_lost: Literal["refuse", "accept"] = "refuse") -> list[SourceSlice]:
    """The next slice, one entry a partition in order (empty ones included: start_offset == end_offset).

    start_offsets: positions after the previous slice (TaskPosition.source_offsets), None: from the earliest.
    until_ms: cut rule; end_offsets: given ends; neither: to the archive's end; both is a ConfigurationError.

    Raises ConfigurationError: partition count changed, end beyond the archive or before the start.
    Raises InputError: the start is not in the archive any more (unless on_lost="accept"), or the archive shrank.
    """
    raise NotImplementedError
