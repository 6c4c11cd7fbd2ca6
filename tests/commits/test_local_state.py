"""What a host has of a job is what its newest commit names, or goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import Materialized, StreamsBuilder
from statelib.checkpoint.scratch import ScratchFolder
from statelib.commits import CommitLog
from statelib.commits.local_state import LocalState, clean_local_state
from statelib.errors.kinds import ConfigurationError
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.documents.manifests import Commit

TYPES = (pa.string(), pa.int64())


@pytest.fixture
def ran(tmp_path: Path) -> tuple[Pipeline, Commit, Path]:
    """A job that has run, its commit, and its folder of local state."""
    builder = StreamsBuilder("table")
    builder.table("t", Materialized.as_("kept")).to_stream().to("out")
    pipeline = Pipeline(tmp_path, builder.build(), "job")
    pipeline.archive("t", [(f"k{n}", n, n) for n in range(20)], TYPES, 2)
    pipeline.run()
    commit = CommitLog(pipeline.warehouse, "job").head()
    assert commit is not None
    return pipeline, commit, tmp_path / "state"


def cached(state_dir: Path) -> set[str]:
    return {path.name for path in (state_dir / "cache" / "job").glob("*/*")}


def test_what_the_commit_names_stays(ran) -> None:
    _, commit, state_dir = ran
    named = {file.sha256 for task in commit.tasks.values() for file in task.state.files}
    assert named
    assert clean_local_state(state_dir, commit) == LocalState(len(named), 0, 0)
    assert cached(state_dir) == named


def test_what_it_does_not_name_or_is_not_what_its_name_says_goes(ran) -> None:
    pipeline, commit, state_dir = ran
    cache = state_dir / "cache" / "job"
    damaged = next(iter((cache / "0_0").iterdir()))
    content = damaged.read_bytes()
    damaged.unlink()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (cache / "0_1" / ("a" * 64)).write_bytes(b"of an older format")
    (cache / "7_0").mkdir()
    (cache / "7_0" / ("b" * 64)).write_bytes(b"of a task that there is no more")
    for dead in ("job.00000001-1.0_0.x", "job.00000002-1.0_0.x"):
        (state_dir / "attempts" / "job" / dead / "db").mkdir(parents=True)
    (state_dir / "inspect" / "job" / "9-0").mkdir(parents=True)
    (state_dir / "copies" / "job" / "9-1").mkdir(parents=True)
    living = ScratchFolder(state_dir / "inspect" / "job2")
    assert clean_local_state(state_dir, commit) == LocalState(len(cached(state_dir)), 3, 3)
    assert damaged.name not in cached(state_dir)
    assert [path.name for path in (state_dir / "attempts" / "job").iterdir()] == ["job.00000002-1.0_0.x"]
    assert living.path.is_dir()
    assert not (state_dir / "inspect" / "job" / "9-0").exists()
    living.close()
    pipeline.archive("t", [("k1", 100, 100)], TYPES, 2)
    pipeline.run()  # what is missing is fetched
    assert CommitLog(pipeline.warehouse, "job").head_number() == 2


def test_a_host_that_has_nothing(ran, tmp_path: Path) -> None:
    assert clean_local_state(tmp_path / "elsewhere", ran[1]) == LocalState()


def test_a_cache_that_cannot_be_read_is_said(ran) -> None:
    _, commit, state_dir = ran
    (state_dir / "cache" / "job" / "0_0" / ("c" * 64)).mkdir()
    with pytest.raises(ConfigurationError, match="clean up the local state"):
        clean_local_state(state_dir, commit)
