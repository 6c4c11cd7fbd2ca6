"""A project for a topic of any shape: its test passes, its job runs over the topic, its expectations fit."""

from __future__ import annotations

import ast
import csv
import importlib.util
import itertools
import json
import sys
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.projects.project import TEMPLATES, make_project
from hindstream.projects.shape import shape_of
from hindstream.spark.expectations.plan_time import check_expectations
from statelib import ConfigurationError, LakeTopic, load_job
from statelib.commits.archives import open_archive
from statelib.job.lake_topic import load_lake_topic
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import TIMESTAMP, topic_schema
from tests.command import hindstream, run
from tests.effort import one_in
from tests.hindstream.projects.topics import RECORDS, TOPICS, make_topic
from tests.ingest.lake import load, write_file
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough


def its_tests(folder: Path):
    """The functions of the project's test, which is loaded as pytest does."""
    (file,) = (folder / "tests").glob("test_*.py")
    spec = importlib.util.spec_from_file_location(f"of_project_{abs(hash(str(file)))}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [value for name, value in vars(module).items() if name.startswith("test_")]


@pytest.mark.parametrize(("topic", "template"), one_in(4, itertools.product(TOPICS, TEMPLATES)))
def test_its_test_passes_and_its_job_runs(tmp_path, topic, template) -> None:
    shape = shape_of(make_topic(tmp_path / "warehouse", topic))
    if template == "table" and not shape.has_keys:
        with pytest.raises(ConfigurationError, match="a topic without keys is no table"):
            make_project(tmp_path / "p", template, shape)
        return
    made = make_project(tmp_path / "p", template, shape, warehouse=str(tmp_path / "warehouse"))
    (test,) = its_tests(made.folder)
    test()
    job = load_job(str(made.folder / made.reference))
    pipeline = Pipeline(tmp_path, job.topology, job.name, warehouse=str(tmp_path / "warehouse"))
    assert check_expectations(job, pipeline.warehouse) == sum(map(len, job.expectations.values()))
    pipeline.run(end_of_input="seal")
    if topic == "empty":
        return
    written = pipeline.output(made.sink)
    assert written
    if template == "aggregation":
        assert sum(value["records"] for _, _, _, value, _ in written) == RECORDS, "grace is long enough for all"


@pytest.mark.parametrize("topic", TOPICS)
def test_every_file_is_what_it_is_called(tmp_path, topic) -> None:
    declared = {
        "source": ["data/*.csv", "s3://lake/x"],
        "value": ["a", "b"],
        "types": {"a b": "string"},
        "partitions": 2,
    }
    shape = shape_of(make_topic(tmp_path / "w", topic))
    made = make_project(tmp_path / "p", "aggregation", shape, warehouse="w", declaration=declared)
    assert load_lake_topic(str(made.folder / made.lake)) == LakeTopic(
        topic, (str(tmp_path / "p/data/*.csv"), "s3://lake/x"), value=("a", "b"), types={"a b": "string"}, partitions=2
    )
    for file in made.files:
        text = (made.folder / file).read_text()
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert "{{" not in text
        if file.endswith(".py"):
            ast.parse(text)


def choices(tmp_path, topic):
    return shape_of(make_topic(tmp_path, topic))


def test_choices_are_sensible_and_said(tmp_path) -> None:
    odd = choices(tmp_path, "odd")
    assert (odd.number, odd.id, odd.group_by, odd.has_keys) == (("dep delay",), ("order.id",), None, True)
    assert odd.reasons["group"] == "Records are grouped by the topic's key."
    assert odd.reasons["number"] == "dep delay is added up."
    without = choices(tmp_path, "odd-without-keys")
    assert without.group_by == ("x-y",)
    nested = choices(tmp_path, "nested")
    assert (nested.number, nested.id) == (("basket", "total price"), ("customer", "eventId"))
    filled = choices(tmp_path, "nulls-only")
    assert (filled.number, filled.id) == (("n",), None)
    assert choices(tmp_path, "plain.numbers").number == ()
    assert choices(tmp_path, "bytes-without-keys").number is None
    assert choices(tmp_path, "no-fields-to-use").reasons["group"].startswith("The topic has no keys, and no field")


def test_a_registry_of_the_topics_files_is_declared_too(tmp_path) -> None:
    declared = {"source": "s3://lake/x", "registry": "http://registry:8081", "envelope": "debezium"}
    made = make_project(tmp_path / "p", "aggregation", choices(tmp_path, "odd"), warehouse="w", declaration=declared)
    topic = load_lake_topic(str(made.folder / made.lake))
    assert (topic.source, topic.registry.url, topic.envelope) == ("s3://lake/x", "http://registry:8081", "debezium")


def test_what_comes_again_counts_once_if_little_does(tmp_path) -> None:
    shape = replace(choices(tmp_path, "odd"), repeats=0.02)
    made = make_project(tmp_path / "p", "aggregation", shape, warehouse="w")
    (test,) = its_tests(made.folder)
    test()
    assert '.deduplicate_by_key_value(pc.field("value", "order.id")' in (made.folder / made.files[3]).read_text()


@pytest.mark.parametrize(("ids", "dropped"), [(90, False), (85, True), (9, False)])
def test_ids_that_most_records_share_are_no_ids_of_events(tmp_path, ids, dropped) -> None:
    value = pa.struct([("customer_id", pa.int64()), ("amount", pa.float64())])
    archive = TopicArchive.create(str(tmp_path / "t"), topic_schema(pa.string(), value), 1)
    rows = [{"key": "k", "value": {"customer_id": n % ids, "amount": 1.0}, "timestamp": n * 1000} for n in range(90)]
    columns = pa.schema([("key", pa.string()), ("value", value), ("timestamp", TIMESTAMP)])
    append_records(archive, pa.Table.from_pylist(rows, columns), attempt="a", app_id="t", app_version=1)
    shape = shape_of(archive.refresh())
    assert bool(shape.repeats) is dropped
    assert ("repeats" in shape.reasons) is dropped


def test_a_topic_of_changes_is_a_table_of_rows(tmp_path) -> None:
    random = Random(7)
    value = pa.struct([("status", pa.string()), ("amount", pa.int64())])
    archive = TopicArchive.create(
        str(tmp_path / "w/topics/changes"), topic_schema(pa.string(), value), 1, topic="changes"
    )
    rows, latest = [], {}
    for n in range(400):
        key, row = (
            f"k{random.randrange(40)}",
            {"status": random.choice(["open", "paid"]), "amount": random.randrange(100)},
        )
        latest[key] = row if random.random() < 0.8 else None
        rows.append({"key": key, "value": latest[key], "timestamp": n * 1000})
    columns = pa.schema([("key", pa.string()), ("value", value), ("timestamp", TIMESTAMP)])
    append_records(archive, pa.Table.from_pylist(rows, columns), attempt="a", app_id="t", app_version=1)
    shape = shape_of(archive.refresh())
    made = make_project(tmp_path / "p", None, shape, warehouse=str(tmp_path / "w"))
    assert (made.template, made.sink) == ("table", "changes-by-status")
    job = load_job(str(made.folder / made.reference))
    pipeline = Pipeline(tmp_path, job.topology, job.name, warehouse=str(tmp_path / "w"))
    pipeline.run(end_of_input="seal")
    found = {key: value for _, _, key, value, _ in pipeline.output(made.sink)}
    there = [row for row in latest.values() if row is not None]
    amounts = {status: [row["amount"] for row in there if row["status"] == status] for status in ("open", "paid")}
    assert found == {status: {"rows": len(of), "total": sum(of)} for status, of in amounts.items()}


@pytest.mark.parametrize("template", TEMPLATES)
def test_keys_that_are_not_where_kafka_puts_them_are_repartitioned(tmp_path, template) -> None:
    rows = [{"k": f"k{n % 5}", "amount": 1.0, "at": n * 1000, "p": n % 5 % 2, "o": n} for n in range(90)]
    write_file(tmp_path / "a.jsonl", rows)
    options = {"value": "amount", "timestamp": "at", "timestamp_unit": "ms", "partition": "p", "offset": "o"}
    load(LakeTopic("misplaced", str(tmp_path / "a.jsonl"), key="k", **options), tmp_path / "w")
    shape = shape_of(open_archive(Storage(str(tmp_path / "w")), "misplaced"))
    made = make_project(tmp_path / "p", template, shape, warehouse=str(tmp_path / "w"))
    assert any("repartitioned first" in reason for reason in made.reasons)
    (test,) = its_tests(made.folder)
    test()
    job = load_job(str(made.folder / made.reference))
    pipeline = Pipeline(tmp_path, job.topology, job.name, warehouse=str(tmp_path / "w"))
    pipeline.run(end_of_input="seal")
    written = {"aggregation": 2 * 5, "deduplication": 5, "table": 90}  # windows and keys; keys; records
    assert len(pipeline.output(made.sink)) == written[template]


def test_records_that_come_twice_are_told_where_no_id_tells_them(tmp_path) -> None:
    value = pa.struct([("amount", pa.float64())])
    archive = TopicArchive.create(str(tmp_path / "t"), topic_schema(pa.string(), value), 1)
    rows = [{"key": "k", "value": {"amount": 1.0 * n}, "timestamp": n * 1000} for n in (1, 2, 2, 3)]
    columns = pa.schema([("key", pa.string()), ("value", value), ("timestamp", TIMESTAMP)])
    append_records(archive, pa.Table.from_pylist(rows, columns), attempt="a", app_id="t", app_version=1)
    assert shape_of(archive.refresh()).reasons["repeats"].startswith("25.0 % of the first records are like one before")


def test_an_id_may_end_in_a_hash_and_is_no_field_that_is_mostly_empty(tmp_path) -> None:
    value = pa.struct([("Ticket #", pa.string()), ("loyalty.id", pa.string())])
    archive = TopicArchive.create(str(tmp_path / "t"), topic_schema(pa.string(), value), 1)
    rows = [
        {"key": "k", "value": {"Ticket #": f"t{n % 88}", "loyalty.id": "1" if n == 5 else None}, "timestamp": n * 1000}
        for n in range(90)
    ]
    columns = pa.schema([("key", pa.string()), ("value", value), ("timestamp", TIMESTAMP)])
    append_records(archive, pa.Table.from_pylist(rows, columns), attempt="a", app_id="t", app_version=1)
    shape = shape_of(archive.refresh())
    assert (shape.id, shape.repeats > 0) == (("Ticket #",), True)


def test_grace_is_as_long_as_records_are_late(tmp_path) -> None:
    shape = choices(tmp_path, "odd")
    assert shape.window == (1, "minutes"), "fifteen hours are not twenty"
    assert shape.grace == (1, "hours")
    assert shape.reasons["times"] == "6 records are late, by up to 1,200 s: grace is 1 hour."
    empty = choices(tmp_path, "empty")
    assert (empty.grace, empty.reasons["times"].endswith("grace is 1 day.")) == ((1, "days"), True)


def test_nothing_is_written_over(tmp_path) -> None:
    made = make_project(tmp_path / "p", "aggregation")
    (made.folder / "README.md").write_text("mine")
    before = {path: path.read_bytes() for path in made.folder.rglob("*") if path.is_file()}
    with pytest.raises(ConfigurationError, match="there is such a file already"):
        make_project(tmp_path / "p", "deduplication")
    assert {path: path.read_bytes() for path in made.folder.rglob("*") if path.is_file()} == before
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "other.txt").write_text("stays")
    make_project(tmp_path / "q", "deduplication")
    (tmp_path / "r").write_text("a file")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        make_project(tmp_path / "r", "aggregation")


