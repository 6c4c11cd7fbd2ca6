"""Hosts of the counting job (`tests.commits.toy`), each with a disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from statelib.checkpoint import Checkpoints
from statelib.commits import CommitLog, commit, plan, publish, record_audit, stage
from statelib.placement.copies import CopyKeeper, CopyOrder
from statelib.placement.holdings import CopyPosition, HostReport, cache_folder, report_holdings
from statelib.storage import Storage
from tests.commits import toy

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan
    from statelib.placement.copies import CopyResult

JOB = "counting"
TASKS = ("0_0", "0_1")


@dataclass
class Warehouse:
    """One of the counting job."""

    storage: Storage

    @classmethod
    def made(cls, root: Path) -> Warehouse:
        """A new one, with three days of events."""
        its = cls.opened(root)
        toy.archive_events(its.storage, 0, 3, per_day=200)
        return its

    @classmethod
    def opened(cls, root: Path) -> Warehouse:
        """One that is there."""
        return cls(Storage(str(root / "warehouse")))

    @property
    def log(self) -> CommitLog:
        return CommitLog(self.storage, JOB)

    def planned(self, day: int) -> Plan:
        return plan(toy.job(JOB), self.storage, now_ms=1, until_ms=day * toy.DAY)

    def run(self, day: int, scratch: Path) -> Commit:
        """Commits the slice that ends with a day; its files of state are in the cache of ``scratch``."""
        planned = self.planned(day)
        stage(self.storage, planned, toy.replay(self.storage, planned, scratch, f"day{day}"))
        record_audit(self.storage, planned, toy.passed(planned))
        made = commit(self.storage, planned, now_ms=2)
        publish(self.storage, JOB)
        return made

    def order(self, task_id: str = "0_0", at: Commit | None = None) -> CopyOrder:
        head = at or self.log.read(self.log.head_number())
        return CopyOrder(JOB, task_id, head.tasks[task_id].state, CopyPosition(head.commit, head.run_id))

    def fetch(self, disk: Path, order: CopyOrder, *, files: int | None = None) -> CopyResult:
        """Carries out an order; ``files``: how many may come, by one at a time."""
        asked = iter(range(files - 1 if files else 1_000_000))
        keeper = CopyKeeper(self.storage.uri(""), parallel_transfers=1)
        return keeper.carry_out(order, disk, is_over=lambda: next(asked, None) is None)

    def restored_bytes(self, disk: Path, at: Commit, task_id: str = "0_0") -> int:
        """What a task would have to fetch on this disk."""
        checkpoints = Checkpoints(self.storage, JOB, task_id, cache_folder(disk, JOB, task_id))
        checkpoints.restore(at.tasks[task_id].state, disk / f"restored-{at.commit}-{len(list(disk.iterdir()))}")
        return checkpoints.fetched_bytes


def report(disk: Path, number: int = 1, rack: str | None = None) -> HostReport:
    return report_holdings(disk, JOB, UUID(int=number), rack)
