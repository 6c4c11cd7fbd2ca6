"""Explanations hold: their records alone give the result, and none of them can be left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from statelib.commits.versions.rollback import rollback
from statelib.errors.kinds import ConfigurationError
from statelib.explanation import explain, find_result
from statelib.explanation.tasks import Tasks
from statelib.job.job import Job
from tests.effort import every_other
from tests.explanation.jobs import (
    GRACE_MS,
    INTERVAL_MS,
    JOBS,
    OUT,
    SIZE_MS,
    Rows,
    elsewhere,
    explained,
    history,
    run,
    valid_version,
    windows,
)
from tests.reference.deduplicate import Deduplication
from tests.reference.window_aggregate import TimeWindowed

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # the smallest seed is no simpler one

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.explanation import Explanation
    from tests.task.pipeline import Pipeline


def _value(identifier: str, amount: int, other: str = "a") -> dict[str, Any]:
    return {"id": identifier, "amount": amount, "other": other}


def _offsets(explanation: Explanation) -> list[tuple[str, int | None, int]]:
    return [one.record.where for one in explanation.contributions]


@pytest.fixture
def counted(tmp_path: Path) -> Pipeline:
    """One window of ``a``: counted, with a duplicate, a value below the maximum and a late record."""
    events = [
        ("a", _value("1", 5), 80),
        ("a", _value("2", 9), 90),
        ("b", _value("1", 3), 92),
        ("a", _value("1", 5), 94),
        ("b", _value("2", 1), 160),
        ("a", _value("3", 7), 100),
    ]
    return run(tmp_path, windows(), {"events": events}, [120, None])


def test_a_window(counted: Pipeline) -> None:
    found = find_result(counted.warehouse, "explained", OUT, [{"key": "a"}], window_start_ms=80)
    explanation = explain(Job("explained", counted.topology), counted.warehouse, counted._settings, found)
    assert explanation.result.place.value == {"n": 2, "most": 9}
    assert explanation.reproduced
    assert explanation.minimal
    made = [(one.record.key, one.record.value["id"], one.last) for one in explanation.contributions]
    assert made[:2] == [("a", "1", False), ("a", "2", False)]
    assert [last for *_, last in made].count(True) == 1
    duplicate = next(one for one in explanation.dropped if one.rule == "duplicate")
    assert duplicate.record.where == ("events", 0, 3)
    assert duplicate.duplicate_of is not None
    assert duplicate.duplicate_of.where == ("events", 0, 0)
    late = next(one for one in explanation.dropped if one.rule == "late")
    assert (late.record.where, late.lateness_ms, late.clock_ms) == (("events", 0, 5), 60, 160)
    assert [step.kind for step in explanation.steps] == [
        "source", "deduplicate_by_key_value", "window_aggregate", "suppress", "to_stream", "sink",
    ]  # fmt: skip


def test_a_record_without_a_valid_version(tmp_path: Path) -> None:
    events = [("a", _value(str(number), number), time) for number, time in ((1, 10), (2, 60), (3, 70))]
    prices = [("a", _value("p", 2), 50)]
    pipeline = run(tmp_path, valid_version(), {"events": events, "prices": prices})
    partition, offset, *_ = pipeline.output(OUT)[-1]
    explanation = explained(pipeline, partition, offset)
    (dropped,) = explanation.dropped
    assert (dropped.record.where, dropped.rule) == (("events", partition, 0), "unmatched")
    assert dropped.line is not None
    assert {one.record.topic for one in explanation.contributions} == {"events", "prices"}
    assert (explanation.reproduced, explanation.minimal) == (True, True)


def test_only_the_task_of_the_result_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = history(5, 60, in_order=True)
    rows["events"] = [("d" if key == "b" else key, value, time) for key, value, time in rows["events"]]
    pipeline = run(tmp_path, windows(), rows)
    assert {row[0] for row in pipeline.output(OUT)} == {0, 1}
    replayed, of_tasks = set(), Tasks.replayed

    def noted(self: Tasks, task: tuple[int, int], *args: Any, **options: Any) -> Any:
        replayed.add(task)
        return of_tasks(self, task, *args, **options)

    monkeypatch.setattr(Tasks, "replayed", noted)
    partition, offset, *_ = pipeline.output(OUT)[-1]
    assert {row[0] for row in pipeline.output(OUT)} == {0, 1}
    assert explained(pipeline, partition, offset).reproduced
    assert replayed == {(0, partition)}


def test_of_very_many_records_not_each_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statelib.explanation.may_matter.MOST_RECORDS", 5)
    monkeypatch.setattr("statelib.explanation.explainer.MOST_RECORDS", 5)
    rows: Rows = {"events": [("a", _value(str(n), 1), n) for n in range(20)]}
    pipeline = run(tmp_path, elsewhere(), rows)
    explanation = explained(pipeline, *pipeline.output(OUT)[-1][:2])
    assert len(explanation.contributions) == 20
    assert (explanation.reproduced, explanation.minimal, explanation.drops_known) == (False, False, False)


def test_another_topology_is_refused(counted: Pipeline) -> None:
    found = find_result(counted.warehouse, "explained", OUT, [{"key": "a"}])
    with pytest.raises(ConfigurationError, match="made by another topology than the job has now"):
        explain(Job("explained", elsewhere()), counted.warehouse, counted._settings, found)


def test_a_commit_that_is_not_there(counted: Pipeline) -> None:
    found = find_result(counted.warehouse, "explained", OUT, [{"key": "a"}])
    with pytest.raises(ConfigurationError, match="there is no such commit"):
        explain(Job("explained", counted.topology), counted.warehouse, counted._settings, found, commit=7)


def test_a_key_that_is_not_there(counted: Pipeline) -> None:
    with pytest.raises(ConfigurationError, match="the sink has no record of this key there"):
        find_result(counted.warehouse, "explained", OUT, [{"key": "c"}])


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", every_other(JOBS, first=1))
@settings(max_examples=2, phases=NO_SHRINKING)
@given(seed=st.integers(0, 2**32))
def test_the_records_alone_give_the_result(name: str, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """In a job over topics that hold nothing else: in order, so that clocks are the same; and none can be left out."""
    rows = history(seed, 25, in_order=True)
    pipeline = run(tmp_path_factory.mktemp("whole"), JOBS[name](), rows, [100, None])
    results = pipeline.output_if_present(OUT)
    if not results:
        return
    partition, offset, key, value, timestamp = results[seed % len(results)]
    explanation = explained(pipeline, partition, offset)
    assert explanation.reproduced
    assert explanation.minimal
    assert explanation.contributions
    made = [one.record for one in explanation.contributions]

    def result_of(some: list[Any]) -> list[tuple[Any, ...]]:
        few: Rows = {"events": [], "prices": []}
        for one in sorted(some, key=lambda one: (one.timestamp_ms, one.offset)):
            few[one.topic].append((one.key, one.value, one.timestamp_ms))
        alone = run(tmp_path_factory.mktemp("alone"), JOBS[name](), few)
        return [row[2:] for row in alone.output_if_present(OUT)]

    assert (key, value, timestamp) in result_of(made)
    without = [result_of([one for one in made if one is not left_out]) for left_out in made]
    assert not any((key, value, timestamp) in rows for rows in without)


@pytest.mark.thorough
@pytest.mark.slow
@settings(max_examples=8, phases=NO_SHRINKING)
@given(seed=st.integers(0, 2**32))
def test_what_was_dropped_is_what_a_plain_model_drops(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rows = history(seed, 40, in_order=False)
    pipeline = run(tmp_path_factory.mktemp("whole"), windows(), rows, [150, None])
    results = pipeline.output_if_present(OUT)
    if not results:
        return
    partition, offset, key, *_ = results[seed % len(results)]
    explanation = explained(pipeline, partition, offset)
    assert explanation.reproduced
    start = int(np.datetime64(key["window_start"].replace(tzinfo=None), "ms").astype(int))
    ours = {(one.record.offset, one.rule) for one in explanation.dropped}
    events = [(row[1], *row[2:]) for row in pipeline.output("events") if row[0] == partition]
    assert ours == _dropped(events, key["key"], start, {one.record.offset for one in explanation.contributions})


def _dropped(events: list[tuple[int, Any, Any, int]], key: str, start: int, made: set[int]) -> set[tuple[int, str]]:
    """The records of a partition that would be in a window, but are duplicates or late."""
    once, counted, dropped = Deduplication(INTERVAL_MS), TimeWindowed(SIZE_MS, SIZE_MS, GRACE_MS), set()
    within = {offset for offset, one, _, time in events if one == key and start <= time < start + SIZE_MS}
    ids = {value["id"] for offset, _, value, _ in events if offset in within}
    for offset, one, value, time in events:
        once.advance(time)
        rule = None
        if not once.forwards((one, value["id"]), time, offset):
            rule = "duplicate"
        elif not counted.process(one, value, time):
            rule = "late"
        if rule and one == key and (offset in within or value["id"] in ids) and offset not in made:
            dropped.add((offset, rule))
    return dropped


@pytest.mark.parametrize("name", ["windows", "elsewhere", "near"])
def test_what_the_end_of_the_input_lets_go(name: str, tmp_path: Path) -> None:
    pipeline = run(tmp_path, JOBS[name](), history(7, 12, in_order=False), [40])
    pipeline.run(end_of_input="seal")
    partition, offset, *_ = pipeline.output(OUT)[-1]
    explanation = explained(pipeline, partition, offset)
    assert (explanation.reproduced, explanation.minimal) == (True, True)
    assert explanation.contributions


def test_a_rollback_is_no_part_of_the_history(tmp_path: Path) -> None:
    pipeline = run(tmp_path, elsewhere(), history(3, 20, in_order=True), [60, None])
    rollback(pipeline.warehouse, pipeline.name, 1, now_ms=0)
    pipeline.run()
    partition, offset, *_ = pipeline.output(OUT)[-1]
    explanation = explained(pipeline, partition, offset)
    assert (explanation.result.commit, explanation.reproduced, explanation.minimal) == (4, True, True)
