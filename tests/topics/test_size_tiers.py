"""Small files are merged, in portions that grow: the work stays in proportion, and few files stay."""

from __future__ import annotations

import random

import pytest

from statelib.topics.files import ArchiveFile
from statelib.topics.size_tiers import all_small, mergeable

KB, MB = 1 << 10, 1 << 20


def file(first, rows, size_bytes):
    return ArchiveFile(
        path=f"partition=0/{first:020d}-x.parquet",
        partition=0,
        rows=rows,
        size_bytes=size_bytes,
        first_offset=first,
        last_offset=first + rows - 1,
        min_timestamp_ms=None,
        max_timestamp_ms=None,
    )


def files(*sizes):
    return [file(n, 1, size) for n, size in enumerate(sizes)]


def chosen(sizes, target):
    return [[f.first_offset for f in group] for group in mergeable(files(*sizes), target)]


@pytest.mark.parametrize(
    ("sizes", "target", "expected"),
    [
        ([], 100, []),
        ([60], 100, []),
        ([60, 39], 100, []),
        ([60, 40], 100, [[0, 1]]),
        ([100, 60, 40, 200], 100, [[1, 2]]),
        ([60, 100, 40], 100, []),
        ([30, 30, 30, 30, 90, 20, 5], 100, [[0, 1, 2, 3], [4, 5]]),
        ([MB, *[20 * KB] * 6], 8 * MB, []),  # the tiers below 8 MB: 1 MB, 128 KB, 16 KB
        ([MB, *[20 * KB] * 7], 8 * MB, [[1, 2, 3, 4, 5, 6, 7]]),
    ],
)
def test_neighbours_are_merged_where_they_come_to_a_bound_together(sizes, target, expected):
    assert chosen(sizes, target) == expected


@pytest.mark.parametrize("seed", range(3))
def test_each_byte_is_rewritten_a_few_times_and_few_files_stay(seed):
    """10,000 commits with a small file each, looked at after every eighth; merged files are 80 % of their parts."""
    chance = random.Random(seed)
    present, written, rewritten, offset = [], 0, 0, 0
    for commit in range(10_000):
        size = chance.choice((2 * KB, 4 * KB, 30 * KB, 200 * KB))
        present.append(file(offset, 10, size))
        offset, written = offset + 10, written + size
        if commit % 8 == 7:
            for group in mergeable(present, 64 * MB):
                at = present.index(group[0])
                assert present[at : at + len(group)] == group
                size = sum(f.size_bytes for f in group) * 4 // 5
                present[at : at + len(group)] = [file(group[0].first_offset, sum(f.rows for f in group), size)]
                rewritten += size
            assert len(present) < 8 * 5 + 40
    assert rewritten < 6 * written
    assert [f.first_offset for f in present] == [sum(f.rows for f in present[:n]) for n in range(len(present))]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([3], []),
        ([3, 4], [[0, 1]]),
        ([3, 200, 4, 5], [[2, 3]]),
        ([60, 60, 60], [[0, 1]]),
        ([99, 1, 1, 100, 1], [[0, 1]]),
        ([100, 250], []),
        ([1] * 250, [[*range(100)], [*range(100, 200)], [*range(200, 250)]]),
    ],
)
def test_all_small_neighbours_become_one(sizes, expected):
    assert [[f.first_offset for f in group] for group in all_small(files(*sizes), 100)] == expected
