"""Compares the sinks of two jobs, each at a commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.layout import Runs
from statelib.commits.standing import standing_commit
from statelib.commits.versions.sink_history import sink_history, topics_aside
from statelib.comparison.compare import EXAMPLES, compare
from statelib.comparison.fields import Rules, check_paths
from statelib.comparison.sides import sides_of
from statelib.comparison.times import ALL_TIMES
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from statelib.comparison.difference import Difference
    from statelib.comparison.matches import Resources, Way
    from statelib.comparison.times import Interval
    from statelib.documents.topologies import NodeDescription
    from statelib.storage import Storage

_KEEPS_KEYS = frozenset({"map_values", "filter", "filter_not", "peek", "split", "branch"})
_NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class JobCommit:
    """A job at a commit.

    Attributes:
        job: The job's name.
        commit: The commit; None: the newest.
    """

    job: str
    commit: int | None = None


@dataclass(frozen=True, slots=True)
class SinkDifference:
    """What was found of a sink.

    Attributes:
        a: What A calls it; a fork's sink has the name that the job at the beginning gives it.
        b: What B calls it.
        difference: See `Difference`.
    """

    a: str
    b: str
    difference: Difference


@dataclass(frozen=True, slots=True)
class SinkDifferences:
    """What was found of the sinks of two jobs.

    Attributes:
        a: The one, with its commit.
        b: The other one.
        sinks: The sinks that both have.
        only_a: Topics of A with records that B has no counterpart of; none if sinks were named.
        only_b: The same of B.
        empty_a: The same without records, which is no difference.
        empty_b: The same of B.
    """

    a: JobCommit
    b: JobCommit
    sinks: tuple[SinkDifference, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    empty_a: tuple[str, ...] = ()
    empty_b: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether both have the same records in the same sinks."""
        return not self.only_a and not self.only_b and all(sink.difference.is_empty for sink in self.sinks)


def compare_sinks(
    warehouse: Storage,
    a: JobCommit,
    b: JobCommit,
    resources: Resources,
    *,
    sinks: Sequence[str] = (),
    way: Way | None = None,
    rules: Rules = _NO_RULES,
    examples: int = EXAMPLES,
    within: Interval = ALL_TIMES,
    split_ms: int | None = None,
    columns: Sequence[pa.Field] = (),
) -> SinkDifferences:
    """Compares the sinks of two jobs, and reads only what they do not share.

    Args:
        warehouse: Root of all durable data.
        a: One job at a commit.
        b: The other one, or another commit of the same.
        resources: What the comparison may use.
        sinks: Those to compare, as the topic in A, or ``A=B`` with both topics; none: all that have a counterpart,
            ``SINK`` or ``SINK.JOB`` (of a fork) or its topics for late and quarantined records.
        way: See `compare`; None: ``latest`` for a sink that a table's stream goes to, else ``set``.
        rules: What counts as equal.
        examples: How many rows are shown of each kind.
        within: Records of another time are left out: of a window its start counts, else the timestamp. If it has some
            keys alone, topics for late and quarantined records are left out: these tell of other keys, too.
        split_ms: See `compare`.
        columns: Those of stores that are compared with the same rules.

    Raises:
        ConfigurationError: There is no such job, commit, sink or field; a commit has been rolled back since; or no
            record to compare is of a key in the sample.
        InputError: A file of a sink cannot be read.
    """
    made = [standing_commit(warehouse, of.job, of.commit) for of in (a, b)]
    histories = [dict(sink_history(warehouse, of.job, of.commit)) for of in (a, b)]
    if within.keys is not None:
        for of, history in zip((a, b), histories, strict=True):
            for topic in topics_aside(warehouse, of.job):
                history.pop(topic, None)
    pairs = _named(sinks, histories, a.job, b.job) if sinks else _matched(histories, a.job, b.job)
    found = []
    opened = [sides_of(warehouse, (one, histories[0][one]), (other, histories[1][other])) for one, other in pairs]
    check_paths(rules, [side.value for sides in opened for side in sides], columns)
    for (one, other), sides in zip(pairs, opened, strict=True):
        how = way or default_way(warehouse, a.job, made[0].fingerprint, one)
        difference = compare(*sides, how, resources, rules=rules, examples=examples, within=within, split_ms=split_ms)
        found.append(SinkDifference(one, other, difference))
    if within.keys is not None and found and not any(sink.difference.compared for sink in found):
        what = "no record to compare is of a key in the sample, so nothing was compared"
        step = "take a larger share of the keys, or all of them"
        raise ConfigurationError(what, setting="--sample-keys", next_step=step)
    left = [() if sinks else sorted(histories[n].keys() - {pair[n] for pair in pairs}) for n in range(2)]
    filled, empty = (
        [tuple(topic for topic in left[n] if bool(histories[n][topic]) is has_records) for n in range(2)]
        for has_records in (True, False)
    )
    at = [JobCommit(commit.job, commit.commit) for commit in made]
    return SinkDifferences(at[0], at[1], tuple(found), filled[0], filled[1], empty[0], empty[1])


