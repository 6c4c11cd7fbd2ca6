"""A task's state: what is not its own, or not what the commit says, is never used."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import StreamsBuilder
from statelib.commits.layout import CommitLog
from statelib.documents.manifests import Commit, CommittedTask
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, RetryableError
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

Change = Callable[[Commit], Commit]


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Two commits are made, and there are records for a third."""
    builder = StreamsBuilder("job")
    builder.stream("in").deduplicate_by_key(timedelta(minutes=1)).to("out")
    made = Pipeline(tmp_path, builder.build())
    for n in range(3):
        made.archive("in", [(f"k{n}", "v", n)], (pa.string(), pa.string()), partitions=2)
        if n < 2:
            made.run()
    return made


def change_head(pipeline: Pipeline, change: Change) -> None:
    log = CommitLog(pipeline.warehouse, pipeline.name)
    head = log.head()
    assert head is not None
    pipeline.warehouse.put(log.layout.commit(head.commit), change(head).encode())


def test_the_state_of_another_job_is_not_used(pipeline: Pipeline) -> None:
    def foreign(commit: Commit) -> Commit:
        task = commit.tasks["0_0"]
        position = task.position.model_copy(update={"fingerprint": "f" * 64})
        changed = CommittedTask(state=task.state, position=position)
        return commit.model_copy(update={"tasks": {**commit.tasks, "0_0": changed}})

    change_head(pipeline, foreign)
    message = r"the state belongs to task 0_0 of topology f{12}, not to task 0_0 .*Next: run the job that wrote it"
    with pytest.raises(ConfigurationError, match=message):
        pipeline.run()


def test_a_cache_that_rots_is_mended_by_the_next_try(pipeline: Pipeline, tmp_path: Path) -> None:
    cached = list((tmp_path / "state" / "cache" / "job" / "0_1").iterdir())
    assert cached
    for file in cached:
        before = file.stat()
        file.write_bytes(bytes(byte ^ 0xFF for byte in file.read_bytes()))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(RetryableError, match=r"only in this host's cache.*Next: run the same command again"):
        pipeline.run()
    pipeline.run()
    assert CommitLog(pipeline.warehouse, pipeline.name).head_number() == 3


def test_the_state_of_another_commit_is_not_used(pipeline: Pipeline) -> None:
    first = CommitLog(pipeline.warehouse, pipeline.name).read(1)

    def old_files(commit: Commit) -> Commit:
        tasks = {
            name: CommittedTask(state=first.tasks[name].state, position=task.position)
            for name, task in commit.tasks.items()
        }
        return commit.model_copy(update={"tasks": tasks})

    change_head(pipeline, old_files)
    with pytest.raises(CorruptedDataError, match=re.escape("the state's position is not that of commit 2")):
        pipeline.run()
