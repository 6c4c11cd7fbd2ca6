"""What `hindstream.run` and `hindstream.backfill` give: counts, ids, the report, and the records of the sinks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hindstream.console.numbers import count_text, time_text
from hindstream.interactive.html import facts_html, rows_html
from hindstream.interactive.sink_records import SinkRecords, Sinks
from hindstream.report.documents import RunDocuments, job_ledger
from hindstream.report.layout import report_path
from hindstream.report.losses import losses
from statelib.commits import CommitLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hindstream.spark.phases.pipeline import SliceResult
    from statelib.commits import NothingToDo
    from statelib.job.job import Job
    from statelib.storage import Storage


@dataclass(frozen=True)
class Counts:
    """Where records went, by the ledger of the runs.

    Attributes:
        read: Records of the sources.
        written: Records by sink.
        dropped: Records that a reader of results would miss, each counted once, by reason: ``late``, ``duplicate``,
            ``quarantined``, ``null-key``, ``filtered``, ...
        held: Records, windows and results that wait in the state for a later run.
        unaccounted: Records that the ledger cannot account for; not 0 would be a defect.
    """

    read: int = 0
    written: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    held: int = 0
    unaccounted: int = 0

    @property
    def late(self) -> int:
        """Records that came after their windows and the grace period were over."""
        return self.dropped.get("late", 0)

    @property
    def duplicates(self) -> int:
        """Records whose id had been forwarded before."""
        return self.dropped.get("duplicate", 0)

    @property
    def quarantined(self) -> int:
        """Records that could not be used."""
        return self.dropped.get("quarantined", 0)


@dataclass(frozen=True, repr=False)
class RunResult:
    """What became of a slice; made by `hindstream.run`.

    Attributes:
        job: The job's name.
        nothing_to_do: Why nothing was done, as a sentence; None: something was.
        run_id: The run; None: nothing was done.
        commit: The job's newest commit: that of the run, if there is one; None: it has none yet.
        until_ms: End of the slice in event time; None: all there was.
        counts: Where the records went.
        ledger: By node of the topology, its accounts.
        report: Where the report of the run is, or of the job, a path or URL; None: there is none yet.
        seconds: By phase.
    """

    job: str
    nothing_to_do: str | None
    run_id: str | None
    commit: int | None
    until_ms: int | None
    counts: Counts
    ledger: Mapping[str, Mapping[str, int]]
    report: str | None
    seconds: Mapping[str, float]
    _sinks: Sinks
    _documents: tuple[RunDocuments, ...] = ()

    @classmethod
    def of_slice(cls, job: Job, warehouse: Storage, done: SliceResult) -> RunResult:
        """That of a run."""
        documents = (RunDocuments(done.plan, done.staged, done.audit, done.commit),)
        return cls(
            job=job.name,
            nothing_to_do=None,
            run_id=done.plan.run_id,
            commit=done.commit.commit,
            until_ms=done.plan.until_ms,
            counts=_counts(job, documents),
            ledger={
                node: {"in": of.records_in, "out": of.records_out, **of.accounts, "held": of.held_after}
                for node, of in job_ledger(documents).items()
            },
            report=done.report,
            seconds=done.seconds,
            _sinks=Sinks(job, warehouse, done.commit, (done.commit,)),
            _documents=documents,
        )

    @classmethod
    def of_nothing(cls, job: Job, warehouse: Storage, nothing: NothingToDo, until_ms: int | None) -> RunResult:
        """That of a call that found nothing to do."""
        page = report_path(job.name)
        head = CommitLog(warehouse, job.name).head()
        return cls(
            job=job.name,
            nothing_to_do=str(nothing),
            run_id=None,
            commit=None if head is None else head.commit,
            until_ms=until_ms,
            counts=_counts(job, ()),
            ledger={},
            report=warehouse.uri(page) if warehouse.exists(page) else None,
            seconds={},
            _sinks=Sinks(job, warehouse, head),
        )

    @property
    def sinks(self) -> tuple[str, ...]:
        """The topics that the job writes."""
        return self._sinks.job.topology.sink_topics

    def sink(self, topic: str, *, only_new: bool = False) -> SinkRecords:
        """The records of a sink: of the whole topic, from the job's first run to this one.

        So a cell of a notebook shows the same when it runs again, though there is nothing left to do then.

        Args:
            topic: A sink of the job, or its topic of late or quarantined records.
            only_new: Only those that this run has written.

        Raises:
            ConfigurationError: The job does not write this topic.
        """
        return self._sinks.records(topic, only_new=only_new)

    def __repr__(self) -> str:
        if self.nothing_to_do is not None:
            return f"RunResult({self.nothing_to_do!r})"
        ids = f"job={self.job!r}, commit={self.commit}, run_id={self.run_id!r}"
        return f"RunResult({ids}, {_counts_text(self.counts)}, report={self.report!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        if self.nothing_to_do is not None:
            return facts_html(self.job, {"nothing to do": self.nothing_to_do, "report": self.report})
        ids = {"commit": self.commit, "run": self.run_id, "slice": _slice_text(self.until_ms)}
        return facts_html(self.job, {**ids, **_facts(self.counts), "report": self.report})


@dataclass(frozen=True, repr=False)
class BackfillResult:
    """What became of several slices; made by `hindstream.backfill`.

    Attributes:
        runs: A result for each slice, in their order.
        job: The job's name.
        nothing_to_do: Why nothing was done in any slice, as a sentence; None: something was.
        run_ids: Those of the runs; a slice that had been replayed before has none.
        commits: The commits that the runs have made.
        counts: Where the records of all slices went.
        report: Where the newest report is: a path or URL; None: there is none yet.
    """

    runs: tuple[RunResult, ...]
    job: str
    nothing_to_do: str | None
    run_ids: tuple[str, ...]
    commits: tuple[int, ...]
    counts: Counts
    report: str | None
    _sinks: Sinks

    @classmethod
    def of_runs(cls, runs: Sequence[RunResult]) -> BackfillResult:
        """That of slices one after the other; there is one at least."""
        last, new = runs[-1], [run for run in runs if run.run_id is not None]
        documents = [document for run in new for document in run._documents]  # noqa: SLF001 - of this module
        sinks = last._sinks  # noqa: SLF001 - of this module
        return cls(
            runs=tuple(runs),
            job=last.job,
            nothing_to_do=None if new else last.nothing_to_do,
            run_ids=tuple(run.run_id for run in new if run.run_id is not None),
            commits=tuple(run.commit for run in new if run.commit is not None),
            counts=_counts(sinks.job, documents),
            report=last.report,
            _sinks=replace(sinks, new=tuple(of.commit for of in documents if of.commit is not None)),
        )

    @property
    def sinks(self) -> tuple[str, ...]:
        """The topics that the job writes."""
        return self._sinks.job.topology.sink_topics

    def sink(self, topic: str, *, only_new: bool = False) -> SinkRecords:
        """As that of `RunResult`; ``only_new``: only the records that this backfill has written."""
        return self._sinks.records(topic, only_new=only_new)

    def __repr__(self) -> str:
        if self.nothing_to_do is not None:
            return f"BackfillResult({self.nothing_to_do!r})"
        ids = f"job={self.job!r}, slices={len(self.runs)}, commits={list(self.commits)}"
        return f"BackfillResult({ids}, {_counts_text(self.counts)}, report={self.report!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        if self.nothing_to_do is not None:
            return facts_html(self.job, {"nothing to do": self.nothing_to_do, "report": self.report})
        rows = [
            (_slice_text(run.until_ms), run.commit if run.run_id else "nothing to do", *_cells(run.counts))
            for run in self.runs
        ]
        titles = ("slice", "commit", "read", "written", "dropped", "held")
        return facts_html(self.job, {**_facts(self.counts), "report": self.report}) + rows_html(titles, rows)


def _counts(job: Job, runs: Iterable[RunDocuments]) -> Counts:
    runs = list(runs)
    nodes = job_ledger(runs)
    written: Counter[str] = Counter()
    for run in runs:
        written.update(run.records_by_topic)
    return Counts(
        read=sum(run.plan.records for run in runs),
        written={topic: written[topic] for topic in job.topology.sink_topics},
        dropped={account.name: count for account, count in losses(job.topology, nodes).items()},
        held=sum(metrics.held_after for metrics in nodes.values()),
        unaccounted=sum(abs(metrics.unaccounted) for metrics in nodes.values()),
    )


def _slice_text(until_ms: int | None) -> str:
    return time_text(None) if until_ms is None else f"before {time_text(until_ms)}"


def _counts_text(counts: Counts) -> str:
    return f"read={counts.read}, written={dict(counts.written)}, dropped={dict(counts.dropped)}"


def _facts(counts: Counts) -> dict[str, object]:
    """The counts as a person reads them."""
    return {
        "read": count_text(counts.read),
        **{f"written to {topic}": count_text(count) for topic, count in counts.written.items()},
        **{f"dropped, {reason}": count_text(count) for reason, count in counts.dropped.items()},
        "held": count_text(counts.held),
    }


def _cells(counts: Counts) -> tuple[str, ...]:
    totals = (counts.read, sum(counts.written.values()), sum(counts.dropped.values()), counts.held)
    return tuple(map(count_text, totals))
