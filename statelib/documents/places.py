"""Partitions of topics as documents name them: places, ``<topic>/<partition>``. Where files of state lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def place_of(topic: str, partition: int) -> str:
    """What a partition is called."""
    return f"{topic}/{partition}"


def state_folder(job: str, task_id: str) -> str:
    """Where the files of a task's checkpoints lie, below the warehouse."""
    return f"jobs/{job}/state/{task_id}"


def topic_and_partition(place: str) -> tuple[str, int]:
    """Which partition a place is."""
    topic, _, partition = place.rpartition("/")
    return topic, int(partition)


def by_topic(numbers: Iterable[Mapping[str, int]]) -> dict[str, dict[int, int]]:
    """Numbers by place, as those of tasks are, all together by topic and partition."""
    found: dict[str, dict[int, int]] = {}
    for of_task in numbers:
        for place, number in of_task.items():
            topic, partition = topic_and_partition(place)
            found.setdefault(topic, {})[partition] = number
    return found
