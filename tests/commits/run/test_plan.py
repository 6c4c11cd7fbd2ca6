from __future__ import annotations

import pytest

from statelib.commits import NothingToDo, Runs, commit, plan, record_audit, stage
from statelib.commits.archives import open_archive
from statelib.errors.kinds import ConfigurationError
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.commits import toy
from tests.commits.toy import DAY, SCHEMA


@pytest.fixture
def events(warehouse):
    toy.archive_events(warehouse, 0, days=3)


def planned(warehouse, **arguments):
    return plan(toy.job(), warehouse, now_ms=arguments.pop("now_ms", 1), **arguments)


def test_first_plan_takes_all_from_the_beginning(warehouse, events):
    found = planned(warehouse)
    archive = open_archive(warehouse, "events")
    assert (found.commit, found.run_id, found.until_ms) == (1, "00000001-1", None)
    assert [task.task_id for task in found.tasks] == ["0_0", "0_1"]
    ranges = {part.partition: (part.start_offset, part.end_offset) for task in found.tasks for part in task.sources}
    assert ranges == {p: (0, end) for p, end in archive.end_offsets().items()}
    assert found.records == 60
    assert found.sink_partitions == {"counts": 2, "counting-quarantine": 2, "counting-late": 2}
    assert Runs(warehouse, "counting").plan("00000001-1") == found


def test_slices_follow_each_other_without_gap(warehouse, events, run_slice):
    ends = [dict.fromkeys(range(2), 0)]
    records = 0
    for day in range(1, 4):
        found = planned(warehouse, until_ms=day * DAY)
        parts = [part for task in found.tasks for part in task.sources]
        assert {part.partition: part.start_offset for part in parts} == ends[-1]
        ends.append({part.partition: part.end_offset for part in parts})
        records += found.records
        run_slice(until_ms=day * DAY)
    assert records == 60
    assert planned(warehouse) == NothingToDo("counting", "no-new-records", 3)


def test_slice_can_end_at_offsets(warehouse, events, run_slice):
    found = planned(warehouse, end_offsets={"events": {0: 5, 1: 7}})
    assert [part.end_offset for task in found.tasks for part in task.sources] == [5, 7]
    assert found.records == 12


def test_nothing_new_changes_nothing(warehouse, events, run_slice):
    run_slice()
    before = warehouse.list()
    outcome = planned(warehouse)
    assert outcome == NothingToDo("counting", "no-new-records", 1)
    assert "nothing new since commit 1" in str(outcome)
    assert warehouse.list() == before


def test_an_empty_archive_gives_nothing_to_do(warehouse):
    TopicArchive.create(warehouse.uri("topics/events"), SCHEMA, 2)
    assert planned(warehouse) == NothingToDo("counting", "no-new-records", 0)


@pytest.mark.parametrize("asked", [{"until_ms": DAY}, {"end_offsets": {"events": {0: 1, 1: 1}}}])
def test_a_run_out_of_order_says_so_and_changes_nothing(warehouse, events, run_slice, asked):
    run_slice(until_ms=2 * DAY)
    before = warehouse.list()
    assert planned(warehouse, **asked) == NothingToDo("counting", "replayed-further", 1)
    assert warehouse.list() == before


def test_a_run_out_of_order_is_seen_after_a_slice_without_end(warehouse, events, run_slice):
    run_slice()
    assert planned(warehouse, until_ms=DAY) == NothingToDo("counting", "replayed-further", 1)


def test_the_same_slice_again_takes_what_was_archived_since(warehouse, events, run_slice):
    run_slice(until_ms=5 * DAY)
    assert planned(warehouse, until_ms=5 * DAY).reason == "no-new-records"
    toy.archive_events(warehouse, 3)
    assert planned(warehouse, until_ms=5 * DAY).records == 20


def test_an_open_plan_is_resumed(warehouse, events):
    first = planned(warehouse, now_ms=1)
    assert planned(warehouse, now_ms=2) == first


def test_another_slice_supersedes_an_open_plan(warehouse, events):
    first = planned(warehouse, until_ms=DAY)
    second = planned(warehouse, until_ms=2 * DAY)
    assert (first.run_id, second.run_id) == ("00000001-1", "00000001-2")
    assert planned(warehouse, until_ms=DAY).run_id == "00000001-3"


def test_a_grown_archive_supersedes_a_plan_that_has_staged_nothing(warehouse, events):
    first = planned(warehouse, until_ms=DAY)
    toy.archive_events(warehouse, 3)  # after the slice, but a new version of the table to read
    second = planned(warehouse, until_ms=DAY)
    assert second.run_id == "00000001-2"
    assert second.tasks == first.tasks


def test_what_is_staged_is_not_thrown_away_when_the_archive_grows_behind_the_slice(warehouse, events, scratch):
    first = planned(warehouse, until_ms=DAY)
    stage(warehouse, first, toy.replay(warehouse, first, scratch))
    toy.archive_events(warehouse, 3)
    assert planned(warehouse, until_ms=DAY) == first


def test_a_quarantined_run_gets_a_new_try(warehouse, events, scratch):
    first = planned(warehouse)
    stage(warehouse, first, toy.replay(warehouse, first, scratch))
    record_audit(warehouse, first, toy.passed(first, success=False))
    assert planned(warehouse).run_id == "00000001-2"


