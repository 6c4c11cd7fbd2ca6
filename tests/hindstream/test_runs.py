"""Which run is meant: rollbacks are runs too, and nothing to replay."""

from __future__ import annotations

import pytest

from hindstream.runs import find_plan, find_replay
from statelib.commits import commit, plan, publish, record_audit, rollback, stage
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from tests.commits import toy
from tests.commits.toy import DAY


@pytest.fixture
def warehouse(tmp_path):
    warehouse = Storage(str(tmp_path / "warehouse"))
    toy.archive_events(warehouse, 0, days=4)
    for day in (1, 2):
        planned = plan(toy.job(), warehouse, now_ms=1, until_ms=day * DAY)
        stage(warehouse, planned, toy.replay(warehouse, planned, tmp_path / "scratch"))
        record_audit(warehouse, planned, toy.passed(planned))
        commit(warehouse, planned, now_ms=2)
        publish(warehouse, planned.job)
    return warehouse


def test_a_rollback_is_the_newest_run_and_replays_nothing(warehouse):
    rollback(warehouse, "counting", 1, now_ms=3)
    assert find_plan(warehouse, "counting", None).run_id == "00000003-1"
    with pytest.raises(ConfigurationError, match=r"the run replays nothing: rollback to 1.*hindstream plan"):
        find_replay(warehouse, "counting", None)
    assert find_replay(warehouse, "counting", "00000002-1").commit == 2
    planned = plan(toy.job(), warehouse, now_ms=1)
    assert find_replay(warehouse, "counting", None) == planned


def test_a_rollback_that_was_not_finished_is_passed_over(warehouse):
    def stop(name):
        if name == "rollback.planned":
            raise InterruptedError

    planned = plan(toy.job(), warehouse, now_ms=1)
    with observed(stop), pytest.raises(InterruptedError):
        rollback(warehouse, "counting", 1, now_ms=3, supersede=True)
    assert find_replay(warehouse, "counting", None) == planned
