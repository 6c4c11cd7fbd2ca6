"""The lag of a store's changelog, looked at and set by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from statelib.commits import release_hold, take_hold
from statelib.commits.maintenance.changelog_lag import changelog_lag, set_and_read_back, set_changelog_lag
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, RetryableError
from tests.changelog.test_compaction import BLOCKS, DAY, compact, piped
from tests.changelog.test_rebuild import SALES, TYPES, counts, made, plain_table, versioned_table
from tests.commits.test_hold import Killed
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.dsl import StreamsBuilder

pytestmark = pytest.mark.thorough

NEEDED = DAY + 4 * 60_000
STEPS = ("lag.set",)


def replayed(directory: Path, build: Callable[[StreamsBuilder], None], **settings: Any) -> Pipeline:
    pipeline = piped(directory, made(build), **settings)
    for block in range(BLOCKS):
        pipeline.run(2 * DAY * (block + 1) - DAY)
    return pipeline


def test_what_is_needed_and_what_is_set(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, plain_table)
    found = changelog_lag(pipeline.warehouse, "job", "s")
    assert (found.store.kind, found.needed_ms, found.set_ms, found.is_compacted) == ("key-value", 0, None, True)
    assert set_changelog_lag(pipeline.warehouse, "job", "s", 5 * DAY).set_ms == 5 * DAY
    assert set_changelog_lag(pipeline.warehouse, "job", "s", DAY).set_ms == DAY
    compact(pipeline, "m", keep=1)
    archive = changelog_lag(pipeline.warehouse, "job", "s").changelog
    assert 0 < archive.cleaned_offset(0) < archive.end_offsets()[0]


def test_less_than_a_store_needs_is_refused_as_long_as_one_can_go_back_to_it(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, versioned_table)
    with pytest.raises(ConfigurationError, match=f"too short.*need {NEEDED} ms.*set at least {NEEDED // 1000 + 1}s"):
        set_changelog_lag(pipeline.warehouse, "job", "s", NEEDED - 1)
    assert set_changelog_lag(pipeline.warehouse, "job", "s", NEEDED).set_ms == NEEDED
    plain = Pipeline(tmp_path, made(plain_table), attempt="plain")
    plain.run(None, migrate_stores=["s"])
    found = changelog_lag(pipeline.warehouse, "job", "s")
    assert (found.store.kind, found.needed_ms, found.is_compacted) == ("key-value", NEEDED, False)
    with pytest.raises(ConfigurationError, match="too short"):
        set_changelog_lag(pipeline.warehouse, "job", "s", 0)
    compact(plain, "m", keep=1)
    found = set_changelog_lag(pipeline.warehouse, "job", "s", 0)
    assert (found.needed_ms, found.set_ms, found.is_compacted) == (0, 0, True)


def test_a_changelog_that_is_only_merged_says_so(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, versioned_table, semantics="kafka-4.3")
    assert not changelog_lag(pipeline.warehouse, "job", "s").is_compacted


def test_what_cannot_be_set_is_said(tmp_path: Path) -> None:
    pipeline = piped(tmp_path, made(counts))
    warehouse = pipeline.warehouse
    with pytest.raises(ConfigurationError, match="the job has no commits"):
        changelog_lag(warehouse, "job", "s")
    pipeline.run(DAY)
    with pytest.raises(ConfigurationError, match="no such store.*name one of: s"):
        changelog_lag(warehouse, "job", "t")
    silent = Pipeline(tmp_path / "silent", made(counts))
    silent.archive("sales", SALES, TYPES)
    silent.run(DAY)
    with pytest.raises(ConfigurationError, match="the store has no changelog"):
        changelog_lag(silent.warehouse, "job", "s")
    take_hold(warehouse, "job", "somebody", reason="a test", now_ms=0)
    with pytest.raises(ConfigurationError, match="held by somebody"):
        set_changelog_lag(warehouse, "job", "s", DAY)
    release_hold(warehouse, "job", "somebody")
    assert set_changelog_lag(warehouse, "job", "s", DAY).set_ms == DAY


def test_what_is_read_back_counts(tmp_path: Path) -> None:
    pipeline = piped(tmp_path, made(counts))
    pipeline.run(DAY)
    changelog = changelog_lag(pipeline.warehouse, "job", "s").changelog

    def somebody_else(name: str) -> None:
        if name == "lag.set":
            changelog.refresh().set_min_compaction_lag(DAY)

    with observed(somebody_else), pytest.raises(RetryableError, match=f"set to {2 * DAY}, and is {DAY}"):
        set_and_read_back(changelog, 2 * DAY)


@pytest.mark.parametrize("at", STEPS)
def test_killed_at_a_step_it_is_done_again(tmp_path: Path, at: str) -> None:
    pipeline = piped(tmp_path, made(counts))
    pipeline.run(DAY)

    def kill(name: str) -> None:
        if name == at:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        set_changelog_lag(pipeline.warehouse, "job", "s", 2 * DAY)
    assert set_changelog_lag(pipeline.warehouse, "job", "s", 2 * DAY).set_ms == 2 * DAY
