"""How long the trigger waits for an application of a cluster, by what the cluster says of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.hindstream.spark.submission.test_cluster import DRIVER
from tests.hindstream.spark.submission.test_cluster import answers as answers  # noqa: PLC0414

if TYPE_CHECKING:
    from tests.hindstream.spark.submission.test_cluster import Answers

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

RECOVERS = {"success": False, "message": "Exception: Current state is not alive: RECOVERING."}
UNKNOWN = {"success": True, "driverState": "UNKNOWN"}
RUNNING = {"success": True, "driverState": "RUNNING"}
FINISHED = {"success": True, "driverState": "FINISHED"}
NOBODY = {"success": False}


class InTurn(dict[str, Any]):
    """Answers for the driver, one after the other; the last one stands."""

    def __init__(self, *said: object) -> None:
        super().__init__()
        self.left = list(said)
        self.asked = 0

    def get(self, path: str, default: object = None) -> Any:
        """That for a request."""
        if path != DRIVER:
            return default
        self.asked += 1
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def waited(answers: Answers, *said: object) -> tuple[str, int]:
    """What the trigger tells, and after how many looks."""
    from hindstream.airflow.trigger import SparkApplicationTrigger  # noqa: PLC0415 - Airflow takes seconds
    from hindstream.spark.submission.cluster import Cluster  # noqa: PLC0415

    answers.said = turns = InTurn(*said)
    trigger = SparkApplicationTrigger.of(
        Cluster("spark://127.0.0.1:7077", "cluster", rest_port=answers.server_port), "driver-20261129174447-0000"
    )
    trigger.poll_seconds = 0.001

    async def first_event() -> str:
        async for event in trigger.run():
            return str(event.payload)
        raise AssertionError

    return asyncio.run(first_event()), turns.asked


@pytest.mark.parametrize(
    ("said", "told", "looks"),
    [
        ([RUNNING, FINISHED], "FINISHED", 2),
        ([RUNNING, *[UNKNOWN] * 50, RUNNING, *[UNKNOWN] * 50, FINISHED], "FINISHED", 103),
        ([RUNNING, *[RECOVERS] * 50, RUNNING, FINISHED], "FINISHED", 53),
        ([NOBODY, NOBODY, RUNNING, NOBODY], "not known there", 6),
    ],
)
def test_it_waits_for_one_that_may_be_at_work(answers: Answers, said: list[object], told: str, looks: int) -> None:
    assert waited(answers, *said) == (told, looks)


@pytest.mark.parametrize("said", [[UNKNOWN], [RECOVERS], [None], [*[RECOVERS] * 20, *[UNKNOWN] * 20, None]])
def test_but_not_without_end(answers: Answers, said: list[object]) -> None:
    told, looks = waited(answers, *said)
    assert looks == 60
    assert told.startswith(("UNKNOWN", "the cluster does not answer: "))
