"""Compares what two live applications have written, over a time of which both have read all input.

The shadow has begun where a commit of the job ends. Its results from the commit's stream time on are of records that
both have read since; results before may be of records that only the old one has written for. The comparison ends where
the slower of the two has come to, less the time in which results may still change. Records that are later than that
can make results differ that one of the two has not written yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from hindstream.kafka.consumer import range_batches
from hindstream.kafka.lag import GroupLag, group_lag
from hindstream.runs import open_warehouse
from statelib.columns.times import instant_text
from statelib.columns.windowed_type import archived, archived_type
from statelib.commits import CommitLog
from statelib.comparison.compare import EXAMPLES, compare
from statelib.comparison.fields import Rules, check_paths
from statelib.comparison.matches import Resources
from statelib.comparison.sides import PARTITION_BITS, Side
from statelib.comparison.sinks import JobCommit, SinkDifference, SinkDifferences, default_way
from statelib.comparison.times import ALL_TIMES, Interval
from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.serdes.base import within_reach

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hindstream.kafka.cluster import Cluster
    from statelib.comparison.matches import Way
    from statelib.documents.manifests import Commit
    from statelib.job.job import Job
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.job.switch_over import SwitchOver
    from statelib.settings.settings import Settings

_BATCH_ROWS = 65_536
_NO_RULES = Rules()


def sources_in_kafka(job: Job, switch: SwitchOver) -> list[str]:
    """The topics that both applications read and commit offsets for: those of global tables are not among them."""
    topics = [topic for topic in job.topology.source_topics if topic not in job.topology.bootstrap_topics]
    return [switch.new.kafka_topic(topic) for topic in topics]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far both applications are.

    Attributes:
        old: The live one.
        shadow: The one beside it.
        since_ms: Results from this time on are of records that both have read since the hand-over.
        until_ms: Before this time neither changes results any more; None: one has noted no time yet.
    """

    old: GroupLag
    shadow: GroupLag
    since_ms: int
    until_ms: int | None

    @property
    def comparable_ms(self) -> int:
        """How long the time is of which results can be compared; 0: there is none."""
        return max((self.until_ms or self.since_ms) - self.since_ms, 0)


def progress(cluster: Cluster, job: Job, switch: SwitchOver, made: Commit) -> Progress:
    """How far both applications are, as the broker tells.

    Args:
        cluster: The cluster.
        job: The job of the new version.
        switch: The applications.
        made: The commit that was handed over to the shadow, or a later one.

    Raises:
        ConfigurationError: There is no shadow, or no such topic.
        RetryableError: The cluster did not answer.
    """
    topics = sources_in_kafka(job, switch)
    old, shadow = (group_lag(cluster, group, topics) for group in (switch.old, switch.require_shadow().application_id))
    times = [time for task in made.tasks.values() for time in task.position.source_times.values()]
    reached = [of.reached_ms() for of in (old, shadow)]
    until = None if None in reached else min(time for time in reached if time is not None) - switch.settles_after_ms
    return Progress(old, shadow, max(times, default=-1) + 1, until)


@dataclass(frozen=True, slots=True)
class OutputsAsked:
    """What is compared, and how.

    Attributes:
        way: See `statelib.comparison.compare.compare`; None: by the topology, as ``hindstream diff`` does.
        rules: What counts as equal.
        examples: How many rows are shown of each kind.
        within: Which time; of None for a bound: as `progress` tells.
    """

    way: Way | None = None
    rules: Rules = _NO_RULES
    examples: int = EXAMPLES
    within: Interval = ALL_TIMES


def compare_outputs(
    cluster: Cluster,
    job: Job,
    switch: SwitchOver,
    settings: Settings,
    scratch: Path,
    *,
    commit: int | None = None,
    asked: OutputsAsked | None = None,
) -> tuple[SinkDifferences, Interval]:
    """Compares the topics of the old application with those of the shadow; both may be at work.

    Args:
        cluster: The cluster.
        job: The job of the new version.
        switch: The applications, and what they write.
        settings: See `Settings`.
        scratch: A folder that is there, for what is read of the topics.
        commit: The commit that was handed over to the shadow, or a later one; None: the job's newest.
        asked: What is compared, and how; None: all, to the last bit.

    Raises:
        ConfigurationError: There is no shadow, no output or no such topic; or the fields of a rule are not there.
        InputError: A record cannot be decoded.
        RetryableError: The cluster did not answer; or there is nothing that can be compared yet.
    """
    asked = asked or OutputsAsked()
    if not switch.outputs:
        step = "name them: SwitchOver(outputs=((TOPIC, TOPIC OF THE SHADOW), ...))"
        raise ConfigurationError("the switch-over names no outputs to compare", old=switch.old, next_step=step)
    warehouse = open_warehouse(settings)
    log = CommitLog(warehouse, job.name)
    made = log.read(log.head_number() if commit is None else commit)
    within = _within(asked.within, progress(cluster, job, switch, made), switch)
    found = []
    for number, topics in enumerate(switch.outputs):
        a, b = (_side(cluster, topic, within, scratch / f"{number}-{n}") for n, topic in enumerate(topics))
        check_paths(asked.rules, [side.value for side in (a, b)])
        way = asked.way or default_way(warehouse, job.name, made.fingerprint, topics[0].archive_name)
        difference = compare(a, b, way, Resources(scratch), rules=asked.rules, examples=asked.examples, within=within)
        found.append(SinkDifference(topics[0].name, topics[1].name, difference))
    at = JobCommit(switch.old), JobCommit(switch.require_shadow().application_id)
    return SinkDifferences(*at, tuple(found), (), ()), within


