"""The sinks of two jobs over the same history: what differs is what a comparison in plain Python finds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib.commits.archives import open_archive
from statelib.comparison.matches import Resources
from statelib.comparison.sinks import JobCommit, compare_sinks
from statelib.errors.kinds import ConfigurationError
from tests.comparison.jobs import HOUR, VALUE, events, topology
from tests.task.pipeline import Pipeline


@pytest.fixture
def jobs(tmp_path):
    """Makes a job of another topology in the same warehouse, over the same events."""
    first = Pipeline(tmp_path, topology(""), "first")
    first.archive("events", events(), (pa.string(), VALUE))
    first.run(until_ms=36 * HOUR)
    first.run()

    def other(**changes):
        second = Pipeline(tmp_path, topology(".second", **changes), "second", warehouse=str(tmp_path / "warehouse"))
        second.run()
        return first.warehouse

    return other


@pytest.fixture
def found(jobs, tmp_path):
    def run(a=("first",), b=("second",), changes=None, **options):
        warehouse = jobs(**(changes or {}))
        folder = tmp_path / "comparison"
        folder.mkdir()
        return warehouse, compare_sinks(
            warehouse, JobCommit(*a), JobCommit(*b), Resources(folder), examples=10_000, **options
        )

    return run


def records(warehouse, topic):
    return open_archive(warehouse, topic).reader(0).read_all().to_pylist()


def test_the_same_topology_gives_the_same_sinks(found):
    _, result = found()
    assert result.is_empty
    of = {sink.a: sink for sink in result.sinks}
    assert {(sink.a, sink.b) for sink in result.sinks} >= {("totals", "totals.second"), ("large", "large.second")}
    assert of["totals"].difference.way == "latest"
    assert of["large"].difference.way == "set"
    assert of["totals"].difference.compared > 50
    assert (result.a, result.b) == (JobCommit("first", 2), JobCommit("second", 1))


def test_a_longer_grace_changes_the_windows_that_plain_python_names(found):
    warehouse, result = found(changes={"grace_hours": 4})
    newest = [
        {repr(row["key"]): (row["value"], row["timestamp"]) for row in records(warehouse, topic)}
        for topic in ("totals", "totals.second")
    ]
    expected = {
        "only_a": newest[0].keys() - newest[1].keys(),
        "only_b": newest[1].keys() - newest[0].keys(),
        "changed": {key for key in newest[0].keys() & newest[1].keys() if newest[0][key] != newest[1][key]},
    }
    assert expected["changed"]
    (sink,) = (sink for sink in result.sinks if sink.a == "totals")
    for kind, keys in expected.items():
        assert {repr(example.key) for example in sink.difference.examples[kind]} == keys
        assert getattr(sink.difference, kind) == len(keys)
    (large,) = (sink for sink in result.sinks if sink.a == "large")
    assert large.difference.is_empty


def test_a_threshold_leaves_out_the_records_that_plain_python_names(found):
    warehouse, result = found(changes={"least": 0.4}, sinks=["large"])
    (sink,) = result.sinks
    gone = [row for row in records(warehouse, "large") if row["value"]["amount"] < 0.4]
    assert gone
    assert (sink.difference.only_a, sink.difference.only_b, sink.difference.changed) == (len(gone), 0, 0)
    named = sorted((example.a["offset"], example.a["topic"]) for example in sink.difference.examples["only_a"])
    assert named == [(row["offset"], "large") for row in gone]


def test_two_commits_of_a_job_share_what_the_first_one_has(found):
    warehouse, result = found(("first", 1), ("first",), way="order")
    for sink in result.sinks:
        difference = sink.difference
        assert (difference.rows_a, difference.changed, difference.only_a) == (0, 0, 0)
        if sink.a in {"totals", "large"}:
            assert difference.shared > 0
            assert difference.only_b == len(records(warehouse, sink.a)) - difference.shared


@pytest.mark.parametrize(("more", "only", "empty"), [(0.5, ("more",), ()), (2.0, (), ("more",))])
def test_a_sink_that_one_side_has_alone_is_a_difference_if_it_has_records(found, more, only, empty):
    _, result = found(changes={"more": more})
    assert (result.only_a, result.empty_a) == ((), ())
    assert (result.only_b, result.empty_b) == (only, empty)
    assert result.is_empty is not bool(only)


def test_a_sink_that_is_not_there_is_refused(found):
    with pytest.raises(ConfigurationError, match="the job has no such sink") as refused:
        found(sinks=["large=larg"])
    assert refused.value.place == {"job": "second", "topic": "larg"}
