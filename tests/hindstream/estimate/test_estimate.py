"""An estimate over real archives: by a sample, by runs, by neither; nothing is changed."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindstream.estimate.estimate import Asked, estimate
from hindstream.estimate.evidence import LEAST_RECORDS
from hindstream.estimate.history import next_slice
from statelib import Job, StreamsBuilder, per_record
from statelib.commits import NothingToDo
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings
from tests.task.pipeline import Pipeline

RECORDS = 3_000
VALUE = pa.struct([("amount", pa.int64()), ("id", pa.string())])


def job() -> Job:
    builder = StreamsBuilder("kept")
    events = builder.stream("events").filter(pc.field("value", "amount") == 0)
    events.to("some")
    events.group_by("id").count().to_stream().to("counts")
    return Job("kept", builder.build())


@pytest.fixture
def warehouse(tmp_path):
    pipeline = Pipeline(tmp_path, job().topology, "kept")
    events = [(f"k{n % 7}", {"amount": n % 3, "id": f"i{n % 500}"}, n) for n in range(RECORDS)]
    pipeline.archive("events", events, (pa.string(), VALUE), partitions=2)
    return pipeline


@pytest.fixture
def settings(warehouse, tmp_path):
    given = {"warehouse": str(tmp_path / "warehouse"), "state_dir": tmp_path / "state", "engine": "local"}
    return load_settings(given, environ={})


def files(folder) -> dict:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def outputs(found) -> dict[str, int]:
    return {output.topic: round(output.records) for output in found.prediction.outputs}


def test_a_sample_tells_where_records_go_and_changes_nothing(settings, tmp_path) -> None:
    before = files(tmp_path)
    found = estimate(job(), settings, Asked())
    assert files(tmp_path) == before
    assert found.evidence.origin == "sample"
    assert found.prediction.records == RECORDS
    assert outputs(found) == {"some": RECORDS // 3, "counts": RECORDS // 3}
    assert {node.kind for node in found.prediction.nodes} >= {"source", "filter", "repartition", "stream_aggregate"}
    assert set(found.evidence.node_seconds) >= {node.name for node in job().topology.sub_topologies[0].processors}
    assert found.prediction.state_bytes > 0


def test_more_history_is_more_of_the_same(settings) -> None:
    found = estimate(job(), settings, Asked(records=30e9, slices=24, cores=16))
    assert outputs(found)["some"] == pytest.approx(10e9)
    by_size = estimate(job(), settings, Asked(size_bytes=found.prediction.size_bytes))
    assert by_size.prediction.records == pytest.approx(30e9)


def test_without_a_sample_each_record_passes(settings) -> None:
    found = estimate(job(), settings, Asked(sample=0))
    assert found.evidence is None
    assert outputs(found) == {"some": RECORDS, "counts": RECORDS}


def test_former_runs_count_before_a_sample(settings, warehouse) -> None:
    warehouse.run(until_ms=RECORDS // 2)
    found = estimate(job(), settings, Asked())
    assert (found.evidence.origin, found.evidence.runs, found.evidence.records) == ("runs", 1, RECORDS // 2)
    assert RECORDS < LEAST_RECORDS
    assert not found.evidence.tells_costs
    assert outputs(found)["some"] == pytest.approx(RECORDS / 3, abs=1)


def test_runs_of_another_topology_do_not_count(settings, warehouse) -> None:
    warehouse.run(until_ms=RECORDS // 2)
    builder = StreamsBuilder("kept")
    builder.stream("events").to("all")
    assert estimate(Job("kept", builder.build()), settings, Asked()).evidence.origin == "sample"


def test_the_next_slice_is_what_the_next_run_would_replay(settings, warehouse) -> None:
    warehouse.run(until_ms=1_000)
    until = settings.model_copy(update={"until": 1_600})
    assert estimate(job(), until, Asked()).prediction.records == pytest.approx(600)
    assert next_slice(job(), until, warehouse.warehouse).before == 1_000
    done = settings.model_copy(update={"until": 500})
    assert isinstance(estimate(job(), done, Asked()), NothingToDo)


def test_a_function_of_the_user_is_timed(settings) -> None:
    def slow(amount: int) -> int:
        return sum(range(200 + amount))

    builder = StreamsBuilder("slow")
    builder.stream("events").map_values(per_record(slow, pa.int64(), "amount")).to("slow")
    found = estimate(Job("slow", builder.build()), settings, Asked())
    assert max(found.evidence.node_seconds, key=found.evidence.node_seconds.get).startswith("KSTREAM-MAPVALUES")


def test_a_sample_of_a_job_with_expectations_is_not_audited(settings) -> None:
    from statelib import expect  # noqa: PLC0415

    impossible = expect("expect_table_row_count_to_equal", value=-1)
    found = estimate(replace(job(), expectations={"some": (impossible,)}), settings, Asked())
    assert found.prediction.cpu_seconds_by_part["audit"] > 0


@pytest.mark.parametrize(
    ("asked", "until", "message"),
    [
        (Asked(records=1, size_bytes=1), None, "more than one amount of history"),
        (Asked(records=1), 10, "more than one amount of history"),
        (Asked(records=0), None, "--records must be above 0"),
        (Asked(size_bytes=-1), None, "--bytes must be above 0"),
    ],
)
def test_amounts_that_say_nothing_are_refused(asked, until, message, settings) -> None:
    with pytest.raises(ConfigurationError, match=message):
        estimate(job(), settings.model_copy(update={"until": until}), asked)


def test_a_source_that_is_not_archived_is_named(settings) -> None:
    builder = StreamsBuilder("other")
    builder.stream("nowhere").to("out")
    with pytest.raises(ConfigurationError, match="nowhere"):
        estimate(Job("other", builder.build()), settings, Asked())


def test_more_of_nothing_is_refused(tmp_path) -> None:
    pipeline = Pipeline(tmp_path, job().topology, "kept")
    pipeline.archive("events", [], (pa.string(), VALUE), partitions=2)
    settings = load_settings({"warehouse": str(tmp_path / "warehouse"), "state_dir": tmp_path / "s"}, environ={})
    assert estimate(job(), settings, Asked()).prediction.records == 0
    with pytest.raises(ConfigurationError, match="the sources hold no records to scale up"):
        estimate(job(), settings, Asked(records=5))
