"""What a group's lag says of the time that it has come to."""

from __future__ import annotations

import pytest

from hindstream.kafka.lag import GroupLag, PartitionLag


def partition(position: int, end: int, time_ms: int | None) -> PartitionLag:
    return PartitionLag("t", 0, position, end, time_ms)


@pytest.mark.parametrize(
    ("partitions", "most", "reached_ms"),
    [
        ([], 0, None),
        ([partition(0, 0, None)], 0, None),
        ([partition(5, 5, 90), partition(7, 7, 70)], 0, 90),  # all is read: the idle one holds nothing back
        ([partition(5, 5, 90), partition(7, 9, 70)], 2, 70),
        ([partition(4, 9, 90), partition(7, 9, 70), partition(0, 0, None)], 5, 70),
        ([partition(5, 5, 90), partition(0, 3, None)], 3, None),  # nobody knows what it has seen there
        ([partition(8, 5, 90)], 0, 90),  # the end was asked for before
    ],
)
def test_lag_and_time(partitions, most, reached_ms) -> None:
    found = GroupLag("g", tuple(partitions))
    assert (found.most, found.reached_ms()) == (most, reached_ms)