def _within(asked: Interval, found: Progress, switch: SwitchOver) -> Interval:
    since_ms = found.since_ms if asked.since_ms is None else asked.since_ms
    until_ms = found.until_ms if asked.until_ms is None else asked.until_ms
    if until_ms is None or until_ms <= since_ms:
        come = "nobody knows to what time" if until_ms is None else f"settled results end at {instant_text(until_ms)}"
        what = f"there is nothing to compare yet: it begins at {instant_text(since_ms)}, and {come}"
        step = "let both applications go on for a while, and run the same command again"
        raise RetryableError(what, old=switch.old, shadow=found.shadow.group, next_step=step)
    return Interval(since_ms, until_ms)


def _side(cluster: Cluster, topic: KafkaTopic, within: Interval, folder: Path) -> Side:
    """The records of a topic from a time on, on this host's disk: a comparison reads some of them twice."""
    folder.mkdir()
    state = cluster.topic(topic.name)
    starts = cluster.offsets_from(topic.name, sorted(state.ends), within.since_ms or 0)
    stretches = []
    for partition, start in starts.items():
        if start is not None and start < state.ends[partition]:
            stretches.append(_spooled(cluster, topic, partition, start, state.ends[partition], folder))
    by_partition = {stretch.partition: stretch for stretch in stretches}

    def place_of(place: int) -> dict[str, object]:
        partition, index = place >> PARTITION_BITS, place & ((1 << PARTITION_BITS) - 1)
        return {"topic": topic.name, "partition": partition, "offset": by_partition[partition].offset(index)}

    return Side(archived_type(topic.key.arrow_type), topic.value.arrow_type, tuple(stretches), place_of=place_of)


def _spooled(cluster: Cluster, topic: KafkaTopic, partition: int, start: int, end: int, folder: Path) -> _Spooled:
    file, rows = folder / f"{partition}.arrow", 0
    writer: pa.ipc.RecordBatchFileWriter | None = None
    messages = cluster.messages_from(topic.name, partition, start)
    with pa.OSFile(str(file), "wb") as sink:
        for batch in range_batches(messages, partition, end):
            decoded = _decoded(topic, batch)
            writer = writer or pa.ipc.new_file(sink, decoded.schema)
            writer.write_batch(decoded)
            rows += len(batch)
        if writer is not None:
            writer.close()
    return _Spooled(partition, file, rows)


def _decoded(topic: KafkaTopic, batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = {}
    for name, serde in (("key", topic.key), ("value", topic.value)):
        values, bad, reasons = within_reach(serde.deserialize_lenient(batch[name]))
        if bad.any():
            row = int(bad.argmax())
            raise InputError(
                f"a record's {name} cannot be decoded: {reasons[row].as_py()}",
                topic=topic.name,
                partition=batch["partition"][row].as_py(),
                offset=batch["offset"][row].as_py(),
                next_step="correct how the output is declared: SwitchOver(outputs=...)",
            )
        columns[name] = archived(values)
    columns |= {name: batch[name] for name in ("timestamp", "headers", "offset")}
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class _Spooled:
    """Records of a partition in a file; see `statelib.comparison.sides.Stretch`."""

    partition: int
    file: Path
    end: int
    start: int = 0

    @cached_property
    def _table(self) -> pa.Table:
        return pa.ipc.open_file(pa.memory_map(str(self.file))).read_all()

    def offset(self, index: int) -> int:
        """Of a record."""
        return int(self._table["offset"][index].as_py())

    def read(self, start: int, end: int | None) -> Iterator[pa.RecordBatch]:
        """See `statelib.comparison.sides.Stretch`."""
        if self.end:
            last = self.end if end is None else end
            yield from self._table.drop_columns("offset").slice(start, last - start).to_batches(_BATCH_ROWS)
