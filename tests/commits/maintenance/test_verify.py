"""Every byte of a commit, and what is damaged when one has changed."""

from __future__ import annotations

import pytest

from statelib.commits import CommitLog, Retention, maintain, rollback, verify
from statelib.errors.kinds import ConfigurationError
from tests.commits import toy
from tests.commits.toy import DAY

pytestmark = pytest.mark.thorough


@pytest.fixture
def three_commits(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=4)
    return [run_slice(until_ms=day * DAY) for day in range(1, 4)]


def files_of(commits, *, sinks=True):
    paths = {
        f"jobs/counting/state/{task_id}/{file.stored_name}"
        for made in commits
        for task_id, task in made.tasks.items()
        for file in task.state.files
    }
    return paths | {f"topics/counts/{sink.file.path}" for made in commits for sink in made.sinks if sinks}


def harm(warehouse, path, damage):
    good = warehouse.get(path)
    warehouse.delete(path)
    if damage == "truncated":
        warehouse.put(path, good[:-1])
    elif damage == "flipped":
        warehouse.put(path, good[: len(good) // 2] + bytes([good[len(good) // 2] ^ 4]) + good[len(good) // 2 + 1 :])


def test_all_is_whole(warehouse, three_commits):
    found = verify(warehouse, "counting")
    assert (found.commits, found.damages, found.files) == ((3,), (), len(files_of(three_commits[2:])))
    assert found.size_bytes == sum(warehouse.size(path) for path in files_of(three_commits[2:]))
    found = verify(warehouse, "counting", everything=True)
    assert (found.commits, found.damages, found.files) == ((1, 2, 3), (), len(files_of(three_commits)))
    assert verify(warehouse, "counting", 2).commits == (2,)


@pytest.mark.parametrize(
    ("damage", "what"), [("missing", "is missing"), ("truncated", "bytes instead of"), ("flipped", "SHA-256 is not")]
)
def test_damage_is_found_wherever_it_is(warehouse, three_commits, damage, what):
    for path in sorted(files_of(three_commits)):
        good = warehouse.get(path)
        harm(warehouse, path, damage)
        (found,) = verify(warehouse, "counting", everything=True).damages
        assert found.file == warehouse.uri(path)
        assert what in found.what
        warehouse.put(path, good)


def test_all_damages_are_told_and_the_way_out(warehouse, three_commits):
    """A file that only the head has: the commit before it is whole."""
    only = min(files_of(three_commits[2:], sinks=False) - files_of(three_commits[:2], sinks=False))
    harm(warehouse, only, "flipped")
    sink = f"topics/counts/{three_commits[2].sinks[0].file.path}"
    harm(warehouse, sink, "missing")
    found = verify(warehouse, "counting")
    assert {damage.file for damage in found.damages} == {warehouse.uri(only), warehouse.uri(sink)}
    assert found.whole == 2
    assert "hindstream state rollback counting --to 2" in found.way_out
    harm(warehouse, f"jobs/counting/commits/{1:020d}.json", "flipped")
    found = verify(warehouse, "counting", everything=True)
    assert found.damages[0].where == "commit 1"
    assert len(found.damages) == 3


def test_a_sink_s_damage_leaves_the_state_whole(warehouse, three_commits):
    harm(warehouse, f"topics/counts/{three_commits[2].sinks[0].file.path}", "flipped")
    found = verify(warehouse, "counting")
    assert found.whole == 3
    assert found.way_out.endswith("the newest state is whole")


def test_no_state_is_whole(warehouse, three_commits):
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    for path in files_of(three_commits[2:], sinks=False):
        harm(warehouse, path, "flipped")
    found = verify(warehouse, "counting")
    assert found.whole is None
    assert "under a new name" in found.way_out


def test_what_has_expired_or_been_taken_back_is_not_missed(warehouse, three_commits, run_slice):
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    with pytest.raises(ConfigurationError, match="commit 1 has expired"):
        verify(warehouse, "counting", 1)
    assert verify(warehouse, "counting", everything=True).damages == ()
    rollback(warehouse, "counting", 2, now_ms=7)
    run_slice(until_ms=3 * DAY)
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert not warehouse.exists(f"topics/counts/{three_commits[2].sinks[0].file.path}")
    assert verify(warehouse, "counting", everything=True).damages == ()
    assert CommitLog(warehouse, "counting").head_number() == 5


def test_no_such_commit(warehouse, three_commits):
    for commit in (0, 4):
        with pytest.raises(ConfigurationError, match="commits 1 to 3"):
            verify(warehouse, "counting", commit)
    with pytest.raises(ConfigurationError, match="no commits"):
        verify(warehouse, "other")
