"""Copies of topics at the beginning of runs, several of which are active in a backfill."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from hindstream.airflow.archive import copy_topics
from hindstream.airflow.runner import Runner
from hindstream.runs import open_warehouse
from statelib.commits.archives import open_archive
from statelib.errors.fault_points import observed
from tests.hindstream.spark.orders import make_settings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.airflow

FILE = """
from hindstream import Job, LakeTopic, StreamsBuilder

topics = [LakeTopic("clicks", {source!r}, key="user", timestamp="at")]
builder = StreamsBuilder("clicks")
builder.stream("clicks").to("all-clicks")
job = Job("clicks", builder.build())
"""


def test_a_run_looks_again_where_another_was_quicker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Both have seen the same new files; each record is there once, and told of once."""
    (tmp_path / "clicks.csv").write_text("user,at,page\na,2024-01-01,/\nb,2024-01-02,/docs\n")
    (tmp_path / "job.py").write_text(FILE.format(source=str(tmp_path / "clicks.csv")))
    settings = make_settings(tmp_path)
    given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
    runner, topics = Runner(f"{tmp_path / 'job.py'}:job", given, None), f"{tmp_path / 'job.py'}:topics"
    others: list[list[int]] = []

    def another(step: str) -> None:
        if step == "ingest.before-account" and not others:
            others.append([])
            others[0] += [event.extra["records"] for event in copy_topics(runner, topics)]

    with observed(another), caplog.at_level(logging.INFO):
        assert copy_topics(runner, topics) == []
    assert others == [[2]]
    assert "another load of the topic was quicker (topic clicks); looking again" in caplog.text
    archive = open_archive(open_warehouse(settings), "clicks")
    assert sum(archive.reader(partition).read_all().num_rows for partition in range(archive.partitions)) == 2
