"""How long a run may take, by the runs before it."""

from __future__ import annotations

import pytest

from statelib.commits.run_times import Estimate, estimated_time, fitted
from statelib.storage import Storage
from tests.hindstream.report.documents import NAME, make_run


@pytest.mark.parametrize(
    ("measured", "records", "seconds"),
    [
        ([(100, 7.0)], 500, 7.0),  # of one run, or runs of one size, nobody can tell what a record costs
        ([(100, 7.0), (100, 9.0)], 500, 8.0),
        ([(100, 3.0), (200, 5.0)], 400, 9.0),
        ([(100, 9.0), (200, 3.0)], 400, 6.0),  # a larger run was quicker: by chance
        ([(100, 1.0), (200, 5.0)], 300, 6.0),  # no run takes less than nothing
        ([(0, 2.0), (1000, 4.0)], 0, 2.0),
    ],
)
def test_a_fixed_share_and_one_for_each_record(measured, records, seconds) -> None:
    assert fitted(measured, records) == pytest.approx(seconds)


def test_it_is_told_by_committed_runs(tmp_path) -> None:
    storage = Storage(str(tmp_path))
    assert estimated_time(storage, NAME, 10) is None
    make_run(storage, 1)
    make_run(storage, 2, passes=False)
    found = estimated_time(storage, NAME, 10)
    assert isinstance(found, Estimate)
    assert found.runs == 1
    assert found.seconds > 1.4
