"""Any 64-bit number as a time, from an archive to the pages: the right answer, or a bad record that is named.

Numbers of all sizes, those around every bound, and a time of today in seconds, microseconds and nanoseconds.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from hindstream.cli.look.inspect import print_rows
from hindstream.cli.look.status import print_status
from hindstream.report.write import write_job_report, write_run_report
from statelib import BufferConfig, Job, Materialized, Stores, StreamsBuilder, Suppressed, TimeWindows, count
from statelib.columns.times import LAST_TIME_MS, end_of_windows, instant_text
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.layout import quarantine_topic, topic_path
from statelib.errors.kinds import InputError
from statelib.settings.settings import Settings
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.effort import examples
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE, GRACE, RETENTION = 60_000, 30_000, 120_000
TODAY_S = 1_700_000_000
AT = pa.timestamp("ms", "UTC")
VALUE = pa.struct([("at", AT), ("n", pa.int64())])
BOUNDS = [0, 253_402_300_800_000, LAST_TIME_MS, 2**63 - 1, -(2**63) + 1, TODAY_S, *(TODAY_S * 10**n for n in (3, 6, 9))]
ANY = st.integers(-(2**63), 2**63 - 1)
NEAR = st.builds(
    lambda bound, by: min(max(bound + by, -(2**63)), 2**63 - 1), st.sampled_from(BOUNDS), st.integers(-200_000, 200_000)
)
SANE = st.builds(lambda by: TODAY_S * 1000 + by, st.integers(-200_000, 200_000))
TIMES = st.lists(st.tuples(st.one_of(SANE, NEAR, NEAR, ANY), st.one_of(SANE, NEAR, ANY)), min_size=1, max_size=6)


def job() -> Job:
    builder = StreamsBuilder("times")
    windows = TimeWindows.of_size_and_grace(timedelta(milliseconds=SIZE), timedelta(milliseconds=GRACE))
    events = builder.stream("events")
    counted = events.group_by_key().windowed_by(windows).aggregate({"n": count()}, Materialized.as_("counts"))
    counted.to_stream().to("counted")
    counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("final")
    events.deduplicate_by_key_value("n", timedelta(minutes=1)).to("unique")
    store = Stores.persistent_versioned_key_value_store("versions", timedelta(milliseconds=RETENTION))
    builder.table("again", Materialized.as_(store)).to_stream().to("versions")
    return Job("times", builder.build())


def archive(pipeline: Pipeline, topic: str, times: Sequence[tuple[int, int]]) -> None:
    uri = pipeline.warehouse.uri(topic_path(topic))
    found = TopicArchive.ensure(uri, topic_schema(pa.string(), VALUE), 1, topic=topic)
    at = pa.array([value for _, value in times], pa.int64()).cast(AT)
    numbers = pa.array(range(len(times)), pa.int64())
    records = {
        "key": pa.array(["k"] * len(times)),
        "value": pa.StructArray.from_arrays([at, numbers], fields=list(VALUE)),
        "timestamp": pa.array([time for time, _ in times], pa.int64()).cast(AT),
    }
    append_records(found, pa.table(records), attempt="a", app_id="test", app_version=1)


def ints(pipeline: Pipeline, topic: str) -> list[dict[str, Any]]:
    """The rows of a topic, with times in ms."""
    if open_archive_if_present(pipeline.warehouse, topic) is None:
        return []
    found = open_archive(pipeline.warehouse, topic)
    table = pa.concat_tables([found.reader(partition).read_all() for partition in range(found.partitions)])
    table = table.combine_chunks()
    return [{"timestamp": time, "key": key, "value": value} for time, key, value in zip(
        table["timestamp"].cast(pa.int64()).to_pylist(), *(_ints(table[name]) for name in ("key", "value")), strict=True
    )]  # fmt: skip


def _ints(column: pa.ChunkedArray) -> list[Any]:
    type_ = column.type
    if pa.types.is_struct(type_):
        fields = [(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in type_]
        column = column.cast(pa.struct(fields))
    return list(column.to_pylist())


def expected_counts(times: list[int]) -> list[tuple[int, int, int, int]]:
    """(window start, end, count, timestamp) of each update, by the rule of `docs/semantics.md`."""
    clock, counts, latest, updates = -1, Counter[int](), {}, []
    for time in times:
        clock = max(clock, time)
        start = time - time % SIZE
        if start + SIZE > clock - GRACE:
            counts[start] += 1
            latest[start] = max(latest.get(start, 0), time)
            updates.append((start, min(start + SIZE, LAST_TIME_MS), counts[start], latest[start]))
    return updates


@example([(TODAY_S * 10**9, 0)])
@example([(TODAY_S * 10**6, TODAY_S * 10**6), (TODAY_S * 1000, 0)])
@example([(0, 2**63 - 1)])
@example([(LAST_TIME_MS, LAST_TIME_MS), (LAST_TIME_MS, -LAST_TIME_MS)])
@examples(8, campaign=2_000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TIMES)
def test_the_right_answer_or_a_bad_record(capsys: pytest.CaptureFixture[str], times: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        topology = job().topology
        pipeline = Pipeline(Path(folder), topology, "times", on_bad_record="quarantine", on_late_record="topic")
        far = [row for row, both in enumerate(times) if any(abs(time) > LAST_TIME_MS for time in both)]
        if far:
            with pytest.raises(InputError, match="cannot be archived") as raised:
                archive(pipeline, "events", times)
            assert raised.value.place == {"topic": "events", "partition": 0, "offset": far[0]}
            times = [both for row, both in enumerate(times) if row not in far]
        for topic in ("events", "again"):
            archive(pipeline, topic, times)
        cut = max((time for time, _ in times), default=0) // 2
        for until in (cut, None):
            pipeline.run(until)
        check_topics(pipeline, times)
        if times:
            check_pages(pipeline, Path(folder), capsys)


def check_topics(pipeline: Pipeline, times: list[tuple[int, int]]) -> None:
    good = [(number, time, value) for number, (time, value) in enumerate(times) if time >= 0]
    updates = [
        (row["key"]["window_start"] // 1000, row["key"]["window_end"] // 1000, row["value"]["n"], row["timestamp"])
        for row in ints(pipeline, "counted")
    ]
    assert updates == expected_counts([time for _, time, _ in good])
    unique = [(row["value"]["n"], row["timestamp"], row["value"]["at"] // 1000) for row in ints(pipeline, "unique")]
    assert unique == good
    aside = ints(pipeline, quarantine_topic("times"))
    assert sorted(row["value"]["timestamp"] for row in aside) == sorted([t for t, _ in times if t < 0] * 2)


def check_pages(pipeline: Pipeline, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(warehouse=pipeline.warehouse.uri(""), state_dir=folder / "local")
    print_status("times", settings)
    for run in ("00000001-1",):
        write_run_report(pipeline.warehouse, job(), run)
    write_job_report(pipeline.warehouse, job())
    last = {row["key"]["window_start"] // 1000: row["value"]["n"] for row in ints(pipeline, "counted")}
    capsys.readouterr()
    print_rows("times", "counts", None, None, None, settings, output="json")
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    for row in shown:
        starts = [start for start in last if instant_text(start) == row["window_start"]]
        assert len(starts) == 1, "the window is shown as what it is"
        assert row["window_end"] == instant_text(int(end_of_windows(starts[0], SIZE)))
        assert row["value"]["n"] == last[starts[0]]
    for store in ("counts", "versions"):
        for form in ("table", "csv"):
            print_rows("times", store, None, None, None, settings, output=form, history=store == "versions")
    assert "-9696" not in capsys.readouterr().out
