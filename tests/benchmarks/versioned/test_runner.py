from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.versioned import hindstream_store, runner
from benchmarks.versioned.cases import SPAN_MS, Case, operations
from benchmarks.versioned.report import plot, table
from benchmarks.versioned.runner import OURS, THEIRS, run

HAS_MAVEN = bool(shutil.which("mvn")) and (Path(os.environ.get("JAVA_HOME", "")) / "bin" / "javac").exists()
FEW = {
    "disorder and expiry": {
        "none": Case(versions=20),
        "all": Case(versions=20, disorder=1.0),
        "expiring": Case(versions=50, retention_ms=SPAN_MS // 10, disorder=0.5),
        "narrow": Case(versions=50, segments=240, zipf=1.1, disorder=0.3),
    }
}


@pytest.fixture
def few(monkeypatch) -> None:
    for module in ("cases", "runner", "report"):
        monkeypatch.setattr(f"benchmarks.versioned.{module}.AXES", FEW)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_MAVEN, reason="needs Maven and a JDK")
def test_both_stores_answer_the_same(few, tmp_path) -> None:
    measured = run(tmp_path, FEW, puts=2_000, reads=1_000, repeats=1, seed=5)
    assert [one.differences for one in measured.values()] == [[], [], [], []]
    assert all(us >= 0 for one in measured.values() for repeats in one.us.values() for us in repeats)


def test_a_store_that_answers_otherwise_is_named(few, tmp_path, monkeypatch, capsys) -> None:
    def printed(command):
        (tmp_path / "stores").mkdir()
        digest = 1 if "benchmarks.versioned.hindstream_store" in command else 2
        return {what: {"cpu_seconds": 1.0, "digest": 1 if what == "put" else digest} for what in runner.OPERATIONS}

    monkeypatch.setattr(runner, "_printed", printed)
    monkeypatch.setattr(runner.KafkaStreams, "build", lambda self: None)
    measured = run(tmp_path, FEW, puts=100, reads=50, repeats=2, seed=5)
    one = measured[FEW["disorder and expiry"]["none"]]
    assert one.differences == ["get", "get as of"]
    assert one.mean(OURS, "put").value == 1e4
    assert one.mean(THEIRS, "get").value == 2e4
    assert "WRONG: get, get as of" in table("disorder and expiry", measured)
    assert (
        len(list(ET.fromstring(plot("disorder and expiry", measured)).iter("{http://www.w3.org/2000/svg}circle"))) == 24
    )
    assert "WRONG: get" in capsys.readouterr().out


def test_digests_depend_on_every_answer(tmp_path, capsys) -> None:
    def digests(asked) -> dict[str, int]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        asked.write(folder / "file")
        hindstream_store.main(str(folder / "file"), str(folder / "stores"), str(SPAN_MS), str(SPAN_MS // 24))
        return {what: figure["digest"] for what, figure in json.loads(capsys.readouterr().out).items()}

    asked = operations(Case(versions=10, disorder=0.5), 300, 200, seed=5)
    before = digests(asked)
    assert digests(asked) == before
    asked.put_value[asked.put_key == asked.read_key[0]] += 1
    after = digests(asked)
    assert after["put"] == before["put"]  # when versions end, not what they are
    assert after["get"] != before["get"]
    assert after["get as of"] != before["get as of"]
