"""An hour of the demo: which flights it counts, which one was delivered twice, and which one came too late."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from hindstream.demo import DELAYS, FLIGHTS, NAME, WEATHER
from hindstream.demo.archives import prepare_topics
from hindstream.demo.job import job
from statelib.explanation import explain, find_result
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

HOUR = datetime(2013, 1, 1, 23, tzinfo=UTC)
UNTIL = (datetime(2013, 1, 2, 12, tzinfo=UTC), datetime(2013, 1, 4, tzinfo=UTC))


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)


@pytest.mark.long
@pytest.mark.slow
def test_a_delayed_hour(tmp_path: Path) -> None:
    demo = job()
    pipeline = Pipeline(tmp_path, demo.topology, NAME)
    prepare_topics(pipeline.warehouse, announce=bool)
    for end in UNTIL:
        pipeline.run(_ms(end))
    found = find_result(pipeline.warehouse, NAME, DELAYS, [{"key": "JFK"}], window_start_ms=_ms(HOUR))
    explanation = explain(demo, pipeline.warehouse, pipeline._settings, found)
    assert (explanation.reproduced, explanation.minimal) == (True, True)
    flights = [one.record for one in explanation.contributions if one.record.topic == FLIGHTS and not one.last]
    assert len(flights) == explanation.result.place.value["flights"]
    assert {_ms(HOUR) <= one.timestamp_ms < _ms(HOUR) + 3_600_000 for one in flights} == {True}
    assert {one.record.topic for one in explanation.contributions} == {FLIGHTS, WEATHER}
    ids = {one.value["flight_id"] for one in flights}
    duplicates = [one for one in explanation.dropped if one.rule == "duplicate"]
    assert [one.node for one in duplicates] == ["flights-once"]
    assert {one.record.value["flight_id"] for one in duplicates} <= ids
    assert all(one.duplicate_of is not None and one.duplicate_of.offset < one.record.offset for one in duplicates)
    (late,) = (one for one in explanation.dropped if one.rule == "late")
    assert (late.record.value["flight_id"], late.node) == ("MQ3944 JFK 2013-01-01T23:35Z", "delays-so-far")
    assert late.lateness_ms is not None
    assert late.lateness_ms > 12 * 3_600_000