def default_way(warehouse: Storage, job: str, fingerprint: str, sink: str) -> Way:
    """``latest`` if the sink's records are the stream of a table whose keys they keep, else ``set``."""
    topology = Runs(warehouse, job).topology(fingerprint)
    nodes = {node.name: node for node in topology.nodes} if topology is not None else {}
    of_sink = [node for node in nodes.values() if _writes(node, sink, job)]
    return "latest" if of_sink and all(_is_of_table(node, nodes) for node in of_sink) else "set"


def _writes(node: NodeDescription, sink: str, job: str) -> bool:
    topic = node.settings.get("topic")
    return node.settings.get("node") == "sink" and isinstance(topic, str) and _base(topic, job) == _base(sink, job)


def _is_of_table(sink: NodeDescription, nodes: Mapping[str, NodeDescription]) -> bool:
    node = sink
    while len(node.parents) == 1 and node.parents[0] in nodes:
        node = nodes[node.parents[0]]
        operator = node.settings.get("operator")
        if operator == "to_stream":
            return True
        if operator not in _KEEPS_KEYS:
            break
    return False


def check_known(
    what: str, asked: Iterable[str], of_a: Collection[str], of_b: Collection[str], jobs: tuple[str, str]
) -> None:
    """Makes sure that both jobs have what is asked for by name: ``NAME``, or ``A=B``.

    Args:
        what: What it is, for the error: ``sink`` or ``store``.
        asked: The names.
        of_a: Those that A has.
        of_b: Those that B has.
        jobs: What both are called, for the error.

    Raises:
        ConfigurationError: One is not there.
    """
    kind = "topic" if what == "sink" else what
    for given in asked:
        one, _, other = given.partition("=")
        for name, known, job in ((one, of_a, jobs[0]), (other or one, of_b, jobs[1])):
            if name not in known:
                step = did_you_mean(name, sorted(known), "one of:")
                raise ConfigurationError(f"the job has no such {what}", **{"job": job, kind: name}, next_step=step)


def _matched(histories: Sequence[Mapping[str, object]], a: str, b: str) -> list[tuple[str, str]]:
    same = histories[0].keys() & histories[1].keys()  # a fork's topics have the names of the job at the beginning
    by_base = [
        {_base(topic, job): topic for topic in history if topic not in same}
        for history, job in zip(histories, (a, b), strict=True)
    ]
    others = [(by_base[0][base], by_base[1][base]) for base in by_base[0].keys() & by_base[1].keys()]
    return sorted([*((topic, topic) for topic in same), *others])


def _base(topic: str, job: str) -> str:
    """What counterparts have in common."""
    for own in ("late", "quarantine"):
        if topic == f"{job}-{own}":
            return f"-{own}"
    return topic.removesuffix(f".{job}")


def _named(sinks: Sequence[str], histories: Sequence[Mapping[str, object]], a: str, b: str) -> list[tuple[str, str]]:
    counterparts = dict(_matched(histories, a, b))
    pairs = []
    for name in sinks:
        one, given, other = name.partition("=")
        pair = one, other if given else counterparts.get(one, one)
        check_known("sink", ["=".join(pair)], histories[0], histories[1], (a, b))
        pairs.append(pair)
    return pairs
