"""What is late, told by a loop over records, by a scan and by what the log says of files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.topics.disorder import IN_ORDER, Bounds, disorder_of_files, disorder_of_records
from tests.effort import examples

FILES = st.lists(st.lists(st.none() | st.integers(-5, 30), min_size=1, max_size=6), max_size=6)


def by_a_loop(files: list[list[int | None]]) -> tuple[int, int]:
    largest, late, by = None, 0, 0
    for time in (time for file in files for time in file if time is not None):
        if largest is not None and time < largest:
            late += 1
            by = max(by, largest - time)
        largest = time if largest is None else max(largest, time)
    return late, by


@given(files=FILES)
@examples(300)
def test_a_scan_counts_what_a_loop_counts(files) -> None:
    late, by = by_a_loop(files)
    columns = [pa.array(file, pa.timestamp("ms", "UTC")) for file in files]
    found = disorder_of_records(columns)
    assert found.is_exact
    assert (found.late_records.exact, found.max_late_ms.exact) == (late, by)


@given(files=FILES)
@examples(500)
def test_files_give_bounds_that_hold(files) -> None:
    known = [file for file in files if any(time is not None for time in file)]
    late, by = by_a_loop(known)
    least, most = (np.array([end(t for t in f if t is not None) for f in known], np.int64) for end in (min, max))
    found = disorder_of_files(np.array([len(file) for file in known], np.int64), least, most)
    assert found.late_records.least <= late <= found.late_records.most
    assert found.max_late_ms.least <= by <= found.max_late_ms.most


def bounds(*files: tuple[int, int, int]) -> tuple[Bounds, Bounds]:
    found = disorder_of_files(*(np.array(column, np.int64) for column in zip(*files, strict=True)))
    return found.late_records, found.max_late_ms


def test_one_record_a_file_leaves_nothing_open() -> None:
    assert bounds((1, 5, 5), (1, 3, 3), (1, 9, 9)) == (Bounds(1, 1), Bounds(2, 2))


def test_files_of_one_time_leave_nothing_open() -> None:
    assert bounds((100, 5, 5), (100, 6, 6)) == (Bounds(0, 0), Bounds(0, 0))


def test_within_a_file_all_but_the_greatest_may_be_late() -> None:
    assert bounds((10, 0, 60)) == (Bounds(0, 9), Bounds(0, 60))


def test_a_file_that_reaches_back_has_a_late_record() -> None:
    assert bounds((10, 0, 60), (10, 40, 80)) == (Bounds(1, 18), Bounds(20, 60))


def test_partitions_add_up() -> None:
    one, other = (disorder_of_records([pa.array(times, pa.timestamp("ms", "UTC"))]) for times in ([5, 1, 9], [3, 2]))
    assert one.with_those_of(other).late_records == Bounds(2, 2)
    assert one.with_those_of(other).max_late_ms == Bounds(4, 4)
    assert one.with_those_of(IN_ORDER) == one
