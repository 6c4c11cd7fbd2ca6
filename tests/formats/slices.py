"""Slices of the counting job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits import commit, plan, publish, record_audit, stage
from tests.commits import toy

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage

JOB = "counting"


def run_slice(warehouse: Storage, scratch: Path, *, days: int) -> Commit:
    """Replays up to the end of a day, committed and published."""
    planned = plan(toy.job(JOB), warehouse, now_ms=1, until_ms=days * toy.DAY)
    stage(warehouse, planned, toy.replay(warehouse, planned, scratch, f"day{days}"))
    record_audit(warehouse, planned, toy.passed(planned))
    made = commit(warehouse, planned, now_ms=2)
    publish(warehouse, JOB)
    return made
