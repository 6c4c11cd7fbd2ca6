"""A node's figures have Kafka's names and units."""

from __future__ import annotations

import numpy as np

from statelib.metrics.kafka_metrics import Measure, measures
from statelib.metrics.node_metrics import NodeMetrics


def test_names_of_kip_328() -> None:
    metrics = NodeMetrics()
    metrics.lateness.observe(np.array([0, 0, 9]))
    metrics.drop("null-key", 2)
    metrics.drop("late", 4)
    metrics.account("late", 0)
    metrics.count("late-record-drop", 5)
    metrics.count("expired-window-record-drop", 6)
    metrics.gauges["suppression-buffer-size"] = 7
    metrics.gauge_max("suppression-buffer-size_max", 8)
    metrics.mean("suppression-buffer-size", 4, 10)
    metrics.mean("intermediate-result-suppression-overtime", 2, 30, 10)
    assert list(measures(metrics)) == [
        Measure("record-lateness-avg", 3.0, "gauge"),
        Measure("record-lateness-max", 9, "gauge"),
        Measure("dropped-records-total", 4, "total", "late"),
        Measure("dropped-records-total", 2, "total", "null-key"),
        Measure("expired-window-record-drop-total", 6, "total"),
        Measure("late-record-drop-total", 5, "total"),
        Measure("intermediate-result-suppression-overtime-avg", 15.0, "gauge"),
        Measure("intermediate-result-suppression-overtime-min", 10, "gauge"),
        Measure("suppression-buffer-size-avg", 2.5, "gauge"),
        Measure("suppression-buffer-size-current", 7, "gauge"),
        Measure("suppression-buffer-size-max", 8, "gauge"),
    ]
    assert [measure.unit for measure in measures(metrics)] == [
        "ms", "ms", "{record}", "{record}", "{record}", "{window}", "ms", "ms", "By", "By", "By",
    ]  # fmt: skip
    assert all(measure.description for measure in measures(metrics))


def test_a_versioned_store_has_its_own() -> None:
    metrics = NodeMetrics()
    metrics.account("stored", 5)
    metrics.drop("refused", 2)
    assert [(measure.name, measure.value) for measure in measures(metrics)] == [
        ("dropped-records-total", 2), ("versioned-put-total", 5), ("versioned-expired-put-total", 2),
    ]  # fmt: skip


def test_a_node_without_figures_has_none() -> None:
    assert list(measures(NodeMetrics(records_in=3, accounts={"forwarded": 3}))) == []


def test_what_was_dropped_adds_up_over_tasks() -> None:
    first, second = NodeMetrics(), NodeMetrics()
    first.drop("late", 1)
    second.drop("late", 2)
    second.drop("null-key", 3)
    first.add(second)
    assert first.dropped == first.accounts == {"late": 3, "null-key": 3}
