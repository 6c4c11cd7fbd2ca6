"""A driver that replays one slice of the counting job, in a process of its own that can be killed at any named step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits import (
    FilePolicy,
    Retention,
    Runs,
    commit,
    maintain,
    plan,
    publish,
    read_staged,
    record_audit,
    rollback,
    stage,
)
from statelib.commits.publication.republish import republish
from statelib.documents.plans import Plan
from statelib.documents.topologies import TopologyDescription
from statelib.errors.fault_points import observed
from statelib.storage import Storage
from tests.commits import toy
from tests.faults.killer import killer

if TYPE_CHECKING:
    from pathlib import Path

JOB = "counting"


def drive(
    root: Path,
    until_ms: int,
    attempt: str,
    kill_at: tuple[str, int] | None = None,
    *,
    keep: int = 1,
    back_to: int = 0,
    republishes: bool = False,
) -> None:
    """Runs all phases, and kills this process when it comes to the n-th step of a name.

    Appends the name of each step to ``root/steps``. With ``back_to`` it only rolls back to that commit, and where it
    ``republishes`` it only publishes the sink anew.
    """

    def note(name: str) -> None:
        with (root / "steps").open("a") as log:
            log.write(f"{name}\n")

    warehouse = Storage(str(root / "warehouse"))
    with observed(killer(kill_at, note)):
        if back_to:
            rollback(warehouse, JOB, back_to, now_ms=1)
        elif republishes:
            republish(warehouse, JOB, "counts", now_ms=1)
        else:
            _run(warehouse, root / "scratch", until_ms, attempt, keep)


def _run(warehouse: Storage, scratch: Path, until_ms: int, attempt: str, keep: int) -> None:
    publish(warehouse, JOB)
    job = toy.job(JOB)
    described = TopologyDescription(fingerprint=job.topology.fingerprint, nodes=(), stores=())
    planned = plan(job, warehouse, now_ms=1, until_ms=until_ms, describe=lambda _: described)
    if isinstance(planned, Plan):
        if read_staged(warehouse, planned) is None:
            stage(warehouse, planned, toy.replay(warehouse, planned, scratch, attempt))
        if Runs(warehouse, JOB).audit(planned.run_id) is None:
            record_audit(warehouse, planned, toy.passed(planned))
        commit(warehouse, planned, now_ms=1)
    publish(warehouse, JOB)
    files = FilePolicy(attempt, target_bytes=1_900, keep_replaced_ms=0, every_commits=1)  # of two slices
    maintain(warehouse, JOB, Retention(keep), now_ms=0, files=files)
