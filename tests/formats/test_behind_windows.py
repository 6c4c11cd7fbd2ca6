"""State that an older release kept under keys without their windows is refused, and the rest of it goes on."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from statelib.commits.run.plan import Plan
from statelib.errors.kinds import ConfigurationError
from tests.formats.behind_windows import FIRST, SECOND, TYPES, topology
from tests.formats.test_warehouses import DATA
from tests.task.pipeline import Pipeline
from tests.unpack import unpack

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def job(tmp_path: Path) -> Pipeline:
    """The older release's, with more to replay."""
    with tarfile.open(DATA / "behind-windows.tar.gz") as archive:
        unpack(archive, tmp_path)
    pipeline = Pipeline(tmp_path, topology())
    pipeline.archive("events", SECOND, TYPES)
    return pipeline


def anew(directory: Path) -> Pipeline:
    """The same job, all of it in this release."""
    pipeline = Pipeline(directory, topology())
    for records in (FIRST, SECOND):
        pipeline.archive("events", records, TYPES)
        pipeline.run()
    return pipeline


def test_counts_of_all_windows_together_are_refused(job: Pipeline) -> None:
    why = r"store changes: its entries lie under keys without their windows, as an older release kept them"
    with pytest.raises(
        ConfigurationError, match=rf"{why} \(job job\).*reset_stores=changes\), or give the job a new name"
    ):
        job.run()


def test_windows_and_what_is_held_back_go_on(job: Pipeline, tmp_path: Path) -> None:
    planned = job.plan(reset_stores=["changes"])
    assert isinstance(planned, Plan)
    assert planned.evolution is not None
    reset = [change for change in planned.evolution.changes if "is reset" in change]
    assert [change.split(":")[0] for change in reset] == ["store changes is reset"]
    job.run(reset_stores=["changes"])
    whole = anew(tmp_path / "anew")
    assert results(job) == results(whole)
    assert job.output("final-counts") == whole.output("final-counts")


def results(pipeline: Pipeline) -> dict[str, Any]:
    """What is in the stores that go on."""
    return {
        family: rows
        for task in pipeline.state().values()
        for family, rows in task.items()
        if not family.startswith("changes")
    }
