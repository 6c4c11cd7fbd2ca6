"""The jobs of a warehouse in short: as their runs leave them, whatever state they are in."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import StreamsBuilder
from statelib.commits.hold import take_hold
from statelib.commits.job_summary import OpenRun, UnreadableJob, job_summaries
from statelib.commits.layout import JobLayout
from statelib.commits.run.audit import record_audit
from statelib.commits.run.stage import stage
from statelib.documents.manifests import Audit
from statelib.errors.kinds import CorruptedDataError
from statelib.storage import Storage
from tests.task.pipeline import Pipeline


@pytest.fixture
def pipeline(tmp_path) -> Pipeline:
    builder = StreamsBuilder("counts")
    builder.stream("events").filter(pc.field("value") > 1).to("out")
    pipeline = Pipeline(tmp_path, builder.build(), "counts")
    pipeline.archive("events", [(f"k{n % 5}", n % 3, n) for n in range(90)], (pa.string(), pa.int64()), partitions=2)
    return pipeline


def summary(pipeline: Pipeline):
    (found,) = job_summaries(pipeline.warehouse)
    return found


def test_there_may_be_no_jobs(tmp_path) -> None:
    assert job_summaries(Storage(str(tmp_path))) == []


def test_a_job_is_as_its_newest_commit_left_it(pipeline) -> None:
    pipeline.run(until_ms=45)
    found = summary(pipeline)
    assert (found.job, found.commits, found.until_ms, found.is_sealed) == ("counts", 1, 45, False)
    assert (found.records_read, found.sinks["out"]) == (45, 15)
    assert (found.hold, found.open_run) == (None, None)
    pipeline.run(end_of_input="seal")
    found = summary(pipeline)
    assert (found.commits, found.until_ms, found.is_sealed) == (2, None, True)
    assert (found.records_read, found.sinks["out"]) == (90, 30)


def test_an_open_run_says_what_it_waits_for(pipeline) -> None:
    planned = pipeline.plan(until_ms=45)
    assert summary(pipeline).commits == 0
    assert summary(pipeline).open_run == OpenRun(planned.run_id, "to be replayed")
    staged = stage(pipeline.warehouse, planned, pipeline.replay(planned))
    assert staged.run_id == planned.run_id
    assert summary(pipeline).open_run.state == "to be audited"
    failed = Audit(run_id=planned.run_id, success=False, checks=(), data_docs=None, seconds=0)
    record_audit(pipeline.warehouse, planned, failed)
    assert summary(pipeline).open_run.state == "quarantined"
    assert pipeline.plan(until_ms=45).run_id != planned.run_id
    assert summary(pipeline).open_run.state == "to be replayed"


def test_who_holds_a_job_is_told(pipeline) -> None:
    pipeline.run(until_ms=45)
    take_hold(pipeline.warehouse, "counts", "somebody", reason="a migration", now_ms=7)
    found = summary(pipeline)
    assert (found.hold.holder, found.hold.since_ms) == ("somebody", 7)


def test_a_source_that_is_gone_leaves_the_rest(pipeline) -> None:
    pipeline.run(until_ms=45)
    pipeline.warehouse.delete([entry.path for entry in pipeline.warehouse.list("topics/events")])
    found = summary(pipeline)
    assert (found.records_read, found.sinks["out"]) == (None, 15)


def test_a_damaged_commit_does_not_hide_other_jobs(pipeline, tmp_path) -> None:
    pipeline.run(until_ms=45)
    builder = StreamsBuilder("other")
    builder.stream("events").to("elsewhere")
    Pipeline(tmp_path, builder.build(), "other").run()
    pipeline.warehouse.put(JobLayout("counts").commit(1), b"{}")
    damaged, other = job_summaries(pipeline.warehouse)
    assert isinstance(damaged, UnreadableJob)
    assert isinstance(damaged.error, CorruptedDataError)
    assert (other.job, other.records_read) == ("other", 90)
