"""Where errors of functions come from that lie in a package that is installed."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from statelib import ConfigurationError, TopologyTestDriver
from statelib.errors.user_lines import Line, place_beside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

FUNCTIONS = '''
"""Functions of a job that is installed."""

from datetime import timedelta

from statelib import Processor, PunctuationType


def mapper(batch):
    raise RuntimeError("mapper")


class Constructed(Processor):
    def __init__(self):
        raise RuntimeError("Constructed")

    def process(self, record):
        pass


class Begun(Processor):
    def init(self, context):
        raise RuntimeError("Begun")

    def process(self, record):
        pass


class Called(Processor):
    def init(self, context):
        context.schedule(timedelta(seconds=1), PunctuationType.STREAM_TIME, self.call)

    def call(self, time_ms):
        raise RuntimeError("Called")

    def process(self, record):
        pass
'''
JOBS = '''
"""Topologies of a job that is installed."""

from statelib import Consumed, StreamsBuilder

from . import functions


def of(add):
    builder = StreamsBuilder("installed")
    add(builder)
    return builder.build()


def mapped():
    return of(lambda builder: builder.stream("in").map_values(functions.mapper).to("out"))


def keyed():
    return of(lambda builder: builder.stream("in").group_by(functions.mapper).count().to_stream().to("out"))


def of_table():
    return of(lambda builder: builder.table("in").filter(functions.mapper).to_stream().to("out"))


def timed():
    return of(lambda builder: builder.stream("in", Consumed().with_timestamp_extractor(functions.mapper)).to("out"))


def constructed():
    return of(lambda builder: builder.stream("in").process(functions.Constructed).to("out"))


def begun():
    return of(lambda builder: builder.stream("in").process(functions.Begun).to("out"))


def called():
    return of(lambda builder: builder.stream("in").process(functions.Called).to("out"))
'''


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module with the topologies, in a package below ``site-packages``."""
    places = tmp_path_factory.mktemp("python") / "site-packages"
    package = places / "installed_job"
    package.mkdir(parents=True)
    for name, text in {"__init__": "", "functions": FUNCTIONS, "jobs": JOBS}.items():
        (package / f"{name}.py").write_text(text)
    sys.path.insert(0, str(places))
    try:
        yield importlib.import_module("installed_job.jobs")
    finally:
        sys.path.remove(str(places))


@pytest.mark.parametrize(
    ("topology", "raised"),
    [
        ("mapped", "mapper"),
        ("keyed", "mapper"),
        ("of_table", "mapper"),
        ("timed", "mapper"),
        ("constructed", "Constructed"),
        ("begun", "Begun"),
        ("called", "Called"),
    ],
)
def test_an_installed_job_has_its_own_lines(jobs: ModuleType, tmp_path: Path, topology: str, raised: str) -> None:
    with pytest.raises(ConfigurationError, match=raised) as told:  # noqa: PT012 - while it is built, or in a slice
        driver = TopologyTestDriver(getattr(jobs, topology)(), tmp_path)
        topic = driver.create_input_topic("in")
        for seconds in (1, 5):
            topic.pipe_input("key", "value", seconds * 1000)
        driver.create_output_topic("out").read_records_to_list()
    lines = FUNCTIONS.splitlines()
    assert told.value.place["file"] == str(jobs.functions.__file__)
    assert lines[int(str(told.value.place["line"])) - 1].strip() == f'raise RuntimeError("{raised}")'


def test_where_no_line_of_the_package_has_raised_it_the_operators_is_told(jobs: ModuleType) -> None:
    operator = Line(str(jobs.__file__), 15)
    assert place_beside(operator, ValueError()) == operator._asdict()
    elsewhere = Line("/srv/jobs/flights.py", 7)
    assert place_beside(elsewhere, ValueError()) == elsewhere._asdict()
