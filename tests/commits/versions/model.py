"""What readers of a job and its versions must have, by jobs that have no forks, no rollbacks, no repairs, no fills."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from statelib import BufferConfig, Materialized, StreamsBuilder, Suppressed, TimeWindows, count, sum_
from statelib.repair.corrections import RETRACTS
from tests.repair.histories import HOUR, STREAMS, TABLES, archive
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

SINKS = (*TABLES, *STREAMS)
Row = tuple[int, int, str, int, str | None, tuple[tuple[str, bytes], ...]]
"""Partition, offset, key, time, value, headers."""


class Version(NamedTuple):
    """What may be changed of the topology; the stores do not fit another grace period or another interval."""

    least: int = 20
    grace_hours: int = 2
    once_hours: int = 3

    def topology(self) -> Topology:
        """A sink of each kind."""
        builder = StreamsBuilder("job")
        large = builder.stream("events").filter(pc.field("value", "amount") >= self.least)
        large.to("large")
        large.deduplicate_by_key_value("value.item", timedelta(hours=self.once_hours)).to("once")
        grouped = large.group_by_key()
        so_far = grouped.aggregate({"events": count(), "total": sum_("amount")}, Materialized.as_("so-far-store"))
        so_far.to_stream().to("so-far")
        hours = TimeWindows.of_size_and_grace(timedelta(hours=1), timedelta(hours=self.grace_hours))
        by_hour = grouped.windowed_by(hours).count(Materialized.as_("by-hour-store"))
        final = Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final")
        by_hour.suppress(final).to_stream().to("by-hour")
        names = builder.table("names", Materialized.as_("names-store"))
        large.join(names, {"amount": "left.amount", "name": "right.name"}).to("named")
        large.group_by(pc.field("value", "item")).count(Materialized.as_("by-item-store")).to_stream().to("by-item")
        return builder.build()


Steps = tuple[tuple[Version, int], ...]
"""Versions, and up to which hour each has replayed."""


@dataclass(frozen=True)
class Has:
    """What a job has at a commit.

    Attributes:
        state: What its state is made of.
        written: What readers have: of each the records that its last step wrote.
    """

    state: Steps = ()
    written: tuple[Steps, ...] = ()

    @property
    def end(self) -> int:
        """The hour that it has come to."""
        return self.state[-1][1] if self.state else 0

    def after(self, version: Version, end: int, *, is_filled: bool) -> Has:
        """When a version has replayed further, after its stores were filled maybe."""
        before = tuple((version if is_filled else of, until) for of, until in self.state)
        state = (*before, (version, end))
        return Has(state, (*self.written, state))


class Reference:
    """Jobs that have replayed some steps, one after the other, over the same records."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory, self._seed, self._made = directory, seed, 0
        self._written: dict[Steps, dict[str, list[Any]]] = {}
        self._jobs: dict[Steps, Pipeline] = {}

    def job(self, steps: Steps) -> Pipeline:
        """The job that has replayed these."""
        begun = next((n for n in range(len(steps), 0, -1) if steps[:n] in self._jobs), 0)
        if begun:
            job = self._jobs.pop(steps[:begun])
        else:
            self._made += 1
            job = Pipeline(self._directory / f"reference-{self._made}", steps[0][0].topology())
            archive(job, self._seed)
        for n, (version, end) in enumerate(steps[begun:], start=begun + 1):
            before = {sink: Counter(row[0] for row in job.output_if_present(sink)) for sink in SINKS}
            job.topology = version.topology()
            job.run(end * HOUR)
            self._written[steps[:n]] = {
                sink: [
                    (partition, repr(key), time, None if value is None else repr(value))
                    for partition, offset, key, value, time in job.output_if_present(sink)
                    if offset >= before[sink][partition]
                ]
                for sink in SINKS
            }
        self._jobs[steps] = job
        return job

    def readers(self, has: Has) -> dict[str, Any]:
        """What `as_readers` must find, by sink."""
        rows: dict[str, list[Any]] = {sink: [] for sink in SINKS}
        for steps in has.written:
            if steps not in self._written:
                self.job(steps)
            for sink in SINKS:
                rows[sink] += self._written[steps][sink]
        return {sink: _table(rows[sink]) if sink in TABLES else Counter(rows[sink]) for sink in SINKS}


def as_readers(sink: str, rows: list[Row]) -> Any:
    """What readers have who follow a sink from the beginning: of tables the newest values, else what stands."""
    if sink in TABLES:
        return _table([(partition, key, time, value) for partition, _, key, time, value, _ in rows])
    standing: dict[str, Any] = {}
    for partition, offset, key, time, value, headers in rows:
        taken_back = [name.decode() for header, name in headers if header == RETRACTS]
        for name in taken_back:
            assert standing.pop(name)[:3] == (partition, key, time)
            assert value is None
        if not taken_back:
            standing[f"{sink}/{partition}@{offset}"] = (partition, key, time, value)
    return Counter(standing.values())


def _table(rows: list[tuple[int, str, int, str | None]]) -> dict[Any, Any]:
    newest = {(partition, key): (time, value) for partition, key, time, value in rows}
    return {key: content for key, content in newest.items() if content[1] is not None}


def differences(a: list[Row], b: list[Row], way: str) -> tuple[int, int, int]:
    """How many rows only A has, only B has, and are changed, in plain Python."""
    if way == "latest":
        one, other = ({row[2]: row[3:] for row in sorted(rows, key=lambda row: row[:2])} for rows in (a, b))
        one, other = ({key: row for key, row in rows.items() if row[1] is not None} for rows in (one, other))
        both = one.keys() & other.keys()
        return len(one.keys() - both), len(other.keys() - both), sum(one[key] != other[key] for key in both)
    if way == "order":
        parts = [
            [[row[2:] for row in rows if row[0] == partition] for rows in (a, b)]
            for partition in {row[0] for row in (*a, *b)}
        ]
        return (
            sum(max(len(one) - len(other), 0) for one, other in parts),
            sum(max(len(other) - len(one), 0) for one, other in parts),
            sum(x != y for one, other in parts for x, y in zip(one, other, strict=False)),
        )
    of_a, of_b = (Counter(row[2:] for row in rows) for rows in (a, b))
    left: list[Counter[Any]] = [Counter(), Counter()]
    for rest, found in zip((of_a - of_b, of_b - of_a), left, strict=True):
        for row, n in rest.items():
            found[row[:2]] += n  # of a key and time
    changed = (left[0] & left[1]).total()
    return left[0].total() - changed, left[1].total() - changed, changed
