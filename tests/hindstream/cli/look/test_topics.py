"""``hindstream topics``: tables for a person, JSON for a program, and what it may not load."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest

from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from tests.command import hindstream
from tests.terminal import needs_terminals
from tests.topics.data import topic_records

VALUE = pa.struct([("id", pa.string()), ("amount", pa.float64()), ("tags", pa.list_(pa.int32()))])


@pytest.fixture
def folder(tmp_path):
    for topic, times in (("flights", [1000, 3000, 2000]), ("weather", [5])):
        archive = TopicArchive.create(str(tmp_path / "w" / "topics" / topic), topic_schema(pa.string(), VALUE), 2)
        with archive.writer(0, attempt="a") as writer:
            writer.write(topic_records(range(len(times)), times))
        archive.commit(writer.close(), app_id="x", app_version=1)
    return tmp_path


def test_every_topic_has_a_line(folder) -> None:
    result = hindstream("topics", "--warehouse", "w", cwd=folder)
    assert result.returncode == 0, result.stderr
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "unknown" in lines["flights"]
    assert "none" in lines["weather"]
    assert "string: {id, amount, tags}" in lines["weather"]
    assert "hindstream topics TOPIC" in result.stdout


def test_a_narrow_terminal_shows_every_name_and_number(folder) -> None:
    needs_terminals()
    shown = subprocess.run(
        ["script", "-qec", f"{sys.executable} -m hindstream topics --warehouse w", "/dev/null"],
        cwd=folder, env={**os.environ, "COLUMNS": "80", "TERM": "dumb"}, capture_output=True, text=True, check=True,
        stdin=subprocess.DEVNULL,
    ).stdout  # fmt: skip
    assert all(f" {word} " in shown for word in ("flights", "weather", "unknown", "1970-01-01"))
    assert "…" not in shown


def test_a_topic_in_detail_is_exact(folder) -> None:
    result = hindstream("topics", "flights", "--warehouse", "w", cwd=folder)
    assert "flights, version 1 of its archive" in result.stdout
    assert "    amount: double" in result.stdout
    (first,) = [line.split() for line in result.stdout.splitlines() if line.split()[:1] == ["0"]]
    assert first[:4] == ["0", "3", "0", "3"]
    assert first[-6:-4] == ["1", "1"]
    assert first[-4] == "s", "by up to 1 s"


def test_json_is_an_object_a_line(folder) -> None:
    flights, weather = map(
        json.loads, hindstream("topics", "--warehouse", "w", "--output", "json", cwd=folder).stdout.splitlines()
    )
    assert (flights["topic"], weather["topic"]) == ("flights", "weather")
    assert flights["late_records"] == {"least": 0, "most": 2}
    assert "by_partition" not in flights
    of_one = ("topics", "flights", "--warehouse", "w", "--output", "json")
    found = json.loads(hindstream(*of_one, cwd=folder).stdout)
    assert found["late_records"] == {"least": 1, "most": 1}
    assert found["max_late_ms"] == {"least": 1000, "most": 1000}
    assert [one["records"] for one in found["by_partition"]] == [3, 0]
    found = json.loads(hindstream(*of_one, "--no-scan", cwd=folder).stdout)
    assert found["late_records"] == {"least": 0, "most": 2}


def test_what_is_not_there_is_told(folder) -> None:
    result = hindstream("topics", "nothing", "--warehouse", "w", cwd=folder)
    assert result.returncode == 78
    assert "there is no topic archive" in result.stderr
    result = hindstream("topics", "--warehouse", "ww", cwd=folder)
    assert (result.returncode, result.stdout) == (78, "")
    assert "there is no such warehouse" in result.stderr
    assert not (folder / "ww").exists(), "who looks makes nothing"
    (folder / "empty").mkdir()
    assert "There are no topics in" in hindstream("topics", "--warehouse", "empty", cwd=folder).stdout


def test_neither_spark_nor_pandas_nor_the_stores_are_loaded(folder) -> None:
    code = (
        "import sys; from hindstream.cli.look.topics import print_topics;"
        "from statelib.settings.settings import Settings;"
        "print_topics(Settings(warehouse='w'), 'json'); print(*sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environ, capture_output=True, text=True, check=True
    ).stdout
    loaded = {name.partition(".")[0] for name in shown.splitlines()[-1].split()}
    assert {"pyspark", "pandas", "numba", "rocksdict", "great_expectations"}.isdisjoint(loaded)
