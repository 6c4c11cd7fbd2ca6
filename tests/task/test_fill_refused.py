"""What is told of filling stores, and why some cannot be filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog
from statelib.commits.run.plan import NothingToDo
from statelib.commits.topologies.past_plans import past_plans
from statelib.documents.manifests import Staged
from statelib.documents.plans import Plan, TakenOver
from statelib.errors.kinds import ConfigurationError
from tests.task.fill_versions import (
    Version,
    in_two_versions,
)
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path


def test_it_says_what_it_does_and_what_it_cost(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    job.topology = Version(grace_s=240).topology()
    planned = job.plan(fill_stores=["totals", "final-store"])
    assert isinstance(planned, Plan)
    assert planned.evolution is not None
    assert planned.evolution.filled == ("totals", "final-store")
    says = [change for change in planned.evolution.changes if "is filled from history" in change]
    assert says == [
        "store totals is filled from history: its grace_period_ms was 30000 and is 240000",
        "store final-store is filled from history: its windows grace_period_ms was 30000 and is 240000",
    ]
    staged = job.run(fill_stores=["totals", "final-store"])
    assert isinstance(staged, Staged)
    assert staged.fill is not None
    by_tasks = [
        source.records for past in past_plans(job.warehouse, "job", 2) for t in past.tasks for source in t.sources
    ]
    assert staged.fill.records == sum(by_tasks) + sum(
        file.rows for task in staged.tasks if task.history for files in task.history.repartitions for file in files
    )
    assert staged.fill.seconds > 0
    assert isinstance(job.run(fill_stores=["totals"]), NothingToDo)  # the setting may stay


@pytest.mark.parametrize(
    ("after", "fill", "says", "next_step"),
    [
        (Version(grace_s=240), [], "store totals: its grace_period_ms was 30000", "fill_stores=totals,final-store"),
        (Version(grace_s=240), ["totals"], "store final-store: its windows", "fill_stores=totals,final-store"),
        (Version(grace_s=240), ["totels"], "there is no such store to fill", "did you mean totals"),
        (Version(once_s=600), ["seen"], "stores totals, final-store come behind seen and would keep",
         "fill all of them: fill_stores=seen,totals,final-store"),
    ],
    ids=["names them", "and all of them", "a store that is not there", "what comes behind is kept"],
)  # fmt: skip
def test_refused(tmp_path: Path, after: Version, fill: list[str], says: str, next_step: str) -> None:
    job = in_two_versions(tmp_path, Version())
    job.topology = after.topology()
    with pytest.raises(ConfigurationError, match=says) as refused:
        job.plan(fill_stores=fill)
    assert next_step in str(refused.value.next_step)


def test_refused_where_the_store_has_a_changelog(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version(), changelogs=["totals"])
    job.topology = Version(grace_s=240).topology()
    with pytest.raises(ConfigurationError, match="has a changelog, which would not have what it is filled with"):
        job.plan(fill_stores=["totals", "final-store"])


def test_a_filled_store_cannot_begin_a_changelog(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version(final=False))
    after = Pipeline(tmp_path, Version(grace_s=240).topology(), changelogs=["final-store"])
    with pytest.raises(ConfigurationError, match="a changelog begins with its store") as refused:
        after.plan(fill_stores=["totals", "final-store"])
    assert refused.value.place["store"] == "final-store"
    assert job.plan() is not None


def test_refused_where_two_ways_are_asked_for(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    job.topology = Version(table=600).topology()
    with pytest.raises(ConfigurationError, match="cannot be both migrated and filled"):
        job.plan(fill_stores=["shops"], migrate_stores=["shops"])


def test_refused_where_the_archive_has_lost_its_beginning(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    archive = open_archive(job.warehouse, "sales")
    table = DeltaTable(archive.uri)
    lost = sum(file.rows for file in archive.files(1) if file.first_offset == 0)
    table.delete(f"partition = 1 AND offset < {lost // 2}")
    job.topology = Version(grace_s=240).topology()
    with pytest.raises(ConfigurationError, match=rf"cannot be filled: .*lacks {lost // 2} of them") as refused:
        job.plan(fill_stores=["totals", "final-store"])
    assert refused.value.place == {"job": "job", "topic": "sales", "partition": 1}
    assert "reset_stores" in str(refused.value.next_step)


def test_refused_where_the_state_is_an_applications(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    log = CommitLog(job.warehouse, "job")
    of = TakenOver(application_id="live", changelogs={}, times={})
    first = log.read(1).model_copy(update={"taken_over": of})
    job.warehouse.put(log.layout.commit(1), first.encode())
    job.topology = Version(grace_s=240).topology()
    with pytest.raises(ConfigurationError, match=r"commit 1 was taken over from live, so the history lacks its beg"):
        job.plan(fill_stores=["totals", "final-store"])


def test_refused_where_a_global_table_was_read_at_other_times(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    job.topology = Version(regions=900).topology()
    with pytest.raises(ConfigurationError, match=r"taken up at other times \(bootstrap\) than") as refused:
        job.plan(fill_stores=["regions", "totals", "final-store"])
    assert refused.value.place == {"job": "job", "topic": "regions"}
