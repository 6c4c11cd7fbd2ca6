"""Why two versions differ: the records that one used and the other dropped are those that their rules name."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from statelib.comparison.matches import Resources
from statelib.comparison.sinks import JobCommit, compare_sinks
from statelib.explanation.difference import explain_first_difference
from statelib.job.job import Job
from tests.comparison.jobs import HOUR, VALUE, events, topology
from tests.task.pipeline import Pipeline


@pytest.fixture
def explained(tmp_path):
    """The first difference of a job and one with other settings, and the jobs' pipelines."""

    def run(sink, *, known=(True, True), **changes):
        first = Pipeline(tmp_path, topology(""), "first")
        first.archive("events", events(), (pa.string(), VALUE))
        first.run(40 * HOUR)
        first.run()
        warehouse = str(tmp_path / "warehouse")
        second = Pipeline(tmp_path, topology(".second", **changes), "second", warehouse=warehouse)
        second.run()
        sides = JobCommit("first"), JobCommit("second")
        found = compare_sinks(first.warehouse, *sides, Resources(tmp_path), sinks=[sink])
        jobs = tuple(
            Job(name, of.topology) if is_known else None
            for name, of, is_known in zip(("first", "second"), (first, second), known, strict=True)
        )
        return explain_first_difference(first.warehouse, found, jobs, first._settings)

    return run


def test_a_longer_grace_uses_what_was_late(explained):
    found = explained("totals", grace_hours=4)
    key, start = found.example.key["key"], round(found.example.key["window_start"].timestamp() * 1000)
    clock, late = 0, []
    for offset, (of, _, time) in enumerate(events()):
        clock = max(clock, time)
        if of == key and start <= time < start + HOUR and start + 2 * HOUR <= clock < start + 5 * HOUR:
            late.append(offset)
    assert late
    assert [one.record.offset for one in found.only_b] == late
    assert found.only_a == ()
    for one in found.only_b:
        (drop,) = one.dropped
        assert drop.rule == "late"
        assert drop.record.where == one.record.where
    assert (found.a.why_not, found.b.why_not) == (None, None)


def test_a_row_that_one_side_lacks(explained):
    found = explained("large", least=0.4)
    assert found.example.b is None
    assert found.b.why_not == "it has no such row"
    (used,) = found.a.explanation.contributions
    assert used.record.value["amount"] < 0.4
    assert (found.only_a, found.only_b) == ((), ())
    earliest = min(time for _, value, time in events() if 0.2 <= value["amount"] < 0.4)
    assert used.record.timestamp_ms == earliest


def test_a_job_of_which_only_the_name_is_known(explained):
    found = explained("totals", known=(True, False), grace_hours=4)
    assert found.a.explanation is not None
    assert found.b.why_not == "that takes its topology: give second as FILE.py:NAME"
    assert found.only_b == ()


def test_what_cannot_be_explained_says_why(explained, tmp_path):
    found = explained("totals", grace_hours=4)
    assert found.a.explanation is not None
    other = Job("second", topology(".second", grace_hours=3))
    pipeline = Pipeline(tmp_path, topology(""), "first")
    sides = JobCommit("first"), JobCommit("second")
    again = compare_sinks(pipeline.warehouse, *sides, Resources(tmp_path), sinks=["totals"])
    told = explain_first_difference(pipeline.warehouse, again, (None, other), pipeline._settings)
    assert told.b.why_not.startswith("commit 1 was made by another topology than the job has now")
    none = replace(again, sinks=())
    assert explain_first_difference(pipeline.warehouse, none, (None, other), pipeline._settings) is None
