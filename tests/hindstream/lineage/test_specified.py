"""That the check of events finds what is wrong: in each test that makes events, it is what fails."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import nominal_time_run
from openlineage.client.serde import Serde

from tests.hindstream.lineage.specified import check_specified, errors_of

if TYPE_CHECKING:
    from collections.abc import Callable

_TIME = "2013-01-01T00:00:00.000Z"


def _event() -> dict[str, Any]:
    facets = {"nominalTime": nominal_time_run.NominalTimeRunFacet(_TIME, _TIME)}
    run = Run("01a227b0-04da-763b-8503-3293c1b64935", facets)
    event = RunEvent(eventTime=_TIME, eventType=RunState.START, run=run, job=Job("shop", "orders"))
    event.producer = "pkg:pypi/hindstream@1"
    return Serde.to_dict(event)


def test_one_that_is_right() -> None:
    assert errors_of(_event()) == []


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (lambda event: event["run"].pop("runId"), "$.run"),
        (lambda event: event["run"].update(runId="7"), "$.run.runId"),
        (lambda event: event.update(eventTime="2013-01-01T00:00:00"), "$.eventTime"),
        (lambda event: event.update(eventType="BEGIN"), "$.eventType"),
        (lambda event: event.update(producer="hindstream"), "$.producer"),
        (lambda event: event["run"]["facets"]["nominalTime"].pop("nominalStartTime"), "NominalTimeRunFacet $:"),
        (lambda event: event["run"]["facets"]["nominalTime"].update(nominalEndTime=7), "$.nominalEndTime"),
    ],
)
def test_what_is_wrong_is_found(spoil: Callable[[dict[str, Any]], object], where: str) -> None:
    event = deepcopy(_event())
    spoil(event)
    assert any(where in error for error in errors_of(event))


def test_whoever_makes_it_is_told() -> None:
    ours, theirs = _event(), _event() | {"producer": "https://github.com/apache/airflow"}
    for event in (ours, theirs):
        event["run"]["runId"] = "7"
    check_specified([theirs])
    with pytest.raises(AssertionError, match="runId"):
        check_specified([ours])
