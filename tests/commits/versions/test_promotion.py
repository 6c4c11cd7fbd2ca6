"""Readers of a job read the job or one fork of it; they move in one step, and back."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest

import hindstream
from statelib.commits import CommitLog, preview_rollback, rollback
from statelib.commits.layout import JobLayout
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.promotion import go_back, promote, promotions, served_by, serving
from statelib.documents.upkeep import Promotion
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, FencedError
from statelib.topics.parquet.schema_changes import still_has
from tests.commits.versions.test_fork import DROP, Killed, at, four_commits, kill, run

PROMOTE = ["promote.before-create", "promote.created"]

pytestmark = pytest.mark.thorough

__all__ = ["four_commits", "run"]


@pytest.fixture
def forked(warehouse, four_commits, run):
    """The job, and a fork of it that has come as far."""
    fork(warehouse, "counting", "new", 2, now_ms=5)
    run(4, "new")
    return warehouse


def refused_or_done(action):
    with suppress(ConfigurationError):
        action()


def read(warehouse, **options):
    return hindstream.read("counts", job="counting", warehouse=warehouse.uri(""), **options)


def test_readers_move_and_go_back(forked):
    assert serving(forked, "counting") == read(forked).job == "counting"
    made = promote(forked, "new", "counting", now_ms=7)
    assert made == Promotion(job="counting", number=1, serving="new", commit=2, at_ms=7)
    found = read(forked)
    assert (found.job, found.commit, len(found)) == ("new", 2, len(read(forked, promoted=False)))
    assert {part.topic for part in found.segments} == {"counts", "counts.new"}
    assert read(forked, commit=4).job == "counting"
    assert served_by(forked, "new") == ("counting",)
    back = go_back(forked, "counting", now_ms=8)
    assert (back.number, back.serving, back.commit) == (2, "counting", 4)
    assert read(forked).job == "counting"
    assert served_by(forked, "new") == ()
    assert promotions(forked, "counting") == [made, back]


def test_a_repeat_changes_nothing(forked):
    made = promote(forked, "new", "counting", now_ms=7)
    assert promote(forked, "new", "counting", now_ms=9) == made
    assert promotions(forked, "counting") == [made]


def test_back_is_what_was_before(forked, run):
    fork(forked, "new", "newer", now_ms=5)
    promote(forked, "new", "counting", now_ms=6)
    promote(forked, "newer", "counting", now_ms=7)
    assert go_back(forked, "counting", now_ms=8).serving == "new"
    promote(forked, "newer", "counting", now_ms=9)
    assert go_back(forked, "counting", now_ms=10).serving == "new"
    assert go_back(forked, "counting", now_ms=11).serving == "counting"
    with pytest.raises(ConfigurationError, match="no way back"):
        go_back(forked, "counting", now_ms=12)


def test_the_way_back_is_open_whatever_has_become_of_the_job(forked, run):
    fork(forked, "new", "newer", now_ms=5)
    promote(forked, "new", "counting", now_ms=6)
    promote(forked, "newer", "counting", now_ms=7)
    run(5, "newer")
    forked.delete([entry.path for entry in forked.list("topics/counts.new")])  # no longer published
    assert go_back(forked, "counting", now_ms=8).serving == "new"


def test_a_fork_that_is_gone_is_passed_over_on_the_way_back(forked, run):
    fork(forked, "counting", "other", now_ms=5)
    promote(forked, "new", "counting", now_ms=6)
    promote(forked, "other", "counting", now_ms=7)
    drop_fork(forked, "new", now_ms=8)
    assert go_back(forked, "counting", now_ms=9).serving == "counting"


def test_another_fork_of_the_name_is_passed_over_on_the_way_back(forked, run):
    fork(forked, "counting", "other", now_ms=5)
    promote(forked, "new", "counting", now_ms=6)
    promote(forked, "other", "counting", now_ms=7)
    drop_fork(forked, "new", now_ms=8)
    fork(forked, "other", "new", now_ms=9)
    assert go_back(forked, "counting", now_ms=10).serving == "counting"


def test_promoted_while_the_fork_is_dropped_readers_can_go_back(forked):
    """The fork was not being dropped when the promotion looked; the drop is repeated when nobody reads the fork."""
    looked = at("drop.before-record", lambda: refused_or_done(lambda: promote(forked, "new", "counting", now_ms=7)))
    with looked, suppress(ConfigurationError):
        drop_fork(forked, "new", now_ms=8)
    go_back(forked, "counting", now_ms=9)
    refused_or_done(lambda: drop_fork(forked, "new", now_ms=10))
    assert read(forked).job == "counting"
    assert len(read(forked)) == 81


def test_nobody_takes_the_beginning_of_a_history_that_is_read(forked, run):
    fork(forked, "new", "newer", now_ms=6)
    promote(forked, "newer", "counting", now_ms=7)
    before = read(forked)
    for look in (preview_rollback, lambda *place: rollback(*place, now_ms=8)):
        with pytest.raises(ConfigurationError, match="the readers of counting read newer, whose history begins"):
            look(forked, "counting", 1)
    assert CommitLog(forked, "counting").head_number() == 4
    assert read(forked).segments == before.segments
    rollback(forked, "counting", 2, now_ms=9)  # the fork stands on this one
    assert read(forked).segments == before.segments
    go_back(forked, "counting", now_ms=10)
    rollback(forked, "counting", 1, now_ms=11)


def test_promoted_while_the_job_is_rolled_back_behind_the_fork(forked):
    """Whoever comes second is refused: readers read what there is."""
    looked = at("rollback.before-plan", lambda: promote(forked, "new", "counting", now_ms=7))
    with looked, pytest.raises(ConfigurationError, match="the readers of counting read new"):
        rollback(forked, "counting", 1, now_ms=8)
    assert len(read(forked)) == 81


def test_a_fork_whose_beginning_is_lost_is_passed_over_on_the_way_back(forked):
    fork(forked, "counting", "other", 1, now_ms=5)
    promote(forked, "new", "counting", now_ms=6)
    promote(forked, "other", "counting", now_ms=7, allow_behind=True)
    rollback(forked, "counting", 1, now_ms=8)
    assert go_back(forked, "counting", now_ms=9).serving == "counting"


@pytest.mark.parametrize("when", ["rollback.before-create", "rollback.created"])
def test_rolled_back_behind_the_fork_while_it_is_promoted(forked, when):
    """The rollback has found no promotion when it looked: the promotion finds the rollback, and takes itself back."""
    refused = []

    def promoted():
        try:
            promote(forked, "new", "counting", now_ms=7)
        except ConfigurationError as error:
            refused.append(error.what)

    with at(when, promoted):
        rollback(forked, "counting", 1, now_ms=8)
    assert len(refused) == 1
    assert serving(forked, "counting") == "counting"
    assert len(read(forked)) == len(read(forked, commit=1))


def test_nothing_to_promote(forked):
    made = promote(forked, "counting", "counting", now_ms=7)
    assert (made.number, made.serving) == (0, "counting")
    assert promotions(forked, "counting") == []


def test_both_go_on_and_readers_follow_who_serves(forked, run):
    promote(forked, "new", "counting", now_ms=7)
    run(6)
    assert (read(forked).job, read(forked).commit) == ("new", 2)
    run(6, "new")
    assert (read(forked).job, read(forked).commit) == ("new", 3)
    rollback(forked, "new", 2, now_ms=8)
    assert (read(forked).job, read(forked).commit) == ("new", 4)


def test_what_is_behind_is_promoted_only_if_asked(forked, run):
    run(6)
    with pytest.raises(ConfigurationError, match=r"it has come to offset 34 of events/0, and counting, .* to 51"):
        promote(forked, "new", "counting", now_ms=7)
    promote(forked, "new", "counting", now_ms=7, allow_behind=True)
    run(7, "new")
    assert go_back(forked, "counting", now_ms=8).serving == "counting"  # the way back is always open


def test_what_is_not_published_is_refused(forked, run):
    forked.delete([entry.path for entry in forked.list("topics/counts.new")])
    with pytest.raises(ConfigurationError, match="its newest commit is 2, and readers see commit 0"):
        promote(forked, "new", "counting", now_ms=7)


def test_only_a_fork_of_it_is_promoted(forked, run):
    fork(forked, "counting", "other", now_ms=5)
    with pytest.raises(ConfigurationError, match="it is no fork of other.*hindstream fork other NEW"):
        promote(forked, "new", "other", now_ms=7)
    with pytest.raises(ConfigurationError, match="exchange them: hindstream promote new --over counting"):
        promote(forked, "counting", "new", now_ms=7)
    with pytest.raises(ConfigurationError, match="there is no such job|has no commits"):
        promote(forked, "nobody", "counting", now_ms=7)
    with pytest.raises(ConfigurationError, match="no way back"):
        go_back(forked, "counting", now_ms=7)


def test_a_fork_that_serves_keeps_no_readers_of_its_own(forked, run):
    fork(forked, "new", "newer", now_ms=5)
    promote(forked, "new", "counting", now_ms=6)
    with pytest.raises(ConfigurationError, match="serves the readers of counting itself") as refused:
        promote(forked, "newer", "new", now_ms=7)
    assert refused.value.next_step == "move these: hindstream promote newer --over counting"


def test_a_fork_from_the_beginning_is_a_fork(forked, run):
    fork_from_beginning(forked, "counting", "anew")
    run(4, "anew")
    promote(forked, "anew", "counting", now_ms=7)
    assert read(forked).job == "anew"
    assert len(read(forked)) == len(read(forked, promoted=False))


def test_a_sink_that_is_missing_is_told(forked, run):
    fork(forked, "counting", "bare", now_ms=5)
    run(5, "bare", sink="others")
    fork_from_beginning(forked, "counting", "anew")
    run(4, "anew", sink="others")
    promote(forked, "bare", "counting", now_ms=7)  # it has what the job had written
    with pytest.raises(ConfigurationError, match=r"it does not write counts, which readers of bare may read"):
        promote(forked, "anew", "counting", now_ms=7, allow_behind=True)


@pytest.mark.parametrize(("old", "new", "has"), [
    (pa.int64(), pa.int64(), True),
    (pa.int64(), pa.int32(), False),
    (pa.struct([("a", pa.int64())]), pa.struct([("b", pa.string()), ("a", pa.int64())]), True),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), pa.struct([("a", pa.int64())]), False),
    (pa.struct([("a", pa.struct([("x", pa.int8())]))]), pa.struct([("a", pa.struct([("y", pa.int8())]))]), False),
    (pa.list_(pa.struct([("a", pa.int64())])), pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int8())])), True),
    (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.string()), False),
])  # fmt: skip
def test_fields_that_readers_know(old, new, has):
    assert still_has(old, new) == has


def test_what_serves_is_not_dropped(forked):
    promote(forked, "new", "counting", now_ms=7)
    with pytest.raises(ConfigurationError, match="the readers of counting read it") as refused:
        drop_fork(forked, "new", now_ms=8)
    assert refused.value.next_step == "let them read another job first: hindstream promote --back --over counting"
    assert read(forked).job == "new"
    go_back(forked, "counting", now_ms=9)
    drop_fork(forked, "new", now_ms=10)
    assert read(forked).job == "counting"
    with pytest.raises(ConfigurationError):
        go_back(forked, "counting", now_ms=11)
    assert read(forked).job == "counting"


@pytest.mark.parametrize("name", PROMOTE)
def test_killed_at_a_step_it_is_done_by_the_next(forked, name):
    with at(name, kill), pytest.raises(Killed):
        promote(forked, "new", "counting", now_ms=7)
    assert serving(forked, "counting") == ("new" if name == "promote.created" else "counting")
    assert promote(forked, "new", "counting", now_ms=8).serving == "new"
    assert len(promotions(forked, "counting")) == 1


@pytest.mark.parametrize("name", PROMOTE)
def test_dropped_within_a_promotion(forked, name):
    """Readers never read what is gone."""

    def drop():
        refused_or_done(lambda: drop_fork(forked, "new", now_ms=8))

    with at(name, drop):
        refused_or_done(lambda: promote(forked, "new", "counting", now_ms=7))
    serves = serving(forked, "counting")
    assert CommitLog(forked, serves).head_number()
    assert len(read(forked)) == 81


@pytest.mark.parametrize("name", DROP)
def test_promoted_within_a_drop(forked, name):
    with at(name, lambda: refused_or_done(lambda: promote(forked, "new", "counting", now_ms=7))):
        refused_or_done(lambda: drop_fork(forked, "new", now_ms=8))
    serves = serving(forked, "counting")
    assert CommitLog(forked, serves).head_number()
    assert len(read(forked)) == 81


def test_of_two_at_once_one_is_refused(forked):
    fork(forked, "counting", "other", now_ms=5)
    quicker = at("promote.before-create", lambda: promote(forked, "other", "counting", now_ms=6))
    with quicker, pytest.raises(FencedError, match="somebody else has promoted over this job meanwhile"):
        promote(forked, "new", "counting", now_ms=7)
    assert serving(forked, "counting") == "other"


def test_a_damaged_document_is_told(forked):
    promote(forked, "new", "counting", now_ms=7)
    path = JobLayout("counting").promotion(1)
    forked.put(path, forked.get(path)[:-9])
    with pytest.raises(CorruptedDataError, match="the promotion is damaged"):
        read(forked)


def test_its_bytes():
    written = Promotion(job="a", number=2, serving="b", commit=3, at_ms=4).encode()
    assert b"".join(written.split()) == (
        b'{"at_ms":4,"checksum":"98085756f6f5d10f5ce2676940b5c4e148d23565571f1051bc916a7c7b36acda",'
        b'"commit":3,"format_version":9,"job":"a","number":2,"serving":"b","undoes":null}'
    )
