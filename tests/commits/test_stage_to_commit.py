"""stage, audit, commit: what two drivers, repeats and damage do to a run."""

from __future__ import annotations

import pytest

from statelib.commits import CommitLog, commit, ledger_table, plan, read_staged, reconcile, record_audit, stage
from statelib.commits.run.stage import check_complete
from statelib.documents.manifests import AuditCheck
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, FencedError, InputError, InternalError
from tests.commits import toy
from tests.commits.toy import DAY


@pytest.fixture
def planned(warehouse):
    toy.archive_events(warehouse, 0, days=2)
    return plan(toy.job(), warehouse, now_ms=1, until_ms=DAY)


@pytest.fixture
def staged(warehouse, planned, scratch):
    return stage(warehouse, planned, toy.replay(warehouse, planned, scratch))


@pytest.fixture
def audited(warehouse, planned, staged):
    return record_audit(warehouse, planned, toy.passed(planned))


class TestStage:
    def test_is_read_back(self, warehouse, planned, staged):
        assert read_staged(warehouse, planned) == staged

    def test_nothing_staged(self, warehouse, planned):
        assert read_staged(warehouse, planned) is None

    def test_the_first_driver_decides(self, warehouse, planned, staged, scratch):
        second = toy.replay(warehouse, planned, scratch / "two", "b0")
        assert second != staged
        assert stage(warehouse, planned, second) == staged

    def test_attempts_differ_in_names_only(self, warehouse, planned, staged, scratch):
        second = toy.replay(warehouse, planned, scratch / "two", "b0")
        assert [t.position for t in second.tasks] == [t.position for t in staged.tasks]
        assert [s.file.sha256 for t in second.tasks for s in t.sinks] == [
            s.file.sha256 for t in staged.tasks for s in t.sinks
        ]

    def test_incomplete_results_are_refused(self, planned, staged):
        first, second = staged.tasks
        wrong = {
            "of run 00000001-9": {"run_id": "00000001-9"},
            r"the task 0 times .*task 0_1": {"tasks": (first,)},
            r"the task 2 times .*task 0_1": {"tasks": (first, second, second)},
            r"not planned .*task 7_0": {"tasks": (first, second, first.model_copy(update={"task_id": "7_0"}))},
        }
        for message, update in wrong.items():
            with pytest.raises(InternalError, match=message):
                check_complete(planned, staged.model_copy(update=update))

    @pytest.mark.parametrize(
        ("update", "message"),
        [
            ({"commit": 2}, "position says"),
            ({"fingerprint": "other"}, "position says"),
            ({"task_id": "0_1"}, "position says"),
            ({"source_offsets": {}}, "ended at offset None of events/0"),
            ({"sink_offsets": {}}, "next offset of counts/0"),
        ],
    )
    def test_a_wrong_position_is_refused(self, planned, staged, update, message):
        first, second = staged.tasks
        moved = first.model_copy(update={"position": first.position.model_copy(update=update)})
        with pytest.raises(InternalError, match=message):
            check_complete(planned, staged.model_copy(update={"tasks": (moved, second)}))


class TestAudit:
    def test_the_first_outcome_stands(self, warehouse, planned, staged):
        failed = toy.passed(planned, success=False)
        assert record_audit(warehouse, planned, failed) == failed
        assert record_audit(warehouse, planned, toy.passed(planned)) == failed

    def test_needs_a_staged_run(self, warehouse, planned):
        with pytest.raises(InternalError, match="staged nothing"):
            record_audit(warehouse, planned, toy.passed(planned))

    def test_of_another_run_is_refused(self, warehouse, planned, staged):
        with pytest.raises(InternalError, match="recorded for another"):
            record_audit(warehouse, planned.model_copy(update={"run_id": "00000001-2"}), toy.passed(planned))

    def test_the_ledger_of_a_good_run_has_no_difference(self, planned, staged):
        rows = reconcile(toy.job().topology, planned, staged)
        assert {row.check for row in rows} == {"node", "source", "sink", "quarantine", "late"}
        assert (
            sum(row.expected for row in rows if row.check == "source") == planned.records == 21
        )  # one late record of the second day
        assert not any(row.difference for row in rows)
        table = ledger_table(rows)
        assert table.num_rows == len(rows)
        assert table["difference"].to_pylist() == [0] * len(rows)

    def test_the_ledger_of_an_empty_run_is_a_table(self):
        assert ledger_table([]).num_rows == 0


