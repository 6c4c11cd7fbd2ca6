"""Waits in Airflow's triggerer until an application of a Spark cluster has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from hindstream.spark.submission.cluster import Cluster, Status

_POLL_SECONDS = 10.0
_POLL_SECONDS_OF_KUBERNETES = 30.0
"""To ask it starts a Java process."""

_NOT_KNOWN_AT_MOST = 3
_UNCLEAR_AT_MOST = 60
"""As long as a cluster is restarted, and its master recovers."""

_log = logging.getLogger(__name__)


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

    async def on_kill(self) -> None:
        """Stops the application, when somebody has marked or cleared its task.

        Airflow also calls this where another triggerer has taken the trigger over, since this one was silent for too
        long. Then the task is still deferred, and its application goes on.
        """
        if await self._is_waited_for():
            _log.info("%s goes on: its task is still deferred, with another triggerer", self.application)
            return
        await asyncio.to_thread(Cluster(**self.cluster).stop, self.application)
        _log.info("%s is stopped, with its task", self.application)

    async def _is_waited_for(self) -> bool:
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance  # noqa: PLC0415 - for this alone

        if (task := self.task_instance) is None:
            return False
        found = await sync_to_async(RuntimeTaskInstance.get_task_states)(
            task.dag_id, task_ids=[task.task_id], run_ids=[task.run_id], map_index=task.map_index
        )
        return "deferred" in [state for states in found.values() for state in states.values()]

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
