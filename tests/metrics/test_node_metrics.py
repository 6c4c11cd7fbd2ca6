"""Ledgers balance, figures of tasks add up, lateness falls into the right bucket."""

from __future__ import annotations

import json
from bisect import bisect_left

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.metrics.node_metrics import LATENESS_BOUNDS_MS, Lateness, Mean, NodeMetrics


def test_a_record_in_no_account_is_seen() -> None:
    metrics = NodeMetrics(records_in=5, held_before=2, held_after=1)
    metrics.account("forwarded", 4)
    metrics.account("late", 1)
    assert metrics.unaccounted == 1
    metrics.account("duplicate", 1)
    assert metrics.unaccounted == 0


def test_nothing_leaves_no_trace() -> None:
    metrics = NodeMetrics()
    metrics.account("late", 0)
    metrics.count("events", 0)
    metrics.mean("size", 0, 0)
    assert metrics == NodeMetrics()


def test_tasks_add_up_and_maxima_stay_maxima() -> None:
    first, second = NodeMetrics(records_in=1), NodeMetrics(records_in=2, records_out=3)
    first.account("forwarded", 1)
    second.account("forwarded", 2)
    first.gauge_max("size_max", 7)
    second.gauge_max("size_max", 5)
    first.gauges["size"] = 1
    second.gauges["size"] = 2
    second.lateness.observe(np.array([5]))
    first.mean("size", 2, 10)
    second.mean("size", 3, 5, 1)
    second.mean("wait", 1, 4, 4)
    first.add(second)
    assert (first.records_in, first.records_out, first.accounts) == (3, 3, {"forwarded": 3})
    assert first.gauges == {"size_max": 7, "size": 3}
    assert first.means == {"size": Mean(5, 15, 1), "wait": Mean(1, 4, 4)}
    assert first.means["size"].mean == 3
    assert (first.lateness.total_ms, first.lateness.max_ms, sum(first.lateness.counts)) == (5, 5, 1)


def test_lateness_buckets_include_their_upper_bound() -> None:
    lateness = Lateness()
    lateness.observe(np.array([0, 1, 1_000, 1_001, LATENESS_BOUNDS_MS[-1], LATENESS_BOUNDS_MS[-1] + 1]))
    assert lateness.counts[:3] == [1, 2, 1]
    assert lateness.counts[-2:] == [1, 1]
    assert lateness.max_ms == LATENESS_BOUNDS_MS[-1] + 1
    lateness.observe(np.empty(0, np.int64))
    assert sum(lateness.counts) == 6


@given(st.lists(st.sampled_from(LATENESS_BOUNDS_MS) | st.integers(0, 2 * LATENESS_BOUNDS_MS[-1]), max_size=30))
def test_each_record_is_in_the_first_bucket_whose_bound_it_does_not_exceed(lateness_ms: list[int]) -> None:
    lateness = Lateness()
    lateness.observe(np.array(lateness_ms, dtype=np.int64))
    expected = [0] * (len(LATENESS_BOUNDS_MS) + 1)
    for late in lateness_ms:
        expected[bisect_left(LATENESS_BOUNDS_MS, late)] += 1
    assert json.loads(json.dumps(lateness.counts)) == expected  # metrics are written as JSON
    assert (lateness.total_ms, lateness.max_ms) == (sum(lateness_ms), max(lateness_ms, default=0))
