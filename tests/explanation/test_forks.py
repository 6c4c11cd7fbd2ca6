"""Results of forks are explained by what their job has replayed, as long as that led to them in the same way."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelib import Deduplicated, Materialized, StreamsBuilder, TimeWindows, count
from statelib.commits.layout import fork_topic
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.errors.kinds import ConfigurationError
from statelib.explanation import explain, result_at
from statelib.job.job import Job
from tests.effort import one_in
from tests.explanation.jobs import JOBS, OUT, explained, history, run
from tests.explanation.test_explainer import NO_SHRINKING
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import Topology
    from statelib.explanation import Explanation

CUTS = [60, 120, None]


def forked(pipeline: Pipeline, directory: Path, topology: Topology, name: str = "new", commit: int = 1) -> Pipeline:
    """A fork that has replayed everything."""
    fork(pipeline.warehouse, pipeline.name, name, commit, now_ms=0)
    renamed = topology.with_sinks({topic: fork_topic(topic, name) for topic in topology.sink_topics})
    made = Pipeline(directory, renamed, name, warehouse=pipeline.warehouse.uri(""))
    made.run()
    return made


def of_fork(made: Pipeline, partition: int, offset: int, topic: str = OUT) -> Explanation:
    found = result_at(made.warehouse, fork_topic(topic, made.name), partition, offset)
    return explain(Job(made.name, made.topology), made.warehouse, made._settings, found)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, JOBS))
@settings(max_examples=2, phases=NO_SHRINKING)
@given(seed=st.integers(0, 2**32), commit=st.integers(1, 2))
def test_a_fork_s_results_rest_on_the_same_records(name: str, tmp_path_factory, seed: int, commit: int) -> None:
    folder = tmp_path_factory.mktemp("whole")
    pipeline = run(folder, JOBS[name](), history(seed, 20, in_order=False), CUTS)
    made = forked(pipeline, folder / "new", JOBS[name](), commit=commit)
    results = made.output_if_present(fork_topic(OUT, "new"))
    if not results:
        return
    partition, offset, *row = results[seed % len(results)]
    own = pipeline.output(OUT)
    before = [one for one in own if one[0] == partition]
    skipped = len(before) - sum(one[0] == partition for one in results)
    ours, theirs = of_fork(made, partition, offset), explained(pipeline, partition, skipped + offset)
    assert list(before[skipped + offset][2:]) == row
    assert (ours.reproduced, ours.minimal) == (True, True)
    assert ours.contributions == theirs.contributions
    assert ours.dropped == theirs.dropped
    assert [(step.node, step.kind, step.forwarded) for step in ours.steps] == [
        (step.node, step.kind, step.forwarded) for step in theirs.steps
    ]


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def branches(grace_ms: int, interval_ms: int = 60) -> Topology:
    """Each id once, as it is and counted."""
    builder = StreamsBuilder("explained")
    once = builder.stream("events").deduplicate_by_key_value("id", ms(interval_ms), Deduplicated.as_("once"))
    once.to("unique")
    windowed = once.group_by_key().windowed_by(TimeWindows.of_size_and_grace(ms(40), ms(grace_ms)))
    windowed.aggregate({"n": count()}, Materialized.as_("counted")).to_stream().to(OUT)
    return builder.build()


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return run(tmp_path, branches(0), history(3, 30, in_order=True), CUTS)


def changed(pipeline: Pipeline, directory: Path) -> Pipeline:
    """A fork whose windows have a longer grace period, and begin empty."""
    fork(pipeline.warehouse, pipeline.name, "new", 2, now_ms=0)
    topology = branches(30)
    renamed = topology.with_sinks({topic: fork_topic(topic, "new") for topic in topology.sink_topics})
    made = Pipeline(directory, renamed, "new", warehouse=pipeline.warehouse.uri(""))
    made.run(reset_stores=["counted"])
    return made


def test_what_is_different_elsewhere_does_not_matter(pipeline: Pipeline, tmp_path: Path) -> None:
    made = changed(pipeline, tmp_path / "new")
    partition, offset, *_ = made.output(fork_topic("unique", "new"))[-1]
    explanation = of_fork(made, partition, offset, "unique")
    assert (explanation.reproduced, explanation.minimal) == (True, True)
    assert explanation.contributions


def test_what_led_there_in_another_way_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    made = changed(pipeline, tmp_path / "new")
    partition, offset, *_ = made.output(fork_topic(OUT, "new"))[0]  # of a window that had begun before
    with pytest.raises(ConfigurationError, match="made by another topology than the job has now") as refused:
        of_fork(made, partition, offset)
    assert "not the same as now" in str(refused.value)
    assert "hindstream try FILE.py:NAME --keep NEW" in str(refused.value)
    assert "KSTREAM-AGGREGATE-0000000003: not the same as now" in str(refused.value)


def test_what_was_filled_is_as_if_it_had_always_been_there(pipeline: Pipeline, tmp_path: Path) -> None:
    fork(pipeline.warehouse, pipeline.name, "new", 2, now_ms=0)
    topology = branches(30)
    renamed = topology.with_sinks({topic: fork_topic(topic, "new") for topic in topology.sink_topics})
    made = Pipeline(tmp_path / "new", renamed, "new", warehouse=pipeline.warehouse.uri(""))
    made.run(fill_stores=["counted"])
    fork_from_beginning(pipeline.warehouse, pipeline.name, "whole")
    whole = Pipeline(
        tmp_path / "whole",
        topology.with_sinks({topic: fork_topic(topic, "whole") for topic in topology.sink_topics}),
        "whole",
        warehouse=pipeline.warehouse.uri(""),
    )
    whole.run()
    always = {row[2:]: row[:2] for row in map(_hashable, whole.output(fork_topic(OUT, "whole")))}
    results = made.output(fork_topic(OUT, "new"))
    assert len(results) > 3
    for partition, offset, *row in results[-3:]:
        ours, theirs = of_fork(made, partition, offset), of_fork(whole, *always[_hashable((0, 0, *row))[2:]])
        assert (ours.reproduced, ours.minimal) == (True, True)
        assert ours.contributions == theirs.contributions
        assert ours.dropped == theirs.dropped


def _hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[:2], *map(str, row[2:]))


def test_forks_of_forks(pipeline: Pipeline, tmp_path: Path) -> None:
    first = forked(pipeline, tmp_path / "first", branches(0), "first", 1)
    second = forked(first, tmp_path / "second", branches(0), "second", 1)
    partition, offset, *row = second.output(fork_topic(OUT, "second"))[-1]
    assert first.output(fork_topic(OUT, "first"))[-1][2:] == tuple(row)
    explanation = of_fork(second, partition, offset)
    assert (explanation.reproduced, explanation.minimal) == (True, True)
