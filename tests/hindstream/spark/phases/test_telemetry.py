"""A run's metrics reach OpenTelemetry's SDK under Kafka's names, once a run, and nothing needs it to be there."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from hindstream.spark.phases import commit
from hindstream.spark.phases.telemetry import export
from statelib import Job, StreamsBuilder, TimeWindows
from statelib.commits import plan, record_audit, stage
from statelib.documents.manifests import Audit, Staged, StateManifest, TaskOutcome, TaskPosition
from statelib.documents.plans import Plan
from statelib.metrics.node_metrics import NodeMetrics
from statelib.settings.settings import load_settings
from tests.task.pipeline import Pipeline


def staged(*, late: int = 2) -> Staged:
    metrics = NodeMetrics(records_in=9)
    metrics.drop("late", late)
    metrics.drop("null-key", 1)
    metrics.lateness.observe(np.array([0, 6]))
    metrics.gauges["open-windows"] = 3
    tasks = [
        TaskOutcome(
            task_id=task_id, attempt="a", sinks=(), repartitions=(), state=StateManifest(), metrics={"counts": metrics},
            position=TaskPosition(task_id=task_id, commit=1, fingerprint="f"),
            stores={}, seconds={}, peak_memory_bytes=0, host="h",
        )
        for task_id in ("0_0", "0_1")
    ]  # fmt: skip
    return Staged(run_id="00000001-1", tasks=tuple(tasks), seconds=0)


def collected(reader: InMemoryMetricReader) -> dict[str, dict[tuple[str, ...], Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: {tuple(map(str, point.attributes.values())): point.value for point in metric.data.data_points}
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_totals_are_counters_and_the_others_gauges() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    export("job", staged(), provider)
    export("job", staged(late=5), provider)
    found = collected(reader)
    assert found["dropped-records-total"] == {
        ("job", task_id, "counts", reason): records
        for task_id in ("0_0", "0_1")
        for reason, records in (("late", 7), ("null-key", 2))
    }
    assert found["record-lateness-avg"]["job", "0_1", "counts"] == 3
    assert found["record-lateness-max"]["job", "0_0", "counts"] == 6
    assert found["open-windows-current"]["job", "0_0", "counts"] == 3


def test_a_commit_exports_its_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StreamsBuilder("counting")
    counts = builder.stream("events").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(timedelta(hours=1)))
    counts.count().to_stream().to("counts")
    pipeline = Pipeline(tmp_path, builder.build(), name="counting")
    pipeline.archive("events", [("k", "v", 0), (None, "v", 1)], (pa.string(), pa.string()))
    planned = plan(pipeline, pipeline.warehouse, now_ms=0)
    assert isinstance(planned, Plan)
    stage(pipeline.warehouse, planned, pipeline.replay(planned))
    passed = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0)
    record_audit(pipeline.warehouse, planned, passed)
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr("hindstream.spark.phases.telemetry.get_meter_provider", lambda: provider)
    job = Job("counting", pipeline.topology)
    settings = load_settings({"warehouse": str(tmp_path / "warehouse")}, environ={})
    for _ in range(2):
        assert commit.run(job, settings).run_id == planned.run_id
    assert list(collected(reader)["dropped-records-total"].values()) == [1]


def test_without_an_sdk_there_is_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    export("job", staged(), NoOpMeterProvider())
    export("job", staged())
    assert caplog.records == []


def test_an_exporter_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(MeterProvider):
        def force_flush(self, timeout_millis: float = 10_000) -> bool:
            raise ConnectionError("no collector")

    with caplog.at_level(logging.WARNING):
        export("job", staged(), Failing([InMemoryMetricReader()]))
    assert "could not be exported: no collector" in caplog.text
