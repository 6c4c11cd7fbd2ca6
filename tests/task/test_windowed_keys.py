"""Behind a windowed aggregation the window is part of the key, in every operator.

One topology gives the same answer as the same steps cut in two jobs with a topic between them, where nobody could take
the window off a key. ``SURFACE_RECORDS``, ``SURFACE_SLICES`` and ``SURFACE_SEED`` make it a longer run, of other
records and with all kinds of windows (``./dev campaign invariance``).
"""

from __future__ import annotations

import os
from itertools import accumulate, product
from operator import itemgetter
from typing import TYPE_CHECKING, Any, get_args

import pytest

from statelib.commits.archives import open_archive_if_present
from statelib.settings.semantics import Semantics
from tests.surface.records import TYPES, surface_records
from tests.surface.windowed import WINDOWS, first_half, in_one, second_half
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow


RECORDS = int(os.environ.get("SURFACE_RECORDS", "30"))
SLICES = int(os.environ.get("SURFACE_SLICES", "2"))
SEED = int(os.environ.get("SURFACE_SEED", "1"))
CHOSEN = [
    ("hopping", "kafka-4.3"),
    *(
        pytest.param(windows, "kip", marks=pytest.mark.long)
        for windows in ("sessions", "tumbling", "sliding", "offset")
    ),
]
KINDS = list(product(WINDOWS, get_args(Semantics))) if "SURFACE_RECORDS" in os.environ else CHOSEN

SINKS = {sink.topic for sub in second_half().sub_topologies for sink in sub.all_sinks if not sink.internal}
Row = tuple[Any, Any, int]
Records = dict[str, list[tuple[Any, Any, int]]]

BY_KEY_BYTES = {
    "limited", "near-left", "near-outer", "met-later", "found", "found-counted", "found-inner",
    "final-again", "final-counted", "tumbling-closed-again", "sliding-closed-again", "sessions-closed-again",
}  # fmt: skip
"""What comes together is in the order of the bytes of keys here, which are others for a struct of a topic's keys."""
BY_TASK_TIME = {
    "once-by-key", "once-by-key-and-id", "once-by-id", "counted-once", "distinct-in-windows", "distinct-counted",
}  # fmt: skip
"""What goes by the task's stream time: that of what it has taken up, which in two jobs are results and no events."""


def events(*, late: bool) -> Records:
    """Events, and what they are joined with; without late ones the stream time of results is that of events."""
    topics = surface_records(SEED, RECORDS)
    arrived = []
    for topic in ("events", "clicks", "names", "prices"):
        times = accumulate((time for _, _, time in topics[topic]), max)
        arrived += list(zip(times, topics[topic], strict=True))
    rows = [row for _, row in sorted(arrived, key=itemgetter(0))]
    if not late:
        rows = [
            (key, value, 10 * at) for at, (key, value, _) in enumerate(rows) if key is not None and value is not None
        ]
    return {"events": rows, "places": topics["tariffs"]}


def job(directory: Path, topology: Any, name: str, records: Records, **settings: Any) -> Pipeline:
    """A job over the records."""
    pipeline = Pipeline(directory, topology, name, **settings)
    for topic, rows in records.items():
        pipeline.archive(topic, rows, TYPES)
    return pipeline


def replayed(pipeline: Pipeline, cuts: Sequence[int]) -> dict[str, list[Any]]:
    """What a job publishes, by topic."""
    for cut in [*cuts, None]:
        pipeline.run(cut)
    sinks = {sink.topic for sub in pipeline.topology.sub_topologies for sink in sub.all_sinks if not sink.internal}
    there = [topic for topic in sorted(sinks) if open_archive_if_present(pipeline.warehouse, topic) is not None]
    return {topic: pipeline.output(topic) for topic in there}


def cuts_of(records: Records) -> list[int]:
    """Where slices end."""
    times = sorted({time for rows in records.values() for _, _, time in rows})
    return [times[number * len(times) // SLICES] for number in range(1, SLICES)]


def one_and_two(directory: Path, windows: str, records: Records, semantics: Semantics) -> tuple[Mapping[str, Any], ...]:
    """(key, value, timestamp) of what comes out, by topic: of one job, in one go, and of two, in slices."""
    kind, cuts = WINDOWS[windows], cuts_of(records)
    one = job(directory / "one", in_one(kind), "one", records, semantics=semantics)
    first = job(directory / "two", first_half(kind), "first", records, semantics=semantics)
    whole = replayed(one, [])
    replayed(first, cuts)
    second = Pipeline(directory / "two", second_half(), "second", semantics=semantics)
    in_two = replayed(second, cuts)
    return tuple({topic: [row[2:] for row in rows] for topic, rows in of.items()} for of in (whole, in_two))


def differences(one: Mapping[str, list[Row]], two: Mapping[str, list[Row]], unordered: set[str]) -> dict[str, Any]:
    """The topics that differ."""
    found = {}
    for topic in sorted(one.keys() | two.keys()):
        rows = one.get(topic, []), two.get(topic, [])
        pair = [sorted(of, key=repr) if topic in unordered else of for of in rows]
        if pair[0] != pair[1]:
            found[topic] = pair
    return found


@pytest.mark.parametrize(("windows", "semantics"), KINDS)
def test_one_job_is_as_two(tmp_path: Path, windows: str, semantics: Semantics) -> None:
    one, two = one_and_two(tmp_path, windows, events(late=True), semantics)
    assert "SURFACE_SEED" in os.environ or {*one} == SINKS
    found = differences(one, two, BY_KEY_BYTES)
    assert {topic: rows for topic, rows in found.items() if topic not in BY_TASK_TIME} == {}


@pytest.mark.long
def test_one_job_is_as_two_with_the_stream_time_of_events(tmp_path: Path) -> None:
    one, two = one_and_two(tmp_path, "tumbling", events(late=False), "kip")
    assert differences(one, two, BY_KEY_BYTES) == {}


@pytest.mark.long
def test_slices_do_not_show(tmp_path: Path) -> None:
    records, kind = events(late=True), WINDOWS["hopping"]
    whole, cut = (
        job(tmp_path / name, in_one(kind), "one", records, **settings)
        for name, settings in (("whole", {}), ("cut", {"batch_records": 3, "memory_budget_bytes": 1}))
    )
    assert replayed(cut, cuts_of(records)) == replayed(whole, [])
    assert cut.state() == whole.state()
