"""Plans a trial: two versions of a job at the same instant, and what has to be replayed to have them there.

The job itself is one version: it has a commit at that instant, or is replayed from its newest commit before. The other
version goes on from a commit of the job, or from the beginning, and replays what the job has replayed since.

Where a run of the job has ended at a time, the order of the records does not depend on it (`statelib.topics.slices`),
so that such runs are replayed together. Where one has ended elsewhere (at the archives' end, while one topic had come
further than another), a slice of the trial ends there too: the versions meet all records in the same order.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from statelib.columns.times import instant_text
from statelib.commits.archives import open_archive
from statelib.commits.expiry import oldest_restorable
from statelib.commits.layout import Runs
from statelib.commits.lineage import lineage
from statelib.documents.document import Data
from statelib.documents.plans import Leeway
from statelib.errors.kinds import ConfigurationError
from statelib.topics.slices import plan_slice

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from statelib.commits.job_definition import Topology
    from statelib.commits.sources.checks import EndOffsets
    from statelib.documents.manifests import Commit
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


class Side(Data):
    """A version that is replayed.

    Attributes:
        fork: The fork that it is.
        job: The job, or one that this was forked from, whose commit the fork goes on from.
        commit: That commit; 0: it replays from the beginning.
        ends: Where its slices end.
        seals: Whether the last slice seals, as the job's did.
        leeway: What it lets in that its topology does not; None: nothing.
    """

    fork: str
    job: str
    commit: int
    ends: tuple[dict[str, dict[int, int]], ...]
    seals: bool
    leeway: Leeway | None = None

    def leeway_of(self, number: int) -> Leeway | None:
        """That of a slice; the first is 1. It ends with the last one."""
        is_over = self.leeway is not None and self.leeway.accepted_ms > 0 and number == len(self.ends)
        return self.leeway.model_copy(update={"ends": True}) if self.leeway is not None and is_over else self.leeway


class Trial(Data):
    """Two versions of a job at one instant.

    Attributes:
        job: The job's name.
        new: The version that is tried.
        old: The job, replayed to the instant; None: a commit of it is there.
        at: That commit: the name of the job or of one that it was forked from, and its number.
        sample_keys: The share of the keys that is replayed and compared; None: all.
        before: What the same fork replays before the version that is tried, as the job is; None: nothing.
        then: What it replays after that version, as the job is; None: nothing.
    """

    job: str
    new: Side
    old: Side | None
    at: tuple[str, int] | None
    sample_keys: float | None = None
    before: Side | None = None
    then: Side | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        """What has to be replayed."""
        return (self.new,) if self.old is None else (self.new, self.old)


def old_name(fork: str) -> str:
    """What the job itself is called where it is replayed for a trial whose fork has this name."""
    return f"{fork}-old"


def plan_trial(
    warehouse: Storage,
    job: str,
    new: Topology,
    fork: str,
    *,
    old: Topology | None = None,
    commit: int | None = None,
    start_ms: int | None = None,
    end_ms: int | None = None,
) -> Trial:
    """Plans what is replayed. The warehouse is only read.

    Args:
        warehouse: Root of all durable data.
        job: The job that another version is tried of.
        new: The other version's topology.
        fork: What the fork is to be called.
        old: The job's topology, which is needed if the job has no commit at the end.
        commit: As of which commit the job is taken; None: the newest.
        start_ms: The new version goes on from the newest commit that has taken up nothing from this time on; None: it
            replays from the beginning.
        end_ms: Both end before each partition's first record with this timestamp or a later one; None: where the
            commit has ended.

    Raises:
        ConfigurationError: There is no such commit; the job has none at the end, and ``old`` is not given, or is not
            what made its commits; or nothing lies between start and end.
    """
    return _Planner(warehouse, job, commit).trial(new, old, fork, start_ms, end_ms)


def plan_interval(
    warehouse: Storage,
    job: str,
    new: Topology,
    then: Topology,
    fork: str,
    *,
    start_ms: int,
    end_ms: int,
    leeway: Leeway | None = None,
    oldest_ms: int | None = None,
) -> Trial:
    """Plans to replay an interval with another version, and what came before and after it with the job as it is.

    The interval begins in the first run of the job that has come to its beginning, and ends in the first that has come
    to its end: before each partition's first record with this timestamp or a later one. Other runs are replayed as they
    were, whatever the time of their records.

    Args:
        warehouse: Root of all durable data.
        job: The job.
        new: The topology for the interval.
        then: The one for what came before and after it.
        fork: What the fork is to be called.
        start_ms: When the interval begins. The fork goes on from a commit as by ``start_ms`` of `plan_trial`.
        end_ms: When it ends.
        leeway: What is let in within the interval; the windows for it are kept from before. None: nothing.
        oldest_ms: No record that is let in is older. The fork goes on from a commit at which no node with leeway had
            come to a later time, so that none had let go of windows of this one. None: from any.

    Raises:
        ConfigurationError: See `plan_trial`.
    """
    return _Planner(warehouse, job, None).interval(new, then, fork, start_ms, end_ms, leeway, oldest_ms)


def runs_within(warehouse: Storage, job: str, start_ms: int, end_ms: int) -> tuple[tuple[Commit | None, Commit], ...]:
    """The job's runs that took something up in an interval, as `plan_interval` has it; those of a fork's job, too.

    Returns:
        What each went on from, None: nothing; and its commit.
    """
    return _Planner(warehouse, job, None).within(start_ms, end_ms)


class _Planner:
    """Plans a trial of a job; see `plan_trial`."""

    def __init__(self, warehouse: Storage, job: str, commit: int | None) -> None:
        self._warehouse = warehouse
        self._job = job
        self._history = lineage(warehouse, job, commit)
        self._archive = cache(self._opened)
        self._cut = cache(self._cut_of)
        self._oldest = cache(lambda of: oldest_restorable(warehouse, of))

    def trial(self, new: Topology, old: Topology | None, fork: str, start_ms: int | None, end_ms: int | None) -> Trial:
        """The whole plan."""
        self._check_order(start_ms, end_ms)
        past = self._history if end_ms is None else tuple(one for one in self._history if self._is_before(one, end_ms))
        is_there = end_ms is None or (bool(past) and self._ends_at(past[-1], end_ms))
        at = past[-1] if is_there else None
        base = None if start_ms is None else self._base(past, start_ms)
        side = self._side(fork, new, past, base, None if is_there else end_ms)
        if not self._is_something(side, new, {} if base is None else base.source_offsets()):
            raise self._nothing_between()
        if at is not None:
            return Trial(job=self._job, new=side, old=None, at=(at.job, at.commit))
        if old is None or end_ms is None:
            raise self._no_commit(end_ms, past)
        if past and past[-1].fingerprint != old.fingerprint:
            what = "the job's commits were made by another topology than the file has"
            step = "give the job's file of that time, or end where the job has a commit"
            raise ConfigurationError(what, job=self._job, commit=past[-1].commit, next_step=step)
        return Trial(
            job=self._job, new=side, old=self._side(old_name(fork), old, past, self._base(past), end_ms), at=None
        )

    def interval(
        self,
        new: Topology,
        then: Topology,
        fork: str,
        start_ms: int,
        end_ms: int,
        leeway: Leeway | None,
        oldest_ms: int | None,
    ) -> Trial:
        """See `plan_interval`."""
        self._check_order(start_ms, end_ms)
        past = self._history
        kept_whole = past
        if leeway is not None and oldest_ms is not None:
            kept_whole = tuple(one for one in past if _latest_clock_ms(one, leeway.nodes) <= oldest_ms)
        base = self._base(kept_whole, start_ms)
        runs: Sequence[Commit] = past if base is None else past[past.index(base) + 1 :]
        whole = self._side(fork, new, past, base, None)
        came_to = {} if base is None else base.source_offsets()
        before: tuple[EndOffsets, ...] = ()
        if leeway is not None or new.fingerprint != then.fingerprint:  # else one file replays both
            before, runs = self._split(runs, came_to, then, start_ms)
        begins = before[-1] if before else came_to
        ends, behind = self._split(runs, begins, new, end_ms)
        side = whole.model_copy(update={"ends": ends, "seals": whole.seals and not behind, "leeway": leeway})
        if not ends or not self._is_something(side, new, begins):
            raise self._nothing_between()
        kept = None if leeway is None else leeway.model_copy(update={"accepted_ms": 0})
        first = whole.model_copy(update={"ends": before, "seals": False, "leeway": kept}) if before else None
        rest = whole.model_copy(update={"ends": self._ends(then, behind, None)}) if behind else None
        at = (past[-1].job, past[-1].commit)
        return Trial(job=self._job, new=side, old=None, at=at, before=first, then=rest)

    def within(self, start_ms: int, end_ms: int) -> tuple[tuple[Commit | None, Commit], ...]:
        """See `runs_within`."""
        self._check_order(start_ms, end_ms)
        runs = zip([None, *self._history], self._history, strict=False)
        return tuple(
            (before, run)
            for before, run in runs
            if run.instead_of_replay is None
            and not self._is_before(run, start_ms)
            and (before is None or self._is_before(before, end_ms))
        )

    def _check_order(self, start_ms: int | None, end_ms: int | None) -> None:
        if start_ms is not None and end_ms is not None and end_ms <= start_ms:
            raise self._nothing_between()

    def _nothing_between(self) -> ConfigurationError:
        what, step = "nothing lies between the start and the end of what is replayed", "begin earlier, or end later"
        return ConfigurationError(what, job=self._job, setting="--from, --to", next_step=step)

    def _split(
        self, runs: Sequence[Commit], begins: EndOffsets, topology: Topology, time_ms: int
    ) -> tuple[tuple[EndOffsets, ...], Sequence[Commit]]:
        """Where slices end that replay what runs have taken up before a time, and the runs that have come to it."""
        turn = next((number for number, run in enumerate(runs) if not self._is_before(run, time_ms)), len(runs))
        before, behind = runs[:turn], runs[turn:]
        came_to = before[-1].source_offsets() if before else begins
        cut = self._cut_in(behind[0], came_to, topology, time_ms) if behind else None
        return self._ends(topology, before, cut), behind

    def _cut_in(self, run: Commit, begins: EndOffsets, topology: Topology, end_ms: int) -> EndOffsets | None:
        """Where a run has to end to take up nothing from a time on; None: it would take up nothing at all."""
        ends: dict[str, dict[int, int]] = {}
        is_something = False
        for topic in topology.source_topics:
            ends[topic] = self._end_of(topic, run, topology)
            if topic not in topology.bootstrap_topics:
                cut = self._cut(topic, end_ms)
                for partition, (first, _) in self._spans(topic).items():
                    begin = max(begins.get(topic, {}).get(partition, first), first)
                    ends[topic][partition] = min(max(cut.get(partition, begin), begin), ends[topic][partition])
                    is_something |= ends[topic][partition] > begin
        return ends if is_something else None

    def _side(
        self, fork: str, topology: Topology, past: Sequence[Commit], base: Commit | None, end_ms: int | None
    ) -> Side:
        if base is None and past and past[0].taken_over is not None:
            what = f"the job has taken over from {past[0].taken_over.application_id}, so it has no beginning to replay"
            step = "begin behind that, with --from, at a commit whose state is still kept"
            raise ConfigurationError(what, job=self._job, next_step=step)
        runs = past if base is None else past[past.index(base) + 1 :]
        last: EndOffsets | None = None
        if end_ms is not None:
            last = {topic: self._end_at(topic, end_ms, topology) for topic in topology.source_topics}
        from_job, number = (self._job, 0) if base is None else (base.job, base.commit)
        seals = end_ms is None and bool(runs) and runs[-1].end_of_input == "seal"
        return Side(fork=fork, job=from_job, commit=number, ends=self._ends(topology, runs, last), seals=seals)

    def _ends(self, topology: Topology, runs: Sequence[Commit], last: EndOffsets | None) -> tuple[EndOffsets, ...]:
        """Where slices end that replay some runs, and after them what comes before ``last``."""
        ends: list[EndOffsets] = [] if last is None else [last]
        for run in reversed(runs):
            there = {topic: self._end_of(topic, run, topology) for topic in topology.source_topics}
            if not ends or (there != ends[-1] and not self._is_cut_in_time(run, there, ends[-1], topology)):
                ends.append(there)
        return tuple(reversed(ends))

    def _is_something(self, side: Side, topology: Topology, begins: EndOffsets) -> bool:
        """Whether a version has anything to take up; a global table alone is no reason to run."""
        topics = [topic for topic in topology.source_topics if topic not in topology.bootstrap_topics]
        return any(
            ends[topic][partition] > begins.get(topic, {}).get(partition, first)
            for ends in side.ends[-1:]
            for topic in topics
            for partition, (first, _) in self._spans(topic).items()
        )

    def _is_cut_in_time(self, run: Commit, ends: EndOffsets, after: EndOffsets, topology: Topology) -> bool:
        """Whether the order of the records is the same without an end here."""
        until_ms = run.until_ms
        return until_ms is not None and all(
            ends[topic] == after[topic]
            or (topic not in topology.bootstrap_topics and ends[topic] == self._cut(topic, until_ms))
            for topic in topology.source_topics
        )

    def _end_of(self, topic: str, run: Commit, topology: Topology) -> dict[int, int]:
        """Where the new version has to end to have taken up what a run has, and of other topics what came before."""
        taken_up = run.source_offsets().get(topic)
        if taken_up is None:
            return self._end_at(topic, _until_ms(run), topology)
        return {p: min(max(taken_up.get(p, first), first), end) for p, (first, end) in self._spans(topic).items()}

    def _end_at(self, topic: str, end_ms: int, topology: Topology) -> dict[int, int]:
        if topic in topology.bootstrap_topics:
            return {p: end for p, (_, end) in self._spans(topic).items()}
        return self._cut(topic, end_ms)

    def _base(self, past: Sequence[Commit], start_ms: int | None = None) -> Commit | None:
        """The newest commit to go on from, that has taken up nothing from a time on; None: there is none."""
        return next((one for one in reversed(past) if self._may_be_base(one, start_ms)), None)

    def _may_be_base(self, one: Commit, start_ms: int | None) -> bool:
        return (
            one.end_of_input != "seal"
            and one.commit >= self._oldest(one.job)
            and (start_ms is None or self._is_before(one, start_ms))
            and Runs(self._warehouse, one.job).topology(one.fingerprint) is not None
        )

    def _is_before(self, one: Commit, time_ms: int) -> bool:
        """Whether a commit has taken up nothing from a time on; global tables have no time."""
        return all(
            end <= self._cut(topic, time_ms).get(partition, 0) or self._is_to_the_end(one, topic)
            for topic, ends in one.source_offsets().items()
            for partition, end in ends.items()
        )

    def _ends_at(self, one: Commit, time_ms: int) -> bool:
        return all(
            ends == self._cut(topic, time_ms) or self._is_to_the_end(one, topic)
            for topic, ends in one.source_offsets().items()
        )

    def _is_to_the_end(self, one: Commit, topic: str) -> bool:
        """Whether a topic is a global table's, which each run takes up to the archive's end."""
        described = Runs(self._warehouse, one.job).topology(one.fingerprint)
        return described is not None and any(
            node.settings.get("topic") == topic and node.settings.get("reading") == "bootstrap"
            for node in described.nodes
        )

    def _no_commit(self, end_ms: int | None, past: Sequence[Commit]) -> ConfigurationError:
        instant = "" if end_ms is None else f" at {instant_text(end_ms)}"
        near = f"; its commit {past[-1].commit} ends before, at {instant_text(_until_ms(past[-1]))}" if past else ""
        what = f"the job has no commit that ends{instant}{near}"
        step = "end at a commit (--against JOB@COMMIT), or give the job's file, to replay it: --against OLD.py:NAME"
        return ConfigurationError(what, job=self._job, next_step=step)

    def _opened(self, topic: str) -> TopicArchive:
        return open_archive(self._warehouse, topic)

    def _spans(self, topic: str) -> dict[int, tuple[int, int]]:
        return self._archive(topic).spans()

    def _cut_of(self, topic: str, time_ms: int) -> dict[int, int]:
        return {part.partition: part.end_offset for part in plan_slice(self._archive(topic), until_ms=time_ms)}


def _latest_clock_ms(one: Commit, nodes: Collection[str]) -> int:
    """The latest time that any task's operator of these nodes has come to."""
    clocks = (task.position.clocks.get(node, {}) for task in one.tasks.values() for node in nodes)
    return max((clock.get("stream_time", -1) for clock in clocks), default=-1)


def _until_ms(run: Commit) -> int:
    """The time that a run has come to."""
    if run.until_ms is not None:
        return run.until_ms
    return 1 + max((time for task in run.tasks.values() for time in task.position.source_times.values()), default=-1)
