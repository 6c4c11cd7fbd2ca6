"""What two jobs dropped, next to what their runs say when they are added up one by one."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from statelib.commits.layout import Runs
from statelib.commits.versions.fork import fork
from statelib.commits.versions.rollback import rollback
from statelib.comparison.ledgers import compare_ledgers
from statelib.comparison.sinks import JobCommit
from tests.comparison.jobs import HOUR, VALUE, events, topology
from tests.task.pipeline import Pipeline


@pytest.fixture
def first(tmp_path):
    made = Pipeline(tmp_path, topology(""), "first")
    made.archive("events", events(), (pa.string(), VALUE))
    return made


@pytest.fixture
def other(tmp_path):
    """A job over the same events."""

    def make(name, *slices, reset=(), **changes):
        made = Pipeline(tmp_path, topology(f".{name}", **changes), name, warehouse=str(tmp_path / "warehouse"))
        for n, until_ms in enumerate(slices):
            made.run(until_ms, reset_stores=reset if n == 0 else ())
        return made

    return make


def added_up(pipeline, job, commits):
    """By node and account, of some commits."""
    found = Counter()
    for n in commits:
        staged = Runs(pipeline.warehouse, job).staged(f"{n:08d}-1")
        for task in staged.tasks if staged is not None else ():
            for node, metrics in task.metrics.items():
                found.update({(node, account): records for account, records in metrics.accounts.items()})
    return +found


def told(found):
    """What a comparison says, as `added_up`: of A, then of B."""
    sides = [Counter(), Counter()]
    for node in found.nodes:
        for account, counts in node.accounts.items():
            for side, name, records in zip(sides, (node.a, node.b), counts, strict=True):
                if records:
                    side[name, account] += records
    return sides


def compared(pipeline, a, b):
    return compare_ledgers(pipeline.warehouse, JobCommit(*a), JobCommit(*b))


def test_another_grace_drops_other_records(first, other):
    first.run(30 * HOUR)
    first.run()
    other("second", 20 * HOUR, None, grace_hours=4)
    found = compared(first, ("first", 2), ("second", 2))
    assert told(found) == [added_up(first, name, (1, 2)) for name in ("first", "second")]
    (late,) = (node.accounts["late"] for node in found.nodes if "late" in node.accounts)
    assert late[0] > late[1]
    assert (found.since, found.records_a, found.records_b) == (None, 600, 600)
    assert not found.is_empty


@pytest.mark.parametrize("seed", range(5))
def test_slices_do_not_matter_and_what_is_shared_does_not_count(first, other, seed):
    chance = random.Random(seed)
    for until in sorted(chance.sample(range(1, 70), 3)):
        first.run(until * HOUR)
    first.run()
    at = chance.randrange(1, 5)
    fork(first.warehouse, "first", "forked", at, now_ms=0)
    other("forked", *(until * HOUR for until in sorted(chance.sample(range(1, 70), 2))), None)
    head = 1 + sum(Runs(first.warehouse, "forked").staged(f"{n:08d}-1") is not None for n in range(2, 6))
    found = compared(first, ("first", 4), ("forked", head))
    assert found.since == JobCommit("first", at)
    assert found.is_empty
    assert told(found) == [added_up(first, "first", range(at + 1, 5)), added_up(first, "forked", range(2, head + 1))]
    other("alone", chance.randrange(1, 70) * HOUR, None)
    assert compared(first, ("first", 4), ("alone", 2)).is_empty
    twice = compared(first, ("forked", 1), ("first", at))
    assert (twice.nodes, twice.since) == ((), JobCommit("first", at))


def test_commits_that_were_rolled_back_do_not_count(first, other):
    first.run(20 * HOUR)
    first.run(40 * HOUR)
    rollback(first.warehouse, "first", 1, now_ms=0)
    first.run()
    other("second", None)
    found = compared(first, ("first", 4), ("second", 1))
    assert found.is_empty
    assert told(found)[0] == added_up(first, "first", (1, 4))


def test_a_node_is_known_by_what_it_goes_on_from(first, other):
    """A filter more gives all nodes behind it another number."""
    first.run(30 * HOUR)
    first.run()
    fork(first.warehouse, "first", "forked", 1, now_ms=0)
    other("forked", None, renumbered=True)
    found = compared(first, ("first", 2), ("forked", 2))
    (totals,) = (node for node in found.nodes if "late" in node.accounts)
    assert totals.a != totals.b
    assert totals.accounts["late"][0] == totals.accounts["late"][1] > 0
    assert totals.name == totals.b


def test_a_ledger_that_is_gone_is_named(first, other):
    first.run(30 * HOUR)
    first.run()
    other("second", None)
    first.warehouse.delete([Runs(first.warehouse, "first").layout.staged("00000001-1")])
    found = compared(first, ("first", 2), ("second", 1))
    assert found.unknown == (JobCommit("first", 1),)
    assert told(found)[0] == added_up(first, "first", (2,))
