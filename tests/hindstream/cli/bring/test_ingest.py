"""Files become a topic from the command line: looked at first, loaded once, and what is wrong with a row is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.command import hindstream
from tests.ingest.iceberg import catalog_in

if TYPE_CHECKING:
    from pathlib import Path

ROWS = """event id,Site,temp °C,measured at
e1,oslo,1.5,2021-01-01 05:00
e2,rome,2,2021-01-01 04:00
e2,rome,2,2021-01-01 04:00
e3,oslo,n/m,2021-01-01 06:00
"""
OPTIONS = ("--key", "Site", "--timestamp", "measured at", "--partitions", "2")
AS_NUMBER = ("--type", "temp °C=double")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def test_a_look_writes_nothing_and_says_what_would_come(lake: Path) -> None:
    looked = hindstream("ingest", "temps", "*.csv", *OPTIONS, "--dry-run", cwd=lake)
    assert looked.returncode == 0, looked.stderr
    for said in ("1 new file", "temp °C", "string", "out of order", "50.0 %, by up to 1 h", "2 distinct, most often"):
        assert said in looked.stdout
    assert "Next: hindstream ingest temps '*.csv' --key Site --timestamp 'measured at' --partitions 2" in looked.stdout
    assert not (lake / "warehouse").exists()
    told = hindstream("ingest", "temps", "*.csv", *OPTIONS, "--dry-run", "--output", "json", cwd=lake)
    profile = json.loads(told.stdout)
    assert (profile["rows"], profile["sampled"], profile["repeated_rows"], profile["ids"]) == (4, 4, 1, [])
    assert profile["times"]["disordered"] == 2


def test_a_bad_row_ends_the_load_or_is_set_apart(lake: Path) -> None:
    ended = hindstream("ingest", "temps", "*.csv", *OPTIONS, *AS_NUMBER, cwd=lake)
    assert ended.returncode == 65
    assert f"file {lake}/a.csv, row 4, field temp °C" in ended.stderr
    assert "--on-bad-record quarantine" in ended.stderr
    apart = hindstream("ingest", "temps", "*.csv", *OPTIONS, *AS_NUMBER, "--on-bad-record", "quarantine", cwd=lake)
    assert apart.returncode == 0, apart.stderr
    assert "1, in temps-quarantine" in apart.stdout
    shown = hindstream("show", "temps-quarantine", "--output", "json", cwd=lake)
    assert "'n/m' is no double" in shown.stdout


def test_the_next_call_does_with_bad_rows_as_the_one_before(lake: Path) -> None:
    options = (*OPTIONS, *AS_NUMBER, "--on-bad-record", "quarantine")
    assert hindstream("ingest", "temps", "*.csv", *options, cwd=lake).returncode == 0
    (lake / "b.csv").write_text(ROWS, encoding="utf-8")
    again = hindstream("ingest", "temps", cwd=lake)
    assert again.returncode == 0, again.stderr
    assert "1, in temps-quarantine" in again.stdout
    (lake / "c.csv").write_text(ROWS, encoding="utf-8")
    ended = hindstream("ingest", "temps", "--on-bad-record", "fail", cwd=lake)
    assert ended.returncode == 65


def test_timestamps_of_another_format_are_not_loaded_by_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at,n,loyalty\n31.12.2020 10:00,1,00123\n30.12.2020 10:00,2,04567\n")
    looked = hindstream("ingest", "t", "a.csv", "--timestamp", "at", "--dry-run", cwd=tmp_path)
    assert "Next: say how timestamps are written, such as --timestamp-format '%d.%m.%Y %H:%M'" in looked.stdout
    assert "loyalty=double" not in looked.stdout


def test_a_folder_without_files_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = hindstream("ingest", "t", "empty", "--timestamp", "at", cwd=tmp_path)
    assert "the folder holds no files" in ended.stderr


def test_the_next_call_takes_what_is_new_with_the_same_options(lake: Path) -> None:
    (lake / "jobs.py").write_text(
        "from hindstream import LakeTopic\n"
        f"temps = LakeTopic('temps', {str(lake / '*.csv')!r}, key='Site', timestamp='measured at', partitions=2)\n",
        encoding="utf-8",
    )
    first = hindstream("ingest", "jobs.py:temps", "--output", "json", cwd=lake)
    assert json.loads(first.stdout)["records"] == 4, first.stderr
    (lake / "b.csv").write_text(ROWS, encoding="utf-8")
    again = hindstream("ingest", "temps", cwd=lake)
    assert "1 loaded before" in again.stdout
    assert "nothing is new. 2 files had been loaded before" in hindstream("archive", "jobs.py:temps", cwd=lake).stdout
    both = hindstream("ingest", "jobs.py:temps", "--key", "Site", cwd=lake)
    assert (both.returncode, "leave the other options out" in both.stderr) == (78, True)


def test_a_topic_without_a_source_is_asked_for_one(tmp_path: Path) -> None:
    asked = hindstream("ingest", "temps", cwd=tmp_path)
    assert asked.returncode == 78
    assert "name files: hindstream ingest temps 'data/*.csv' --timestamp FIELD" in asked.stderr


def test_a_table_of_a_catalog(tmp_path: Path) -> None:
    """As pyiceberg is configured: here by the environment."""
    with pytest.MonkeyPatch.context() as patch:
        catalog = catalog_in(tmp_path / "lake", patch)
        rows = pa.table({"site": ["oslo", "rome"], "at": [1_600_000_000_000, 1_600_000_000_001], "t": [1, 2]})
        catalog.create_table("shop.temps", rows.schema).append(rows)
        options = ("ingest", "temps", "iceberg:lake.shop.temps", "--key", "site", "--timestamp", "at")
        looked = hindstream(*options, "--dry-run", cwd=tmp_path)
        assert "1 new file" in looked.stdout, looked.stderr
        done = hindstream(*options, "--output", "json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["records"] == 2
        assert "nothing is new" in hindstream("ingest", "temps", cwd=tmp_path).stdout


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_a_query(lake: Path) -> None:
    """A look, a load, the same again, and one that cannot be run."""
    (lake / "a.jsonl").write_text('{"site": "oslo", "at": 1600000000000, "t": 1}\n', encoding="utf-8")
    query = f"sql:SELECT * FROM json.`{lake}/a.jsonl`"
    looked = hindstream("ingest", "temps", query, "--key", "site", "--timestamp", "at", "--dry-run", cwd=lake)
    assert "1 new file" in looked.stdout, looked.stderr
    assert "about 1 row" in looked.stdout
    assert f"Next: hindstream ingest temps '{query}' --key site --timestamp at" in looked.stdout
    assert not (lake / "warehouse").exists()
    done = hindstream("ingest", "temps", query, "--key", "site", "--timestamp", "at", "--output", "json", cwd=lake)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == 1
    assert "nothing is new" in hindstream("ingest", "temps", cwd=lake).stdout
    wrong = hindstream("ingest", "temps", query + " WHERE nowhere", cwd=lake)
    assert (wrong.returncode, "with name `nowhere` cannot be resolved" in wrong.stderr) == (78, True)
    assert "Traceback" not in wrong.stderr
