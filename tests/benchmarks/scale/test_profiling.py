"""Where the time of a process goes: what is watched, and how it is taken apart."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.scale.imports import STANDARD, imported_ms
from benchmarks.scale.parts import AFTER_START, Span, Spent, parts, read_spans
from benchmarks.scale.profiling import Profile
from benchmarks.scale.spans import START

MODULE = """
import subprocess, time

def outer():
    time.sleep(0.1)
    Class().inner()
    spin(0.2)

def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

class Class:
    def inner(self):
        time.sleep(0.3)
        raise_in_vain()

def raise_in_vain():
    try:
        fail()
    except ValueError:
        pass

def fail():
    raise ValueError
"""
CHILD = """
import time
while time.process_time() < 0.3:
    pass
print(1, flush=True)
time.sleep(9)
"""
PROGRAM = """
import os, subprocess, sys
from benchmarks.scale.spans import clocks, watch
watched = sys.argv[1], "watched_module:outer", "watched_module:Class.inner", "watched_module:fail"
watch(*watched)
from watched_module import outer
watch(*watched)
outer()
child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdout=subprocess.PIPE)
child.stdout.readline()
print(*clocks())
child.kill()
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "watched_module.py").write_text(MODULE, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, "lines", CHILD]
    environment = {"PYTHONPATH": ":".join([str(tmp_path), *sys.path])}
    said = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True, env=environment).stdout
    return tmp_path / "lines", Spent(*map(float, said.split()))


def test_calls_are_written_down_once_with_what_they_took(program) -> None:
    lines, clocks = program
    (spans,) = read_spans(lines).values()
    assert [span.name for span in spans] == [
        START, START, "watched_module:outer", "watched_module:Class.inner", "watched_module:fail",
    ]  # fmt: skip
    outer, inner = spans[2:4]
    assert 0.5 < (outer.ended - outer.began).seconds < 30
    assert 0.15 < (outer.ended - outer.began).own < 1
    assert (inner.ended - inner.began).own < 0.15
    assert 0.2 < clocks.workers < 30  # of a descendant that is no Java
    assert clocks.java == 0


def test_the_start_begins_with_the_process(program) -> None:
    (spans,) = read_spans(program[0]).values()
    start = spans[0]
    assert start.began.cpu_seconds == 0
    assert 0 < (start.ended - start.began).seconds < 30
    assert start.ended.own > 0


def test_parts_are_the_whole_and_none_counts_twice() -> None:
    def span(name: str, began: float, ended: float) -> Span:
        return Span(name, Spent(began, own=began / 2), Spent(ended, own=ended / 2))

    spans = [
        span(START, 0, 1),
        span("plan", 3, 4),
        span("replay", 4, 10),
        span("session", 4, 7),
        span("java", 5, 7),
        span("stage", 8, 9),
        span("stage", 9, 9.5),
        span("report", 11, 12),
    ]
    found = parts(spans)
    assert {name: spent.seconds for name, spent in found.items()} == {
        START: 1,
        AFTER_START: 2,
        "plan": 1,
        "after plan": 0,
        "replay": 1.5,
        "session": 1,
        "java": 2,
        "stage": 1.5,
        "after replay": 1,
        "report": 1,
    }
    assert sum(found.values(), Spent()) == Spent(12, own=6)


def test_lines_of_several_processes_are_told_apart(tmp_path) -> None:
    lines = [
        [7, "b", [2, 0, 0, 0], [3, 1, 0, 0]],
        [8, "a", [1, 0, 0, 0], [9, 0, 4, 0]],
        [7, "a", [1, 0, 0, 0], [3, 1, 0, 0]],
    ]
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = read_spans(tmp_path / "lines")
    assert {pid: [span.name for span in spans] for pid, spans in found.items()} == {7: ["a", "b"], 8: ["a"]}
    assert found[8][0].ended.java == 4


def test_imports_are_added_up_by_package() -> None:
    said = """import time: self [us] | cumulative | imported package
import time:       500 |        500 |     json.decoder
import time:      1500 |       2000 |   json
a line of the program
import time:      3000 |       5000 | numpy.core
import time:      1000 |       6000 | numpy
"""
    assert imported_ms(said) == {STANDARD: 2.0, "numpy": 4.0}


@pytest.mark.long
def test_a_local_run_is_taken_apart(tmp_path) -> None:
    whole, *rest, imports, docs = Profile(repeats=1).of_runs(tmp_path, ["local"])
    names = [figure.name.removeprefix("--engine local, ") for figure in rest]
    assert names[:3] == ["interpreter", "imports, command line, settings, job file", "plan"]
    assert {"replay", "audit", "commit", "publish", "maintain", "report"} < set(names)
    assert sum(figure.value for figure in rest) == pytest.approx(whole.value)
    assert sum(figure.details["CPU, s"] for figure in rest) == pytest.approx(whole.details["CPU, s"])
    assert min(figure.value for figure in rest) >= 0
    assert 0 < imports.details["statelib, ms"] / 1000 < imports.value
    assert docs.value > 0


@pytest.mark.long
def test_a_run_on_spark_shows_its_java_and_its_workers(tmp_path) -> None:
    figures = {figure.name: figure for figure in Profile(repeats=1).of_runs(tmp_path, ["spark"])}
    java = figures["--engine spark, Java, until it answers"]
    stages = figures["--engine spark, Spark's stages: the workers' start, and the tasks"]
    assert java.details["of it Java"] > 0
    assert stages.details["workers"] > 0
    assert 0 < stages.details["until the first task begins, s"] < stages.value
