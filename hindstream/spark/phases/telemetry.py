"""Gives a run's metrics to OpenTelemetry, once, when the run has become true.

Only the API is used: where the process has set up no SDK it does nothing. How to set one up is the deployment's choice,
for example ``opentelemetry-instrument hindstream run ...`` or a `MeterProvider` that the job's file installs.

Instruments have the names of `statelib.metrics.kafka_metrics`: totals are counters, to which each run adds, all others
are gauges.
Attributes: ``job``, ``task-id`` and ``processor-node-id`` as Kafka's tags, and ``reason`` where there is one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opentelemetry.metrics import get_meter_provider

from statelib.metrics.kafka_metrics import measures

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, MeterProvider
    from opentelemetry.metrics import _Gauge as Gauge

    from statelib.documents.manifests import Staged

METER = "hindstream"

_log = logging.getLogger(__name__)


def export(job: str, staged: Staged, provider: MeterProvider | None = None) -> None:
    """Records every figure of every node of every task, and asks the SDK, if there is one, to send them.

    An exporter that fails is logged: the run is true, whoever hears of it.

    Args:
        job: The job's name.
        staged: What the run has made.
        provider: Whom to tell; None: the process' own.
    """
    provider = provider or get_meter_provider()
    meter = provider.get_meter(METER)
    counters: dict[str, Counter] = {}
    gauges: dict[str, Gauge] = {}
    for task in staged.tasks:
        for node, metrics in task.metrics.items():
            for measure in measures(metrics):
                name, about = measure.name, {"unit": measure.unit, "description": measure.description}
                attributes = {"job": job, "task-id": task.task_id, "processor-node-id": node}
                if measure.reason is not None:
                    attributes["reason"] = measure.reason
                if measure.kind == "total":
                    if name not in counters:
                        counters[name] = meter.create_counter(name, **about)
                    counters[name].add(measure.value, attributes)
                else:
                    if name not in gauges:
                        gauges[name] = meter.create_gauge(name, **about)
                    gauges[name].set(measure.value, attributes)
    _flush(provider)


def _flush(provider: MeterProvider) -> None:
    """Sends what an SDK has collected: a process of a scheduler may end without a chance to do so later."""
    force_flush = getattr(provider, "force_flush", None)  # not part of the API
    if force_flush is None:
        return
    try:
        force_flush()
    except Exception as error:  # noqa: BLE001 - any exporter's
        _log.warning("the run's metrics could not be exported: %s", error)
