"""Modules and files that code and pages name, in docstrings, comments and messages too, are there."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.conftest import ROOT
from tests.docs.named import is_python

PYTHON = re.compile(r"`~?((?:benchmarks|dags|hindstream|spark_jobs|statelib|tests)(?:\.\w+)+)(?:\(\))?`")
FOLDERS = r"(?:benchmarks|dags|docker|docs|examples|hindstream|spark_jobs|statelib|tests)"
PATH = re.compile(rf"(?<![\w./$<>{{}}-]){FOLDERS}/[\w./-]*\.(?:html|java|j2|md|properties|py|sql|toml|xml|yml)\b")
ELSEWHERE = {
    "hindstream.toml",  # a user's settings
    "dags/__init__.py",  # a user's package
    "docker/dags/clicks.py",  # what a user adds
    "dags/orders.py",  # a user's, of docs/airflow.md
    "dags/orders_by_day.py",  # of a new project
    "tests.golden.scenarios.some_name",  # an example
}
OF_WHAT_IS_NOT_THERE = ("tests/docs/test_", "tests/hindstream/cli/replay/test_backfill.py", "tests/lint/test_")
TEXTS = {".java", ".j2", ".md", ".py", ".toml", ".xml", ".yml", ""}
TRACKED = [
    name
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    if (ROOT / name).suffix in TEXTS and name != "CHANGELOG.md" and not name.startswith(OF_WHAT_IS_NOT_THERE)
]


IN_FILES = {
    key
    for package in ("hindstream", "statelib")
    for file in (ROOT / package).rglob("*.py")
    for key in re.findall(r'"(hindstream(?:\.\w+)+)"', file.read_text(encoding="utf-8"))
}
"""Names of what is kept in tables and files, like ``hindstream.format``."""


def named_in(text: str) -> set[str]:
    return {*PYTHON.findall(text), *PATH.findall(text)} - ELSEWHERE - IN_FILES


def is_there(named: str) -> bool:
    return (ROOT / named).exists() if "/" in named else is_python(named)


def test_what_is_named_anywhere_is_there() -> None:
    places: dict[str, list[str]] = {}
    for file in TRACKED:
        for named in named_in((ROOT / file).read_text(encoding="utf-8")):
            places.setdefault(named, []).append(file)
    assert len(places) > 200
    assert {named: files for named, files in places.items() if not is_there(named)} == {}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("`statelib.topics.archive.TopicArchive.ensure`", True),
        ("``hindstream.spark.run_slice()``", True),
        ("`hindstream.spark.run_slices`", False),
        ("`dags.factory`", False),
        ("`statelib.job.jobs`", False),
        ('a link ("docs/concepts.md")', True),
        ("see spark_jobs/session.py", False),
    ],
)
def test_a_wrong_name_is_found(text: str, right: bool) -> None:
    (named,) = named_in(text)
    assert is_there(named) is right
