"""A trial of the same version gives the same records in the same order, however the job has cut its history."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import Materialized, StreamsBuilder
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive
from statelib.commits.run.plan import plan
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.sink_history import sink_history
from statelib.commits.versions.trials import plan_trial
from statelib.errors.kinds import ConfigurationError
from tests.task.pipeline import Pipeline


def topology(suffix="", *, is_global=False):
    """What an order gives depends on which prices have come before."""
    builder = StreamsBuilder("trial")
    made = builder.global_table if is_global else builder.table
    prices = made("prices", Materialized.as_("prices-store"))
    orders = builder.stream("orders")
    fields = {"order": "left", "price": "right"}
    joined = orders.left_join(prices, "key", fields) if is_global else orders.left_join(prices, fields)
    joined.to(f"priced{suffix}")
    return builder.build()


class Retraced(Pipeline):
    """Runs slices that end at offsets."""

    ends: dict[str, dict[int, int]]

    def plan(self, *_: object, **__: object):
        return plan(
            self,
            self.warehouse,
            now_ms=0,
            end_offsets=self.ends,
            semantics=self._settings.semantics,
            describe=self._described,
        )


def rows(pipeline, job, commit=None):
    found = []
    for segment in sink_history(pipeline.warehouse, job, commit)["priced"]:
        reader = open_archive(pipeline.warehouse, segment.topic).reader(
            segment.partition, segment.first_offset, segment.end_offset
        )
        found += [
            (segment.partition, row["key"], row["value"], row["timestamp"]) for row in reader.read_all().to_pylist()
        ]
    return found


def retraced(pipeline, side, directory, **changes):
    if side.commit:
        fork(pipeline.warehouse, side.job, side.fork, side.commit, now_ms=0)
    else:
        fork_from_beginning(pipeline.warehouse, side.job, side.fork)
    replay = Retraced(directory, topology(f".{side.fork}", **changes), side.fork, warehouse=pipeline.warehouse.uri(""))
    for ends in side.ends:
        replay.ends = ends
        replay.run()
    return rows(pipeline, side.fork)


TIMES = st.integers(0, 100)
RECORDS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), TIMES), max_size=6)
STEP = st.tuples(RECORDS, RECORDS, st.none() | TIMES)
"""New orders, new prices, and where the run that follows ends; None: at the end of the archives."""


@pytest.mark.thorough
@given(
    steps=st.lists(STEP, min_size=1, max_size=5),
    start_ms=st.none() | TIMES,
    end_ms=st.none() | TIMES,
    is_global=st.booleans(),
)
def test_the_same_version_gives_the_same(tmp_path_factory, steps, start_ms, end_ms, is_global) -> None:
    folder = tmp_path_factory.mktemp("trial")
    pipeline = Pipeline(folder, topology(is_global=is_global), "job")
    for orders, prices, until_ms in steps:
        pipeline.archive("orders", orders, (pa.string(), pa.int64()), 2)
        pipeline.archive("prices", prices, (pa.string(), pa.int64()), 2)
        pipeline.run(until_ms)
    if not CommitLog(pipeline.warehouse, "job").head_number():
        return
    of_job = (pipeline.warehouse, "job", topology(".new", is_global=is_global), "new")
    try:
        trial = plan_trial(*of_job, old=topology(is_global=is_global), start_ms=start_ms, end_ms=end_ms)
    except ConfigurationError as error:
        if "nothing lies between" not in error.what:
            raise
        return
    new = retraced(pipeline, trial.new, folder, is_global=is_global)
    if trial.at is not None:
        assert new == rows(pipeline, *trial.at)
    else:
        assert new == retraced(pipeline, trial.old, folder, is_global=is_global)
