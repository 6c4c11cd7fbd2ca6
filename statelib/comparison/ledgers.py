"""What two jobs did with the records that they took up: their ledgers, added up from where they part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.commits.forks import forked_from
from statelib.commits.layout import CommitLog, Runs, rolled_back
from statelib.comparison.sinks import JobCommit
from statelib.records.key_sample import LEFT_OUT, MOVES_TIME, TAKEN, TAKES_SAMPLE
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.documents.manifests import Commit, Staged
    from statelib.documents.plans import Plan
    from statelib.storage import Storage

_Id = tuple[str, int]
"""A node: what it was called first, and by which commit of the chain it was new under that name (0: by the first)."""


@dataclass(frozen=True, slots=True)
class NodeLedgers:
    """A node's ledgers.

    Attributes:
        a: What A calls the node; None: A does not have it, or it took up nothing.
        b: What B calls it.
        records_a: How many records it took up in A.
        records_b: The same in B.
        accounts: By account (see `statelib.metrics.node_metrics.NodeMetrics`) the records of A and those of B.
    """

    a: str | None
    b: str | None
    records_a: int
    records_b: int
    accounts: dict[str, tuple[int, int]]

    @property
    def name(self) -> str:
        """What B calls it, else A."""
        return self.b or self.a or ""


@dataclass(frozen=True, slots=True)
class SampleLedger:
    """What was taken of the records of all keys where nodes began to take a sample of them.

    Attributes:
        taken: Records of the sample.
        for_time: Records of other keys, which move time.
        left_out: All others.
        nodes: How many nodes took the sample.
        all_nodes: How many nodes there are.
    """

    taken: int
    for_time: int
    left_out: int
    nodes: int
    all_nodes: int


@dataclass(frozen=True, slots=True)
class LedgerDifferences:
    """The ledgers of two jobs at commits.

    Attributes:
        since: The newest commit that both rest on: what was before is the same. None: they share none.
        records_a: How many records A took up since, from all its sources.
        records_b: The same of B.
        nodes: By node, in the order of their names.
        unknown: Commits whose ledger has not been kept.
        sample: What B has replayed of a sample of the keys; None: all keys. Nodes that have taken the sample alone are
            not among ``nodes``.
    """

    since: JobCommit | None
    records_a: int
    records_b: int
    nodes: tuple[NodeLedgers, ...]
    unknown: tuple[JobCommit, ...]
    sample: SampleLedger | None = None

    @property
    def is_empty(self) -> bool:
        """Whether both did the same with the same number of records."""
        return self.records_a == self.records_b and all(
            node.records_a == node.records_b and all(a == b for a, b in node.accounts.values()) for node in self.nodes
        )


def compare_ledgers(warehouse: Storage, a: JobCommit, b: JobCommit) -> LedgerDifferences:
    """Compares the ledgers of two jobs up to a commit each, which stands. Only those are read that they do not share.

    A node is the same in both if it has the same name, or if a change of the topology let one go on as the other.

    Raises:
        ConfigurationError: There is no such commit.
        CorruptedDataError: A document is damaged.
    """
    chains = [tuple(_chain(warehouse, of)) for of in (a, b)]
    shared = 0
    for one, other in zip(*chains, strict=False):
        if (one.job, one.commit) != (other.job, other.commit):
            break
        shared += 1
    since = chains[0][shared - 1] if shared else None
    sides = [_Ledgers.of(warehouse, chain[shared:]) for chain in chains]
    of_sample = {name for side in sides for name, node in side.nodes.items() if node.takes_sample}
    names = sorted({name for side in sides for name, node in side.nodes.items() if node.records or node.accounts})
    return LedgerDifferences(
        None if since is None else JobCommit(since.job, since.commit),
        sides[0].records,
        sides[1].records,
        tuple(_node(name, *sides) for name in names if name not in of_sample),
        tuple(unknown for side in sides for unknown in side.unknown),
        sides[1].sample if of_sample else None,
    )


def _chain(warehouse: Storage, of: JobCommit) -> Iterator[Commit]:
    """The commits whose runs led to a commit, in their order; those of the jobs that a fork comes from first."""
    log = CommitLog(warehouse, of.job)
    base = forked_from(warehouse, of.job)
    if base is not None:
        yield from _chain(warehouse, JobCommit(base.job, base.commit))
    commits = [log.read(n) for n in range(1, (of.commit or log.head_number()) + 1)]
    gone = rolled_back(commits)
    yield from (commit for commit in commits if commit.commit not in gone)


@dataclass(slots=True)
class _Node:
    name: str
    records: int = 0
    accounts: Counter[str] = field(default_factory=Counter)
    takes_sample: bool = False
    counters: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Ledgers:
    """The ledgers of some commits, added up."""

    nodes: dict[_Id, _Node] = field(default_factory=dict)
    records: int = 0
    unknown: list[JobCommit] = field(default_factory=list)

    @classmethod
    def of(cls, warehouse: Storage, commits: Sequence[Commit]) -> _Ledgers:
        """Reads those of some commits that follow each other."""

        def documents(commit: Commit) -> tuple[Plan | None, Staged | None]:
            runs = Runs(warehouse, commit.job)
            return runs.plan(commit.run_id), runs.staged(commit.run_id)

        found = cls()
        replayed = [commit for commit in commits if commit.instead_of_replay is None]
        read = dict(
            zip(
                [(commit.job, commit.commit) for commit in replayed],
                in_parallel(documents, replayed, warehouse.requests_at_once),
                strict=True,
            )
        )
        ids: dict[str, _Id] = {}
        for place, commit in enumerate(commits, 1):
            if commit.evolution is not None:
                ids = _renamed(ids, commit.evolution.nodes, place)
            if commit.instead_of_replay is None:
                found._add(commit, *read[commit.job, commit.commit], ids)
        return found

    def _add(self, commit: Commit, plan: Plan | None, staged: Staged | None, ids: dict[str, _Id]) -> None:
        if plan is None or staged is None:
            self.unknown.append(JobCommit(commit.job, commit.commit))
            return
        self.records += plan.records
        for task in staged.tasks:
            for name, metrics in task.metrics.items():
                node = self.nodes.setdefault(ids.get(name, (name, 0)), _Node(name))
                node.name = name
                node.records += metrics.records_in
                node.accounts.update(metrics.accounts)
                node.takes_sample |= TAKES_SAMPLE in metrics.gauges
                node.counters.update({name: metrics.counters.get(name, 0) for name in (TAKEN, MOVES_TIME, LEFT_OUT)})

    @property
    def sample(self) -> SampleLedger:
        """What was taken of a sample of the keys."""
        taken, for_time, left_out = (
            sum(node.counters[name] for node in self.nodes.values()) for name in (TAKEN, MOVES_TIME, LEFT_OUT)
        )
        takes = sum(node.takes_sample for node in self.nodes.values())
        return SampleLedger(taken, for_time, left_out, takes, len(self.nodes))


def _renamed(ids: Mapping[str, _Id], kept: Mapping[str, str], place: int) -> dict[str, _Id]:
    """What nodes are after a change of the topology.

    Args:
        ids: Before it, by name; of other names, the name.
        kept: What nodes are called now, and what they were called; others go on under their names.
        place: Of the commit.
    """
    now = {name: ids.get(before, (before, 0)) for name, before in kept.items()}
    taken = set(now.values())
    others = {name: one for name, one in ids.items() if name not in now and one not in taken}
    new = {name: (name, place) for name in kept.values() if name not in now}  # the name of one that has another now
    return {**others, **new, **now}


def _node(identity: _Id, a: _Ledgers, b: _Ledgers) -> NodeLedgers:
    one, other = a.nodes.get(identity), b.nodes.get(identity)
    counts = [node.accounts if node is not None else Counter[str]() for node in (one, other)]
    return NodeLedgers(
        None if one is None else one.name,
        None if other is None else other.name,
        0 if one is None else one.records,
        0 if other is None else other.records,
        {name: (counts[0][name], counts[1][name]) for name in sorted(counts[0].keys() | counts[1].keys())},
    )
