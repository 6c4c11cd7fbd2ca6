"""What a job's page says of its runs, kept from report to report so that no report reads all of them.

::

    jobs/<job>/reports/history.json   {"checksum": "...", "format_version": 3, "through": <n>, ...}

A `History` as JSON, with the checksum of a run's documents (`statelib.documents.document.json_checksum`); format 1 had
none, and to format 2 no repair was a commit that counts. It is made of the runs' own documents, each taken up once, and
holds their sums and a line for each of the newest. If it is lost, damaged, of another version or ahead of the commits,
or when there was a rollback, it is made again from the documents of all runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, Self

from pydantic import BaseModel, ConfigDict

from hindstream.report.documents import RunDocuments, add_to_ledger, load_runs
from hindstream.report.metrics_table import windows
from statelib.commits import CommitLog
from statelib.documents.document import json_checksum
from statelib.metrics.node_metrics import NodeMetrics

if TYPE_CHECKING:
    from statelib.storage import Storage

FORMAT_VERSION: Final = 3

RUNS_SHOWN = 100
"""How many of the newest runs have a line in the table and a place in the charts."""


class RunSummary(BaseModel):
    """A run's line on the page of its job; None: it has not come that far.

    Attributes:
        status: As `RunDocuments` has it.
        is_committed: Whether it counts: see `RunDocuments.counts`.
        until_ms: The end of its slice.
        checks: How many passed, and of how many.
        seconds: By phase.
        stores: Size of each store in bytes.
        windows: Windows and results that are open, held or sealed after it, by what they are called.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    commit: int
    status: str
    is_committed: bool
    sealed: bool
    until_ms: int | None
    records_in: int
    records_out: int | None
    state_bytes: int | None
    checks: tuple[int, int] | None
    seconds: dict[str, float]
    stores: dict[str, int]
    windows: dict[str, int]

    @classmethod
    def of(cls, run: RunDocuments) -> Self:
        """The line of a run."""
        checks = run.audit.checks if run.audit else ()
        return cls(
            run_id=run.run_id,
            commit=run.plan.commit,
            status=run.status,
            is_committed=run.counts,
            sealed=run.sealed,
            until_ms=run.plan.until_ms,
            records_in=run.plan.records,
            records_out=run.records_out if run.staged or run.counts else None,
            state_bytes=run.state_bytes if run.staged or run.counts else None,
            checks=(sum(check.success for check in checks), len(checks)) if run.audit else None,
            seconds=run.seconds,
            stores=run.stores,
            windows=windows(run.nodes),
        )


class History(BaseModel):
    """The runs up to a commit.

    Attributes:
        through: The last commit whose runs are taken up; 0: none.
        runs: How many there were, those that were not committed included.
        newest: The last of them, at most `RUNS_SHOWN`, the oldest first.
        last: The one that made the last commit; stores and windows are those of the last one that replayed.
        records_in: Taken up by committed runs; so are the following.
        records_out: Written to the sinks.
        seconds: Of the phases that are timed.
        checks: How many there were in audits.
        nodes: The ledgers as one: held before the first and after the last, all else added up.
    """

    model_config = ConfigDict(extra="forbid")

    format_version: Literal[3] = FORMAT_VERSION
    through: int = 0
    runs: int = 0
    newest: list[RunSummary] = []
    last: RunSummary | None = None
    records_in: int = 0
    records_out: int = 0
    seconds: float = 0.0
    checks: int = 0
    nodes: dict[str, NodeMetrics] = {}

    def encode(self) -> bytes:
        """As JSON."""
        raw = self.model_dump(mode="json")
        return json.dumps({**raw, "checksum": json_checksum(raw)}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """What `encode` was given; an empty history where there is none or it cannot be used."""
        try:
            raw = {} if data is None else json.loads(data)
            is_whole = isinstance(raw, dict) and raw.pop("checksum", None) == json_checksum(raw)
            return cls.model_validate(raw) if is_whole else cls()
        except ValueError:  # not JSON, or not a history
            return cls()

    def add(self, run: RunDocuments) -> None:
        """Takes up the next run, in the order of `load_runs`."""
        summary = RunSummary.of(run)
        self.runs += 1
        self.newest = [*self.newest, summary][-RUNS_SHOWN:]
        if summary.is_committed:
            if run.staged is None and self.last is not None:
                summary = summary.model_copy(update={"stores": self.last.stores, "windows": self.last.windows})
            self.through, self.last = run.plan.commit, summary
            self.records_in += summary.records_in
            self.records_out += summary.records_out or 0
            self.seconds += sum(summary.seconds.values())
            self.checks += summary.checks[1] if summary.checks else 0
            add_to_ledger(self.nodes, run)


def follow(storage: Storage, job: str, path: str) -> tuple[History, list[RunDocuments]]:
    """The history as it is at ``path``, brought up to the head commit.

    Returns:
        It, not stored yet, and the runs that it has taken up.
    """
    head = CommitLog(storage, job).head_number()
    history = History.decode(storage.get_if_present(path))
    if history.through > head:
        history = History()
    added = _runs(storage, job, history.through, head)
    if history.through and any(run.plan.rolled_back_to is not None and run.commit is not None for run in added):
        history = History()  # what was added up may have been taken back
        added = _runs(storage, job, 0, head)
    for run in added:
        history.add(run)
    history.through = head
    return history, added


def _runs(storage: Storage, job: str, after: int, head: int) -> list[RunDocuments]:
    return [run for run in load_runs(storage, job, after) if run.plan.commit <= head]
