"""What a report is made of: the documents of runs, as far as they are there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from statelib.commits import CommitLog, Runs
from statelib.commits.layout import parse_run_id, rolled_back
from statelib.errors.kinds import ConfigurationError
from statelib.metrics.node_metrics import Lateness, NodeMetrics
from statelib.placement.documents import read_copies, read_placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.documents.manifests import Audit, Commit, Staged
    from statelib.documents.plans import Plan
    from statelib.placement.documents import Copies, Placement
    from statelib.storage import Storage


@dataclass(frozen=True)
class RunDocuments:
    """One run: a plan and what became of it.

    Attributes:
        taken_back_by: The commit that has rolled it back.
        sink_nodes: Of a repair, by topic the node that writes it.
    """

    plan: Plan
    staged: Staged | None
    audit: Audit | None
    commit: Commit | None
    taken_back_by: int | None = None
    placement: Placement | None = None
    copies: Copies | None = None
    sink_nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.plan.run_id

    @property
    def status(self) -> str:
        """``committed``, ``quarantined``, what a rollback or a takeover did, or the phase that comes next."""
        if self.taken_back_by is not None:
            return f"rolled back by {self.taken_back_by}"
        if self.plan.instead_of_replay is not None:
            return self.plan.instead_of_replay + ("" if self.commit is not None else ", not done")
        if self.commit is not None:
            return "committed"
        if self.audit is not None:
            return "to be committed" if self.audit.success else "quarantined"
        return "to be audited" if self.staged is not None else "to be replayed"

    @property
    def counts(self) -> bool:
        """Whether what it made is true: it is committed, and no rollback has taken it back."""
        is_true = self.commit is not None and self.taken_back_by is None
        return is_true and (self.plan.instead_of_replay is None or self.plan.repaired_by is not None)

    @property
    def _repair(self) -> Commit | None:
        """The commit of a repair: no task has staged what it brings."""
        return self.commit if self.plan.repaired_by is not None else None

    @property
    def sealed(self) -> bool:
        """Whether the run lets go what waits at the end of its input, and ends the job."""
        return self.plan.end_of_input == "seal"

    @property
    def nodes(self) -> dict[str, NodeMetrics]:
        """The ledgers of all tasks added up, by node; of a repair those of the sinks that it has corrected."""
        totals: dict[str, NodeMetrics] = {}
        if self.plan.repaired_by is not None:
            for topic, records in self.records_by_topic.items():
                node = self.sink_nodes.get(topic, topic)
                totals[node] = NodeMetrics(records_in=records, accounts={"written": records})
        for task in self.staged.tasks if self.staged else ():
            add_ledgers(totals, task.metrics)
        return totals

    @property
    def families(self) -> dict[str, tuple[int, int]]:
        """Bytes and entries of each family of each store, over all tasks."""
        sizes: dict[str, tuple[int, int]] = {}
        for task in self.staged.tasks if self.staged else ():
            for family, size in task.stores.items():
                size_bytes, entries = sizes.get(family, (0, 0))
                sizes[family] = size_bytes + size.size_bytes, entries + size.keys
        return sizes

    @property
    def stores(self) -> dict[str, int]:
        """Bytes of each store: its families together, which are called ``<store>`` or ``<store>.<part>``."""
        families = self.families
        parts = Counter(family.rpartition(".")[0] for family in families)
        sizes: dict[str, int] = {}
        for family, (size_bytes, _) in families.items():
            before = family.rpartition(".")[0]
            store = before if before and (before in families or parts[before] > 1) else family
            sizes[store] = sizes.get(store, 0) + size_bytes
        return sizes

    @property
    def state_bytes(self) -> int:
        """Size of the state files of all tasks."""
        tasks = self._repair.tasks.values() if self._repair else self.staged.tasks if self.staged else ()
        return sum(task.state.size_bytes for task in tasks)

    @property
    def records_by_topic(self) -> Counter[str]:
        """Records written to each sink, quarantine included."""
        records: Counter[str] = Counter()
        of_tasks = (sink for task in (self.staged.tasks if self.staged else ()) for sink in task.sinks)
        for sink in self._repair.sinks if self._repair else of_tasks:
            records[sink.topic] += sink.file.rows
        return records

    @property
    def records_out(self) -> int:
        """Records written to the sinks, quarantine included."""
        return self.records_by_topic.total()

    @property
    def seconds(self) -> dict[str, float]:
        """Of each phase that is timed."""
        timed = {"replay": self.staged, "audit": self.audit}
        return {phase: document.seconds for phase, document in timed.items() if document is not None}


def load_run(storage: Storage, job: str, run_id: str) -> RunDocuments:
    """The documents of a run.

    Raises:
        ConfigurationError: There is no such run.
    """
    plan = Runs(storage, job).plan(run_id) if parse_run_id(run_id) else None
    if plan is None:
        raise ConfigurationError("there is no such run", job=job, run=run_id, next_step=f"hindstream status {job}")
    log = CommitLog(storage, job)
    later = rolled_back(log.read(n) for n in range(plan.commit + 1, log.head_number() + 1))
    return _load(storage, job, plan, later)


def load_runs(storage: Storage, job: str, after: int = 0) -> list[RunDocuments]:
    """All runs of a job for commit numbers after ``after`` whose documents are there, the oldest first.

    Tries that failed, and one that is under way, are among them.
    """
    log = CommitLog(storage, job)
    head = log.head_number()
    taken_back = rolled_back(log.read(n) for n in range(after + 1, head + 1))
    return [run for n in range(after + 1, head + 2) for run in load_attempts(storage, job, n, taken_back)]


def load_attempts(
    storage: Storage, job: str, commit: int, taken_back: Mapping[int, int] = MappingProxyType({})
) -> list[RunDocuments]:
    """The runs for one commit number, first try first; ``taken_back``: as `rolled_back` says of the commits."""
    return [_load(storage, job, plan, taken_back) for plan in Runs(storage, job).attempts(commit)]


def _load(storage: Storage, job: str, plan: Plan, taken_back: Mapping[int, int]) -> RunDocuments:
    runs = Runs(storage, job)
    standing = CommitLog(storage, job).read_if_present(plan.commit)
    if standing is not None and standing.run_id != plan.run_id:
        standing = None
    by = taken_back.get(plan.commit) if standing is not None else None
    described = runs.topology(plan.fingerprint) if plan.repaired_by is not None else None
    sinks = [node for node in described.nodes if node.settings["node"] == "sink"] if described is not None else []
    return RunDocuments(
        plan,
        runs.staged(plan.run_id),
        runs.audit(plan.run_id),
        standing,
        by,
        read_placement(storage, job, plan.run_id),
        read_copies(storage, job, plan.run_id),
        {str(node.settings["topic"]): node.name for node in sinks},
    )


def add_ledgers(totals: dict[str, NodeMetrics], more: dict[str, NodeMetrics]) -> None:
    """Adds ``more`` to ``totals``, node by node."""
    for node, metrics in more.items():
        totals.setdefault(node, NodeMetrics()).add(metrics)


def job_ledger(committed: Iterable[RunDocuments]) -> dict[str, NodeMetrics]:
    """The ledgers of successive runs as one: see `add_to_ledger`."""
    totals: dict[str, NodeMetrics] = {}
    for run in committed:
        add_to_ledger(totals, run)
    return totals


def add_to_ledger(totals: dict[str, NodeMetrics], run: RunDocuments) -> None:
    """Adds the ledgers of the next run to those of the runs before it.

    What is held before is that of the first run, and what has come to be held between runs, as by a repair.
    """
    for node, metrics in run.nodes.items():
        before = totals[node] if node in totals else NodeMetrics()
        held_before = before.held_before + metrics.held_before - before.held_after
        add_ledgers(totals, {node: metrics})
        totals[node].held_before, totals[node].held_after = held_before, metrics.held_after


def open_windows(metrics: NodeMetrics) -> int:
    """How many windows of a node still take records."""
    return metrics.gauges.get("open-windows", 0)


def sealed(metrics: NodeMetrics) -> int:
    """How many windows or results of a node were open until the input was sealed."""
    return metrics.counters.get("sealed-windows", 0) + metrics.counters.get("sealed-results", 0)


def account_total(nodes: dict[str, NodeMetrics], account: str) -> int:
    """Records in one account, over all nodes."""
    return sum(metrics.accounts.get(account, 0) for metrics in nodes.values())


def lateness(nodes: dict[str, NodeMetrics]) -> dict[str, Lateness]:
    """The histograms of the nodes that have one."""
    return {name: metrics.lateness for name, metrics in nodes.items() if any(metrics.lateness.counts)}
