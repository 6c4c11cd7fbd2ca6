from __future__ import annotations

import json

import pytest

from benchmarks.measure import Cost
from benchmarks.nexmark.contestants.registry import CONTESTANTS
from benchmarks.nexmark.targets import FLINKS, verdicts
from benchmarks.runner import Measured
from benchmarks.targets import US

EVENTS = 1_000_000


def one(contestant: str, query: str, net_us: float, start: float) -> Measured:
    """Two runs: of one event, and of a million."""
    costs = {size: [Cost(1.0, start + net_us * size / 1e6, 1)] for size in (1, EVENTS)}
    return Measured(contestant, query, costs)


def test_flinks_are_contestants() -> None:
    assert {US, *FLINKS} <= {contestant.name for contestant in CONTESTANTS}


def test_the_geometric_mean_is_held_against_ten_net_and_gross() -> None:
    measured = [
        one("hindstream", "q0", 1.0, 1.0),
        one("hindstream", "q5", 1.0, 1.0),
        one("flink", "q0", 5.0, 5.0),
        one("flink", "q5", 45.0, 5.0),
    ]
    net, gross = verdicts(measured)
    assert str(net) == "met: Flink net 15 (at least 10) by flink, 2 queries"
    assert str(gross) == "met: Flink gross 11 (at least 10) by flink, 2 queries"
    measured[2:] = [one("flink", "q0", 5.0, 1.0), one("flink", "q5", 5.0, 1.0)]
    assert [str(verdict) for verdict in verdicts(measured)] == [
        "missed: Flink net 5 (at least 10) by flink, 2 queries",
        "missed: Flink gross 3 (at least 10) by flink, 2 queries",
    ]


def test_the_cheaper_flink_counts_and_the_other_is_named() -> None:
    measured = [
        one("hindstream", "q0", 1.0, 1.0),
        one("flink", "q0", 8.0, 4.0),
        one("flink-rocksdb", "q0", 16.0, 16.0),
    ]
    net, gross = verdicts(measured)
    assert str(net) == "missed: Flink net 8 (at least 10) by flink, 1 query; flink-rocksdb 16"
    assert gross.as_json() == {
        "quantity": "gross",
        "by": "flink",
        "times": pytest.approx(6.0),
        "queries": 1,
        "others": {"flink-rocksdb": pytest.approx(16.0)},
        "at_least": 10.0,
        "is_met": False,
    }


def test_what_failed_or_was_not_measured_says_nothing() -> None:
    failed = one("flink", "q0", 20.0, 5.0)
    failed.failed = "exit code 1"
    alone = [one("hindstream", "q0", 1.0, 1.0), failed, one("flink", "q5", 20.0, 5.0)]
    found = verdicts(alone)
    assert [str(verdict) for verdict in found] == ["too little to tell: Flink net", "too little to tell: Flink gross"]
    assert all(verdict.is_met is None for verdict in found)
    assert json.loads(json.dumps([verdict.as_json() for verdict in found]))[0]["times"] is None
