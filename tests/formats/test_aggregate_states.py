"""A warehouse with the states of all aggregate functions, as they came: it is read, and its job goes on."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import get_args

from statelib.operators.aggregation.sql_functions import Function
from tests.formats.aggregate_states import OF_STREAMS, half, topology
from tests.task.pipeline import Pipeline
from tests.unpack import unpack

FIXTURE = Path(__file__).parent / "data" / "aggregate-states.tar.gz"
"""Written by `tests.formats.aggregate_states`."""
WITH_THE_STATE_OF_ANOTHER = {"var_pop", "stddev_samp"}


def test_its_job_goes_on(tmp_path: Path) -> None:
    with tarfile.open(FIXTURE) as archive:
        unpack(archive, tmp_path)
    former, always = Pipeline(tmp_path, topology()), half(tmp_path / "always")
    assert former.state() == always.state()
    former.run()
    always.run()
    assert former.state() == always.state()
    for topic in former.topology.sink_topics:
        assert former.output(topic) == always.output(topic)


def test_it_has_all_functions() -> None:
    there = {function.function for function in OF_STREAMS.values()} | WITH_THE_STATE_OF_ANOTHER
    assert there == set(get_args(Function))