def test_a_name_that_is_taken_is_left_to_its_job(tmp_path) -> None:
    shape = replace(shape_of(make_topic(tmp_path / "w", "odd")), topic="odd topic")
    taken = {"odd-topic-once", "odd-topic-once-2"}
    assert make_project(tmp_path / "p", "deduplication", shape, taken=taken).sink == "odd-topic-once-3"


@pytest.mark.slow
def test_the_commands_make_a_project_that_runs(tmp_path) -> None:
    made = hindstream("init", "p", "--template", "deduplication", "--output", "json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    load = "hindstream ingest jobs/lake.py:orders"
    assert f"pytest && {load} && hindstream run jobs/orders_once.py:job" in made.stderr
    folder = tmp_path / "p"
    tried = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    assert tried.returncode == 0, tried.stdout
    assert "1 passed" in tried.stdout
    (dag,) = (folder / "dags").glob("*.py")
    parsed = run(sys.executable, "-W", "ignore", str(dag), cwd=folder, AIRFLOW_HOME=str(tmp_path / "airflow"))
    assert parsed.returncode == 0, parsed.stderr
    loaded = hindstream(*load.split()[1:], "--output", "json", cwd=folder)
    assert loaded.returncode == 0, loaded.stderr
    rows = [row for file in folder.glob("data/*.csv") for row in csv.DictReader(file.read_text().splitlines())]
    good = [row["order_id"] for row in rows if row["ordered_at"].startswith("202")]
    assert json.loads(loaded.stdout)["bad_rows"] == len(rows) - len(good) == 3
    replayed = hindstream("run", found["reference"], "--output", "json", cwd=folder)
    assert replayed.returncode == 0, replayed.stderr
    result = json.loads(replayed.stdout)
    assert (result["records_read"], result["records_written"]) == (len(good), {"orders-once": len({*good})})
    assert (folder / "warehouse" / "jobs" / "orders-once" / "reports" / "index.html").is_file()


@pytest.mark.long
@pytest.mark.slow
def test_a_project_of_odd_fields_runs_on_spark(tmp_path) -> None:
    make_topic(tmp_path / "warehouse", "odd-without-keys")
    asked = ("init", "p", "--from-topic", "odd-without-keys", "--warehouse", "warehouse")
    made = hindstream(*asked, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "grouped by x-y" in made.stdout
    replayed = hindstream("run", "jobs/odd_without_keys_by_minute.py:job", cwd=tmp_path / "p")
    assert replayed.returncode == 0, replayed.stderr
    storage = Storage(str(tmp_path / "warehouse"))
    archive = open_archive(storage, "odd-without-keys-by-minute")
    assert archive.rows > 40
    assert pa.types.is_struct(archive.schema.field("key").type)
