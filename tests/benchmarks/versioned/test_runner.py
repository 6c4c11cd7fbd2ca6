from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ET
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.versioned import hindstream_job, hindstream_store, runner
from benchmarks.versioned.cases import SPAN_MS, Case, operations
from benchmarks.versioned.digests import NOTHING, digest_of
from benchmarks.versioned.report import plot, table
from benchmarks.versioned.runner import OURS, THEIRS, run
from statelib import Stores

HAS_MAVEN = bool(shutil.which("mvn")) and (Path(os.environ.get("JAVA_HOME", "")) / "bin" / "javac").exists()
FEW = {
    "disorder and expiry": {
        "expiring": Case(versions=50, retention_ms=SPAN_MS // 10, disorder=0.5),
        "narrow": Case(versions=50, segments=240, zipf=1.1, disorder=1.0),
    }
}


@pytest.fixture
def few(monkeypatch) -> None:
    for module in ("cases", "runner", "report"):
        monkeypatch.setattr(f"benchmarks.versioned.{module}.AXES", FEW)


@pytest.mark.long
@pytest.mark.skipif(not HAS_MAVEN, reason="needs Maven and a JDK")
def test_both_stores_answer_the_same(few, tmp_path) -> None:
    measured = run(tmp_path, FEW, puts=2_000, reads=1_000, repeats=1, seed=5)
    assert [one.differences for one in measured.values()] == [[], []]
    assert all(us >= 0 for one in measured.values() for repeats in one.us.values() for us in repeats)


def test_a_store_that_answers_otherwise_is_named(few, tmp_path, monkeypatch, capsys) -> None:
    def printed(command):
        (tmp_path / "stores").mkdir()
        text = " ".join(command)
        digest = 1 if "benchmarks.versioned." in text else 2
        operations = runner.IN_A_JOB if "_job" in text or "VersionedJob" in text else runner.BY_API
        return {what: {"cpu_seconds": 1.0, "digest": 1 if what == "put" else digest} for what in operations}

    monkeypatch.setattr(runner, "_printed", printed)
    monkeypatch.setattr(runner.KafkaStreams, "build", lambda self: None)
    measured = run(tmp_path, FEW, puts=100, reads=50, repeats=2, seed=5)
    one = measured[FEW["disorder and expiry"]["expiring"]]
    assert one.differences == ["get", "get as of", "put in a job", "join"]
    assert one.mean(OURS, "put").value == 1e4
    assert one.mean(OURS, "put in a job").value == 1e4
    assert one.mean(THEIRS, "get").value == 2e4
    assert one.mean(THEIRS, "join").value == 2e4
    assert "WRONG: get, get as of" in table("disorder and expiry", measured)
    drawn = ET.fromstring(plot("disorder and expiry", measured)).iter("{http://www.w3.org/2000/svg}circle")
    assert len(list(drawn)) == 2 * 2 * 5
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


def test_the_job_finds_what_the_store_finds(tmp_path, capsys) -> None:
    case = Case(versions=3, disorder=0.3)
    asked = operations(case, 600, 300, seed=5)
    asked.write(tmp_path / "file")
    arguments = (str(tmp_path / "jobs"), str(case.retention_ms), str(case.segment_interval_ms))
    hindstream_job.main(str(tmp_path / "file"), *arguments)
    figures = json.loads(capsys.readouterr().out)
    supplier = Stores.in_memory_versioned_key_value_store("store", timedelta(milliseconds=case.retention_ms))
    with Stores.versioned_key_value_store_builder(supplier, pa.int32(), pa.int64()).build().init() as store:
        for put in zip(asked.put_key.tolist(), asked.put_value.tolist(), asked.put_time.tolist(), strict=True):
            store.put(*put)
        found = [store.get(*ask) for ask in zip(asked.read_key.tolist(), asked.read_time.tolist(), strict=True)]
    assert 0 < sum(record is None for record in found) < 150
    expected = digest_of(NOTHING if record is None else record.value for record in found)
    assert figures["join"]["digest"] == figures["put in a job"]["digest"] == expected
