"""A fork goes on where the job stood, whatever operators it has: the same records, the same state, to the byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import Materialized, StreamsBuilder, open_state
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive
from statelib.commits.layout import fork_topic
from statelib.commits.run.plan import NothingToDo
from statelib.commits.versions.fork import fork
from statelib.commits.versions.sink_history import sink_history
from statelib.errors.kinds import ConfigurationError
from tests.effort import one_in
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from statelib import Topology

INPUT = surface_records(3, 24)
TIMES = sorted({time for rows in INPUT.values() for _, _, time in rows})
CUTS = [TIMES[number * len(TIMES) // 4] for number in range(1, 4)]


def fork_of(pipeline: Pipeline, directory: Path, name: str, commit: int | None = None, **options: Any) -> Pipeline:
    """Forks a job, and gives what runs the fork."""
    fork(pipeline.warehouse, pipeline.name, name, commit, now_ms=0)
    topology = pipeline.topology.with_sinks({t: fork_topic(t, name) for t in pipeline.topology.sink_topics})
    return Pipeline(directory, topology, name, warehouse=pipeline.warehouse.uri(""), **options)


def records(pipeline: Pipeline) -> dict[str, list[Any]]:
    """What all sinks hold, by what the job calls them: its own records, and those before the fork."""
    return {
        sink: [
            (part.partition, row)
            for part in segments
            for row in open_archive(pipeline.warehouse, part.topic)
            .reader(part.partition, part.first_offset, part.end_offset)
            .read_all()
            .drop_columns("offset")
            .to_pylist()
        ]
        for sink, segments in sink_history(pipeline.warehouse, pipeline.name).items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("commits", one_in(4, [((2,),), ((4,),), ((1,),), ((3,),)]))
def test_at_every_commit_whatever_the_operators(tmp_path: Path, commits: tuple[int, ...]) -> None:
    pipeline = Pipeline(tmp_path, surface(), "surface")
    for topic, rows in INPUT.items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    for cut in [*CUTS, None]:
        pipeline.run(cut)
    expected = records(pipeline), pipeline.state()
    assert sum(map(len, expected[0].values())) > len(TIMES)
    for n in commits:
        forked = fork_of(pipeline, tmp_path / f"f{n}", f"f{n}", n)
        assert forked.state() != expected[1] or n == 4
        forked.run(CUTS[2] if n == 1 else None)  # the one in two slices, not as the job
        forked.run()
        assert isinstance(forked.run(), NothingToDo)
        assert records(forked) == expected[0]
        assert forked.state() == expected[1]


def counted() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    builder.stream("views").group_by_key().count(Materialized.as_("kept")).to_stream().to("counts")
    return builder


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    made = Pipeline(tmp_path, counted().build(), changelogs=["kept"])
    made.archive("views", [("a", 1, 1), ("b", 2, 2), ("a", 3, 3)], (pa.string(), pa.int64()))
    made.run(2)
    return made


def test_its_first_run_tells_of_no_change(pipeline: Pipeline, tmp_path: Path) -> None:
    forked = fork_of(pipeline, tmp_path / "fork", "fork")
    planned = forked.plan()
    assert planned.evolution.changes == ()
    assert "fork-kept-changelog" not in planned.sink_partitions
    forked.run()
    assert CommitLog(pipeline.warehouse, "fork").read(2).sink_offsets().keys() == {
        "counts.fork", "fork-late", "fork-quarantine",
    }  # fmt: skip
    with open_state(pipeline.warehouse.uri(""), "fork", "kept") as state:
        assert sorted(row["value"] for row in state.read().to_pylist()) == [1, 2]


def test_no_changelog_of_a_store_that_had_begun(pipeline: Pipeline, tmp_path: Path) -> None:
    forked = fork_of(pipeline, tmp_path / "fork", "fork", changelogs=["kept"])
    with pytest.raises(ConfigurationError, match="begins with its store") as refused:
        forked.plan()
    assert (
        refused.value.next_step
        == "leave it out of `changelogs`: a fork keeps changelogs of stores that are new in it only"
    )


def test_the_sinks_of_the_job_are_not_written(pipeline: Pipeline, tmp_path: Path) -> None:
    fork_of(pipeline, tmp_path / "fork", "fork")
    same = Pipeline(tmp_path / "fork", counted().build(), "fork", warehouse=pipeline.warehouse.uri(""))
    with pytest.raises(ConfigurationError, match="already holds records") as refused:
        same.plan()
    assert "--fork fork" in refused.value.next_step


def test_a_sealed_commit_cannot_be_forked(pipeline: Pipeline) -> None:
    pipeline.run(end_of_input="seal")
    with pytest.raises(ConfigurationError, match="the commit is sealed"):
        fork(pipeline.warehouse, "job", "fork", now_ms=0)
    assert fork(pipeline.warehouse, "job", "fork", 1, now_ms=0).commit == 1


@pytest.mark.parametrize("fill", [[], ["kept"]], ids=["begins empty", "is filled"])
def test_a_fork_gives_a_task_its_first_store(tmp_path: Path, fill: list[str]) -> None:
    def passed_on() -> StreamsBuilder:
        builder = StreamsBuilder("job")
        builder.stream("views").to("copied")
        return builder

    def with_store() -> Topology:
        builder = passed_on()
        builder.stream("views").group_by_key().count(Materialized.as_("kept")).to_stream().to("counts")
        return builder.build()

    types = pa.string(), pa.string()
    job, always = (
        Pipeline(tmp_path / name, of) for name, of in (("job", passed_on().build()), ("always", with_store()))
    )
    for each in (job, always):
        each.archive("views", [("a", "x", 1), ("b", "y", 2), ("a", "z", 5), ("b", "z", 9)], types)
        each.run(2)
    forked = fork_of(job, tmp_path / "fork", "fork")
    changed = with_store()
    forked.topology = changed.with_sinks({topic: fork_topic(topic, "fork") for topic in changed.sink_topics})
    forked.run(6, fill_stores=fill)
    for each in (forked, always):
        each.run()
        assert isinstance(each.run(), NothingToDo)
    assert (forked.state() == always.state()) is bool(fill)