class TestCommit:
    def test_says_what_was_made(self, warehouse, planned, staged, audited):
        made = commit(warehouse, planned, now_ms=5)
        assert (made.commit, made.run_id, made.created_at_ms) == (1, planned.run_id, 5)
        assert made.sources == planned.sources
        assert made.sinks == tuple(sink for outcome in staged.tasks for sink in outcome.sinks)
        assert {task_id: task.position for task_id, task in made.tasks.items()} == {
            outcome.task_id: outcome.position for outcome in staged.tasks
        }
        assert CommitLog(warehouse, planned.job).head() == made

    def test_a_repeat_gives_the_same(self, warehouse, planned, audited):
        made = commit(warehouse, planned, now_ms=5)
        assert commit(warehouse, planned, now_ms=6) == made

    def test_needs_staging_and_audit(self, warehouse, planned, scratch):
        with pytest.raises(ConfigurationError, match=r"has not been staged.*replay"):
            commit(warehouse, planned, now_ms=5)
        stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
        with pytest.raises(ConfigurationError, match=r"has not been audited.*audit"):
            commit(warehouse, planned, now_ms=5)

    def test_refuses_a_quarantined_run(self, warehouse, planned, staged):
        check = AuditCheck(topic="counts", expectation="expect_column_min_to_be_between", parameters={}, success=False)
        audit = toy.passed(planned, success=False).model_copy(update={"checks": (check,)})
        record_audit(warehouse, planned, audit)
        with pytest.raises(InputError, match=r"quarantine: 1 of 1 check failed \(counts: expect_column_min"):
            commit(warehouse, planned, now_ms=5)
        assert CommitLog(warehouse, planned.job).head() is None

    def test_the_slower_of_two_drivers_is_fenced(self, warehouse, planned, staged, audited, scratch):
        other = plan(toy.job(), warehouse, now_ms=1, until_ms=2 * DAY)
        stage(warehouse, other, toy.replay(warehouse, other, scratch, "b0"))
        record_audit(warehouse, other, toy.passed(other))
        made = commit(warehouse, other, now_ms=5)
        with pytest.raises(FencedError, match=r"run 00000001-2 has made commit 1 .* before this run, 00000001-1"):
            commit(warehouse, planned, now_ms=6)
        assert CommitLog(warehouse, planned.job).head() == made

    def test_a_race_at_the_last_instant_has_one_winner(self, warehouse, planned, audited, monkeypatch):
        """Another driver creates the commit after this one has looked for it."""
        create = CommitLog.create
        rival = []

        def late(self, mine):
            rival.append(mine.model_copy(update={"run_id": "00000001-9"}))
            assert create(self, rival[0])
            return create(self, mine)

        monkeypatch.setattr(CommitLog, "create", late)
        with pytest.raises(FencedError):
            commit(warehouse, planned, now_ms=6)
        assert CommitLog(warehouse, planned.job).head() == rival[0]

    def test_a_commit_that_landed_but_was_reported_as_failed_is_not_made_twice(
        self, warehouse, planned, audited, monkeypatch
    ):
        create = CommitLog.create
        landed = []

        def unlucky(self, mine):
            landed.append(mine)
            assert create(self, mine)
            return create(self, mine)  # the client's own retry finds the object there

        monkeypatch.setattr(CommitLog, "create", unlucky)
        assert commit(warehouse, planned, now_ms=6) == landed[0]

    @pytest.mark.parametrize("what", ["state", "topics/counts"])
    @pytest.mark.parametrize("damage", ["missing", "truncated"])
    def test_every_file_must_be_there(self, warehouse, planned, staged, audited, what, damage):
        folder = what if what.startswith("topics") else f"jobs/counting/{what}"
        victim = next(entry for entry in warehouse.list(folder) if entry.size_bytes)
        if damage == "missing":
            warehouse.delete(victim.path)
        else:
            warehouse.put(victim.path, warehouse.get(victim.path)[:-1])
        with pytest.raises(CorruptedDataError, match=victim.path.rpartition("/")[2]):
            commit(warehouse, planned, now_ms=5)
        assert CommitLog(warehouse, planned.job).head() is None
