"""Damaged states made anew on Spark, several tasks at a time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.spark.migration import rebuild
from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog, changelog_topic
from statelib.errors.fault_points import observed
from statelib.errors.kinds import InputError
from tests.changelog.test_rebuild import MINUTE, head_of
from tests.hindstream.spark.orders import make_settings
from tests.task.test_rebuilt_head import damage, flip, replayed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings
    from tests.task.pipeline import Pipeline


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return replayed(tmp_path, [5 * MINUTE])


@pytest.fixture
def settings(tmp_path: Path, pipeline: Pipeline) -> Settings:
    uri = pipeline.warehouse.uri("").removeprefix("file://")
    return make_settings(tmp_path).model_copy(update={"warehouse": uri, "state_dir": tmp_path / "elsewhere"})


@pytest.mark.spark
def test_several_tasks_are_made_anew_by_spark_and_one_here(
    pipeline: Pipeline, settings: Settings, spark: SparkSession
) -> None:
    del spark
    before, uploads = pipeline.state(), []
    for number, damaged in enumerate((("0_0", "0_1"), ("0_1",)), start=2):
        for task_id in damaged:
            damage(pipeline, task_id)
        done_here: list[str] = []
        with observed(done_here.append):
            made = rebuild.rebuild("job", settings, everything=False, supersede=False)
        uploads.append("checkpoint.uploaded" in done_here)
        assert (made.commit, made.rebuilds) == (number, True)
        assert {file.run_id for name in damaged for file in made.tasks[name].state.files} == {made.run_id}
        assert pipeline.state() == before
    assert uploads == [False, True]
    assert not list((settings.state_dir / "attempts").glob("*/*"))
    assert rebuild.rebuild("job", settings, everything=False, supersede=False) == made


@pytest.mark.spark
def test_what_goes_wrong_is_told_and_the_command_can_be_given_again(
    pipeline: Pipeline, settings: Settings, spark: SparkSession, tmp_path: Path
) -> None:
    del spark
    before = pipeline.state()
    archive = open_archive(pipeline.warehouse, changelog_topic("job", "windows"))
    file = Path(settings.warehouse) / "topics" / archive.topic / archive.files(1)[0].path
    for task_id in ("0_0", "0_1"):
        damage(pipeline, task_id)
    shutil.copy(file, tmp_path / "copy")
    flip(file)
    with pytest.raises(InputError, match=str(file)):
        rebuild.rebuild("job", settings, everything=False, supersede=False)
    assert head_of(pipeline).commit == 1
    shutil.copy(tmp_path / "copy", file)
    rebuild.rebuild("job", settings, everything=False, supersede=False)
    assert CommitLog(pipeline.warehouse, "job").head_number() == 2
    assert pipeline.state() == before