def test_a_run_whose_audit_passed_is_resumed(warehouse, events, scratch):
    first = planned(warehouse)
    stage(warehouse, first, toy.replay(warehouse, first, scratch))
    record_audit(warehouse, first, toy.passed(first))
    assert planned(warehouse) == first
    assert commit(warehouse, first, now_ms=1).run_id == first.run_id


def test_state_of_another_topology_is_refused(warehouse, events, run_slice):
    run_slice(until_ms=DAY)
    with pytest.raises(ConfigurationError, match=r"another topology.*give the job a new name"):
        plan(toy.job(sink="elsewhere"), warehouse, now_ms=1)


def test_a_changed_partition_count_is_refused(warehouse, events, run_slice, tmp_path):
    run_slice(until_ms=DAY)
    (tmp_path / "warehouse/topics/events").rename(tmp_path / "old")
    TopicArchive.create(warehouse.uri("topics/events"), SCHEMA, 3)
    with pytest.raises(ConfigurationError, match=r"3 partitions, and had 2 at commit 1.*topic events"):
        planned(warehouse)


def test_a_changed_schema_is_refused(warehouse, events, run_slice, tmp_path):
    run_slice(until_ms=DAY)
    (tmp_path / "warehouse/topics/events").rename(tmp_path / "old")
    TopicArchive.create(
        warehouse.uri("topics/events"), topic_schema(SCHEMA.field("key").type, SCHEMA.field("key").type), 2
    )
    with pytest.raises(ConfigurationError, match=r"schema.*commit 1: value was int64 and is string"):
        planned(warehouse)


def test_a_sink_that_is_in_use_is_refused(warehouse, events):
    strange = open_archive(warehouse, "events").reader(0).read_all().drop(["offset"])
    archive = TopicArchive.ensure(warehouse.uri("topics/counts"), SCHEMA, 2)
    append_records(archive, strange, attempt="x", app_id="x", app_version=1)
    assert any(archive.refresh().end_offsets().values())
    with pytest.raises(ConfigurationError, match=r"already holds records.*topic counts"):
        planned(warehouse)


def test_a_sink_has_the_partitions_of_its_empty_archive(warehouse, events):
    TopicArchive.create(warehouse.uri("topics/counts"), SCHEMA, 5)
    assert planned(warehouse).sink_partitions["counts"] == 5
    with pytest.raises(ConfigurationError, match="declared with 3 partitions, its archive has 5"):
        plan(toy.job(partitions=3), warehouse, now_ms=1)


def test_two_ends_are_refused(warehouse, events):
    with pytest.raises(ConfigurationError, match="at a time and at offsets"):
        planned(warehouse, until_ms=DAY, end_offsets={"events": {0: 1, 1: 1}})


def test_offsets_of_another_topic_are_refused(warehouse, events):
    with pytest.raises(ConfigurationError, match=r"no source \(topic others\)"):
        planned(warehouse, end_offsets={"events": {0: 1, 1: 1}, "others": {0: 1}})
    with pytest.raises(ConfigurationError, match=r"lack a source \(topic events\)"):
        planned(warehouse, end_offsets={})


def test_two_planners_at_once_get_the_same_plan(warehouse, events, monkeypatch):
    """The second planner looks for open plans before the first has stored its own."""
    first = planned(warehouse)
    asked = Runs.attempts
    calls = []

    def late(self, number):
        calls.append(number)
        return iter(()) if len(calls) == 1 else asked(self, number)

    monkeypatch.setattr(Runs, "attempts", late)
    assert planned(warehouse, now_ms=9) == first
    assert calls == [1, 1]


@pytest.mark.parametrize("document", ["staged", "audit"])
def test_a_try_whose_document_is_damaged_is_given_up(warehouse, events, scratch, document):
    first = planned(warehouse)
    stage(warehouse, first, toy.replay(warehouse, first, scratch))
    record_audit(warehouse, first, toy.passed(first))
    path = getattr(Runs(warehouse, "counting").layout, document)(first.run_id)
    warehouse.put(path, warehouse.get(path)[:-9])
    second = planned(warehouse)
    assert second.run_id == "00000001-2"
    assert path in second.begun_anew


@pytest.mark.parametrize("damage", ["missing", "truncated"])
@pytest.mark.parametrize("victim", ["sink", "state"])
def test_a_try_that_has_lost_what_it_had_staged_is_given_up(warehouse, events, scratch, victim, damage):
    first = planned(warehouse)
    staged = stage(warehouse, first, toy.replay(warehouse, first, scratch))
    assert planned(warehouse) == first
    (task, *_) = staged.tasks
    path = f"jobs/counting/state/0_0/{task.state.files[0].stored_name}"
    if victim == "sink":
        path = f"topics/counts/{task.sinks[0].file.path}"
    good = warehouse.get(path)
    warehouse.delete(path)
    if damage == "truncated":
        warehouse.put(path, good[:-1])
    second = planned(warehouse)
    what = "is missing" if damage == "missing" else f"has {len(good) - 1} bytes instead of {len(good)}"
    assert second.run_id == "00000001-2"
    assert second.begun_anew == (
        f"run 00000001-1 is given up: a file that it had staged {what} ({warehouse.uri(path)})"
    )
    assert planned(warehouse) == second
    stage(warehouse, second, toy.replay(warehouse, second, scratch, "again"))
    record_audit(warehouse, second, toy.passed(second))
    assert commit(warehouse, second, now_ms=2).run_id == second.run_id
