"""One holder at a time, by name; nobody else plans meanwhile."""

from __future__ import annotations

import pytest

from statelib.commits.hold import read_hold, release_hold, take_hold
from statelib.commits.run.plan import plan
from statelib.commits.versions.rollback import rollback
from statelib.documents.plans import Plan
from statelib.documents.upkeep import Hold
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from tests.commits import toy
from tests.commits.toy import DAY

STEPS = ("hold.before-create", "hold.created", "hold.before-release")


@pytest.fixture
def events(warehouse):
    toy.archive_events(warehouse, 0, days=3)


def test_a_job_is_held_by_one_name() -> None:
    warehouse = Storage("memory://")
    hold = take_hold(warehouse, "j", "me", reason="migration of s", now_ms=5)
    assert read_hold(warehouse, "j") == hold == Hold(holder="me", reason="migration of s", since_ms=5)
    assert take_hold(warehouse, "j", "me", reason="again", now_ms=9) == hold
    with pytest.raises(ConfigurationError, match=r"held by me: migration of s.*hindstream release j me"):
        take_hold(warehouse, "j", "you", reason="", now_ms=6)
    with pytest.raises(ConfigurationError, match="held by me"):
        release_hold(warehouse, "j", "you")
    release_hold(warehouse, "j", "me")
    release_hold(warehouse, "j", "me")
    assert read_hold(warehouse, "j") is None


def test_only_the_holder_plans(warehouse, events, run_slice) -> None:
    run_slice(until_ms=DAY)
    take_hold(warehouse, toy.job().name, "me", reason="migration", now_ms=5)
    with pytest.raises(ConfigurationError, match="held by me"):
        plan(toy.job(), warehouse, now_ms=6)
    with pytest.raises(ConfigurationError, match="held by me"):
        rollback(warehouse, toy.job().name, 1, now_ms=6)
    assert isinstance(plan(toy.job(), warehouse, now_ms=6, holder="me"), Plan)
    release_hold(warehouse, toy.job().name, "me")
    assert isinstance(plan(toy.job(), warehouse, now_ms=6), Plan)


def test_a_job_with_an_open_run_is_not_held(warehouse, events, run_slice) -> None:
    run_slice(until_ms=DAY)
    plan(toy.job(), warehouse, now_ms=6)
    with pytest.raises(ConfigurationError, match=r"a run is open.*00000002-1"):
        take_hold(warehouse, toy.job().name, "me", reason="migration", now_ms=5)
    assert read_hold(warehouse, toy.job().name) is None


def hold_and_let_go(warehouse: Storage) -> None:
    take_hold(warehouse, "j", "me", reason="", now_ms=1)
    release_hold(warehouse, "j", "me")


class Killed(BaseException):
    """As if the process had ended here."""


@pytest.mark.parametrize("at", STEPS)
def test_killed_at_a_step_it_is_done_again(at: str) -> None:
    warehouse = Storage("memory://")

    def kill(name: str) -> None:
        if name == at:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        hold_and_let_go(warehouse)
    hold_and_let_go(warehouse)
    assert read_hold(warehouse, "j") is None
