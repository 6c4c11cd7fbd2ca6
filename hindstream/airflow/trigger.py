"""Waits in Airflow's triggerer until an application of a Spark cluster has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from hindstream.spark.submission.cluster import Cluster, Status

_POLL_SECONDS = 10.0
_POLL_SECONDS_OF_KUBERNETES = 30.0
"""To ask it starts a Java process."""

_NOT_KNOWN_AT_MOST = 3
_UNCLEAR_AT_MOST = 60
"""As long as a cluster is restarted, and its master recovers."""


class SparkApplicationTrigger(BaseTrigger):
    """Waits until an application has ended, without a worker's slot. It has no credentials, and reads no warehouse.

    Args:
        cluster: The fields of `hindstream.spark.submission.cluster.Cluster`.
        application: The application's id there.
        poll_seconds: How long between two looks.
    """

    def __init__(self, cluster: dict[str, Any], application: str, poll_seconds: float = _POLL_SECONDS) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cluster = cluster
        self.application = application
        self.poll_seconds = poll_seconds

    @classmethod
    def of(cls, cluster: Cluster, application: str) -> SparkApplicationTrigger:
        """For an application of a cluster."""
        poll_seconds = _POLL_SECONDS_OF_KUBERNETES if cluster.kind == "kubernetes" else _POLL_SECONDS
        return cls(asdict(cluster), application, poll_seconds)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As Airflow stores it."""
        given = {"cluster": self.cluster, "application": self.application, "poll_seconds": self.poll_seconds}
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: what the cluster says of the application that has ended, or that nobody knows any more."""
        cluster = Cluster(**self.cluster)
        not_known = unclear = 0
        while True:
            try:
                status = await asyncio.to_thread(cluster.status, self.application)
            except OSError as error:
                status = Status("unclear", f"the cluster does not answer: {error}")
            not_known = not_known + 1 if status.state == "unknown" else 0
            unclear = unclear + 1 if status.state == "unclear" else 0
            has_ended = status.state in {"succeeded", "failed"}
            if has_ended or not_known >= _NOT_KNOWN_AT_MOST or unclear >= _UNCLEAR_AT_MOST:
                yield TriggerEvent(status.said)  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(self.poll_seconds)
