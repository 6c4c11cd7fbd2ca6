"""Jobs whose state holds a given number of keys, and topics with further hours of records behind it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.dataset import START_MS, Dataset, Parameters
from benchmarks.scale.processes import in_fresh_process
from benchmarks.scale.replays import Replays
from benchmarks.works import job

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.scale.replays import Slice
    from statelib.job.job import Job

_FOR_GOOD = timedelta(days=36_500)
_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class KeptKeys:
    """A job with so many keys in its state, in one partition.

    Attributes:
        work: W1, with ids that are remembered for good; or W2, with a table of as many campaigns.
        keys: In the state.
        hourly: Clicks in an hour.
        hours: How many hours follow.
    """

    work: str
    keys: int
    hourly: int
    hours: int

    def begin(self, folder: Path, *, is_audited: bool = False) -> tuple[Replays, Slice]:
        """The job, the first slice of which is committed: its keys are in the state, and all hours still to come."""
        data = folder / "data"
        in_fresh_process(partial(Dataset.generate, data, self._parameters()))  # leaves its memory behind
        replays = Replays(folder, self.job, Dataset.open(data), is_audited=is_audited)
        return replays, replays.run(until_ms=self.end_ms(0))

    @property
    def job(self) -> Job:
        """What is run."""
        return job(self.work, deduplication_interval=_FOR_GOOD)

    def end_ms(self, hour: float) -> int:
        """Where the slice of the hour with this number (from 1) ends; 0: the first slice."""
        first = round(self.keys / self.hourly * _HOUR_MS) if self.work == "W1" else 0
        return START_MS + first + round(hour * _HOUR_MS)

    def _parameters(self) -> Parameters:
        common = {"partitions": 1, "records_per_second": self.hourly / 3600, "very_late": 0.0}
        if self.work == "W1":
            return Parameters(records=self.keys + self.hourly * (self.hours + 1), rate_minutes=1e7, **common)
        records = self.hourly * (
            self.hours + 1
        )  # of all campaigns alike; their rates are known before and change rarely
        return Parameters(records=records, campaigns=self.keys, zipf=0, rate_minutes=1e7, **common)
