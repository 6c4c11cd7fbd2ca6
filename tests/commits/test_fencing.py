"""Who was overtaken is told so, whatever it stumbles over first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from statelib.commits import Retention, fenced, maintain, plan
from statelib.errors.kinds import CorruptedDataError, FencedError
from tests.commits import toy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage


def test_a_state_that_has_expired_under_a_late_driver_is_no_damage(
    warehouse: Storage, scratch: Path, run_slice: Callable[..., Commit]
) -> None:
    toy.archive_events(warehouse, 0, days=3)
    run_slice(until_ms=toy.DAY)
    late = plan(toy.job(), warehouse, now_ms=1, until_ms=2 * toy.DAY)
    run_slice(until_ms=2 * toy.DAY)
    run_slice()
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    with pytest.raises(CorruptedDataError):
        toy.replay(warehouse, late, scratch / "late")
    with (
        pytest.raises(FencedError, match="another driver has made commit 2 of job counting") as raised,
        fenced(warehouse, "counting", late.commit),
    ):
        toy.replay(warehouse, late, scratch / "later")
    assert isinstance(raised.value.__cause__, CorruptedDataError)


def test_an_error_of_a_run_that_is_not_overtaken_stays_what_it_is(warehouse: Storage) -> None:
    with pytest.raises(CorruptedDataError, match="gone"), fenced(warehouse, "counting", 1):
        raise CorruptedDataError("gone")
