"""After a repair, or a store that began anew: what rests on later records alone is explained, and all else refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from statelib.commits.layout import fork_topic
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.errors.kinds import ConfigurationError
from statelib.explanation import explain, result_at
from statelib.job.job import Job
from tests.explanation.jobs import OUT, history
from tests.explanation.jobs import run as replayed
from tests.explanation.test_forks import branches
from tests.repair.histories import HOUR, as_fork, topology
from tests.repair.test_repair import CUTS, repaired, run

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.explanation import Explanation
    from tests.task.pipeline import Pipeline

pytestmark = [pytest.mark.thorough, pytest.mark.slow]


def of(job: Pipeline, row: tuple[Any, ...], topic: str = "by-hour") -> Explanation:
    """What explains a row of a sink."""
    found = result_at(job.warehouse, topic, *row[:2])
    return explain(Job(job.name, job.topology), job.warehouse, job._settings, found)


@pytest.mark.long
def test_after_a_repair(tmp_path: Path) -> None:
    job, never = (run(tmp_path / name, 1, CUTS, wrong, topology(45)) for name, wrong in (("job", 2), ("never", 4)))
    repaired(job, tmp_path / "fix", 2)
    for pipeline in (job, never):
        pipeline.run(50 * HOUR)
        pipeline.run()
    rows = {repr(row[2:]): row for row in job.output("by-hour")}
    always = [(rows[repr(row[2:])], row) for row in never.output("by-hour") if repr(row[2:]) in rows]
    told, refused = [], set()
    for ours, theirs in always[::4]:
        try:
            explanation = of(job, ours)
        except ConfigurationError as error:
            refused.add(error.what)
            continue
        told.append(explanation)
        other = of(never, theirs)
        assert (explanation.reproduced, explanation.minimal) == (True, True)
        assert (explanation.contributions, explanation.dropped) == (other.contributions, other.dropped)
    assert refused == {"commit 5 was repaired by fix@2: its state came from elsewhere"}
    assert len(told) > 1
    assert {explanation.replayed_behind for explanation in told} == {5, 6}, "the repair is commit 5"


def test_as_of_a_commit_before_the_repair(tmp_path: Path) -> None:
    job = run(tmp_path / "job", 1, CUTS, 2, topology(45))
    first = job.output("by-hour")[0]
    expected = explain_as_of(job, first, 2)
    repaired(job, tmp_path / "fix", 2)
    with pytest.raises(ConfigurationError, match="as of then: --commit 4"):
        of(job, first)
    assert explain_as_of(job, first, 2) == expected
    assert expected.contributions


def explain_as_of(job: Pipeline, row: tuple[Any, ...], commit: int) -> Explanation:
    """The same as of a commit."""
    found = result_at(job.warehouse, "by-hour", *row[:2])
    return explain(Job(job.name, job.topology), job.warehouse, job._settings, found, commit=commit)


@pytest.mark.long
def test_after_stores_have_begun_anew(tmp_path: Path) -> None:
    """A fork with a longer grace period, of which the windows began empty."""
    job = replayed(tmp_path / "job", branches(0), history(3, 120, in_order=True), [300, 600])
    made = as_fork(job, tmp_path / "new", "new", branches(30))
    fork(job.warehouse, job.name, "new", 2, now_ms=0)
    made.run(900, reset_stores=["counted"])
    made.run()
    whole = as_fork(job, tmp_path / "whole", "whole", branches(30))
    fork_from_beginning(job.warehouse, job.name, "whole")
    whole.run()
    always = {repr(row[2:]): row for row in whole.output(fork_topic(OUT, "whole"))}
    told, refused = [], set()
    for row in made.output(fork_topic(OUT, "new")):
        try:
            explanation = of(made, row, fork_topic(OUT, "new"))
        except ConfigurationError as error:
            refused.add(error.what)
            continue
        told.append(explanation)
        other = of(whole, always[repr(row[2:])], fork_topic(OUT, "whole"))
        assert (explanation.contributions, explanation.dropped) == (other.contributions, other.dropped)
    assert all("was made by another topology than the job has now" in what for what in refused)
    assert len(told) > 1
