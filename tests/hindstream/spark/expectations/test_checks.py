"""Suites: names of columns, what every job is audited for, and the table of files."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from hindstream.spark.expectations.checks import files_table, topic_suite
from hindstream.spark.expectations.flat_tables import flat_columns
from statelib.documents.manifests import CommittedTask, SinkFile, StateManifest, TaskPosition
from statelib.dsl import StreamsBuilder
from statelib.job.job import Job, expect
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.windows.definition import TimeWindows
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema

SCHEMA = topic_schema(pa.string(), pa.struct([("n", pa.int64()), ("nn", pa.int64())]))
WINDOWED = topic_schema(
    pa.struct([("key", pa.string()), ("window_start", pa.timestamp("ms", "UTC"))]), pa.struct([("n", pa.int64())])
)


def job(*expectations: object, suppressed: Suppressed | None = None) -> Job:
    builder = StreamsBuilder("job")
    table = (
        builder.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(timedelta(hours=1))).count()
    )
    if suppressed:
        table = table.suppress(suppressed)
    table.to_stream().peek(lambda columns: None).to("out")
    return Job("job", builder.build(), {"out": expectations})


def parameters(declared: Job, schema: pa.Schema) -> dict[str, object]:
    return dict(topic_suite(declared, "out", schema).checks[-1].kwargs)


def test_dotted_names_become_the_frames() -> None:
    one = job(expect("e", column="value.n", min_value=1))
    pair = job(expect("e", column_A="value.n", column_B="value.nn"))
    several = job(expect("e", column_list=["key", "value.n"]))
    assert parameters(one, SCHEMA) == {"column": "value__n", "min_value": 1}
    assert parameters(pair, SCHEMA) == {"column_A": "value__n", "column_B": "value__nn"}
    assert parameters(several, SCHEMA) == {"column_list": ["key", "value__n"]}


def test_dotted_names_in_conditions_become_the_frames() -> None:
    condition = 'col("value.n") > 1 and col("value.nn") == 2.5'
    found = parameters(job(expect("e", column="key", row_condition=condition)), SCHEMA)
    assert found["row_condition"] == 'col("value__n") > 1 and col("value__nn") == 2.5'


def test_other_text_stays_as_it_is() -> None:
    found = parameters(job(expect("e", column="key", regex=r"value.n")), SCHEMA)
    assert found["regex"] == "value.n"


def test_a_person_sees_what_was_declared() -> None:
    assert topic_suite(job(expect("e", column="value.n")), "out", SCHEMA).checks[-1].shown == {"column": "value.n"}


def unique_columns(declared: Job) -> list[object]:
    suite = topic_suite(declared, "out", WINDOWED)
    return [c.shown["column_list"] for c in suite.checks if c.type == "expect_compound_columns_to_be_unique"]


def test_final_results_are_one_for_each_key_and_window() -> None:
    final = Suppressed.until_window_closes(BufferConfig.unbounded())
    limited = Suppressed.until_time_limit(timedelta(hours=1), BufferConfig.unbounded())
    assert unique_columns(job(suppressed=final)) == [["partition", "offset"], ["key.key", "key.window_start"]]
    assert unique_columns(job(suppressed=limited)) == [["partition", "offset"]]
    assert unique_columns(job()) == [["partition", "offset"]]


def test_files_go_on_where_the_last_commit_ended(tmp_path: object) -> None:
    warehouse = Storage(str(tmp_path))
    archive = TopicArchive.create(warehouse.uri("topics/out"), SCHEMA, 1)
    columns = pa.schema([SCHEMA.field(name) for name in ("key", "value", "timestamp")])
    for n in (1, 2):
        rows = [{"key": "k", "value": {"n": n, "nn": 1}, "timestamp": n}] * 3
        append_records(archive, pa.Table.from_pylist(rows, columns), attempt=f"a{n}", app_id="t", app_version=n)
    sinks = [SinkFile(topic="out", file=file) for file in archive.refresh().files(0)]
    position = TaskPosition(task_id="0_0", commit=1, fingerprint="f", sink_offsets={"out/0": 2})
    before = {"0_0": CommittedTask(state=StateManifest(), position=position)}
    frame = files_table(warehouse, sinks, {"out": SCHEMA}, before).to_pydict()
    assert list(frame["first_offset"]) == [0, 3]
    assert list(frame["expected_first_offset"]) == [2, 3]
    assert list(frame["rows"]) == list(frame["offsets"]) == [3, 3]
    assert list(frame["columns"]) == list(frame["expected_columns"])
    assert len(flat_columns(SCHEMA)) == 6
