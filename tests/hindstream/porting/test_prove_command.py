"""``hindstream prove`` from the command line: what it prints, and how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hindstream.cli.main import main
from tests.conftest import ROOT
from tests.hindstream.porting.conftest import archive_topic
from tests.kafka.maven import build, with_kafka

OLD_APP = Path(__file__).with_name("old-app")

JOBS = """
import pyarrow as pa
import pyarrow.compute as pc
from hindstream import Job, StreamsBuilder, per_record
from tests.hindstream.porting.ports import PORTS, flights

of_mistake = {port.mistake: port for port in PORTS}
right = of_mistake["< for <="].job()
wrong = of_mistake["< for <="].job(right=False)
sessions = of_mistake["another gap between sessions"].job()

def plain():
    builder = StreamsBuilder("plain")
    flights(builder).to("out")
    return Job("plain", builder.build())

def failing():
    builder = StreamsBuilder("failing")
    flights(builder).map_values(per_record(lambda value: 1 // value, pa.int64(), "value")).to("out")
    return Job("failing", builder.build())

def nothing():
    builder = StreamsBuilder("nothing")
    flights(builder).filter(pc.field("value") < 0).to("out")
    return Job("nothing", builder.build())

def readings(more):
    builder = StreamsBuilder("json")
    builder.stream("readings").map_values({"n": "n", **more}).to("out")
    return Job("json", builder.build())

def counted(below):
    builder = StreamsBuilder("counted")
    flights = builder.stream("flights").filter(pc.field("value") < below)
    flights.group_by_key().count().to_stream().to("out")
    return Job("counted", builder.build())

def right_count():
    return counted(10)

def wrong_count():
    return counted(9)

def whole():
    return readings({"more": per_record(lambda value: 1, pa.int64(), "value")})

def part():
    return readings({})
"""


@pytest.fixture
def prove(classes, libraries, cache, warehouse, tmp_path, monkeypatch, capsys):
    (tmp_path / "job.py").write_text(JOBS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])

    def call(job: str, topology: str, *options: str, code: int = 0, built: Path | None = None) -> str:
        jar, others = (classes, libraries) if built is None else (built / "classes", built / "lib")
        place = ["--jar", str(jar), "--class-path", f"{others}/*", "--warehouse", warehouse.uri("")]
        of_class = "hindstream.ports.Ports" if built is None else "hindstream.old.App"
        command = ["prove", f"job.py:{job}", "--topology", f"{of_class}::{topology}", *place, *options]
        monkeypatch.setattr(sys, "argv", ["hindstream", *command])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    return call


def test_a_port_that_is_right(prove) -> None:
    out = prove("right", "filtered")
    assert out.splitlines() == [
        "hindstream.ports.Ports::filtered (Kafka Streams 4.4.0) and job.py:right have run on 120 records of flights.",
        "out is equal: 97 records.",
    ]


def test_a_port_that_is_wrong(prove) -> None:
    out = prove("wrong", "filtered", "--sample-keys", "90%", code=1)
    assert "a sample of 90.0 % of the keys" in out
    assert "The smallest input that shows it: 1 record\n" in out
    words = [line.split() for line in out.splitlines()]
    assert ["topic", "partition", "offset", "timestamp", "key", "value"] in words
    assert any(line[:1] == ["flights"] and line[-1] == "10" for line in words)
    assert any(line[-3:] == ["in", "the", "application"] for line in words)
    assert out.endswith("Next: change what job.py:wrong does there, and run the same command again\n")


def test_a_difference_that_is_explained(prove) -> None:
    out = prove("sessions", "sessions")
    assert "This is explained: with --set semantics=kafka-4.4 nothing differs (docs/semantics.md).\n" in out
    assert "  - sessions out of retention\n" in out
    assert prove("sessions", "sessions", "--set", "semantics=kafka-4.4").splitlines()[1].startswith("out is equal")


def test_output_for_a_program(prove, warehouse) -> None:
    readings = [("a", {"n": n}, n) for n in range(3)]
    archive_topic(warehouse, "readings", readings, pa.struct([("n", pa.int64())]))
    found = json.loads(prove("part", "json", "--output", "json", code=1))
    assert (found["is_port"], found["unexplained"], found["records"]) == (False, 3, 3)
    assert found["sinks"][0]["examples"][0]["fields"] == ["value.more"]
    smallest = found["smallest"]
    assert [record["offset"] for record in smallest["records"]] == [0]
    assert smallest["application"][0]["value"] == {"n": 0, "more": 1}
    assert smallest["job"][0]["value"] == {"n": 0}
    assert json.loads(prove("whole", "json", "--output", "json"))["is_port"]
    assert json.loads(prove("part", "json", "--ignore", "value.more", "--output", "json"))["is_port"]


@pytest.mark.parametrize(
    ("job", "topology", "options", "code", "told"),
    [
        ("plain", "failing", (), 65,
         ["IllegalStateException: a delay of 13 (topic flights, partition", "at hindstream.ports.Ports.checked("]),
        ("failing", "mapped", (), 78, ["ZeroDivisionError", "topic flights, partition"]),
        ("nothing", "silent", (), 65, ["neither the application nor the job writes a record"]),
        ("plain", "wants", (), 78, ["takes what nobody here can give", "StreamsBuilder, Properties, Map"]),
        ("plain", "none", (), 78, ["hindstream.ports.Ports has no method none; it has branched, "]),
        ("plain", "windows", ("--config", "no.properties"), 78, ["there is no such file of properties"]),
        ("plain", "windows", ("--sample-keys", "0"), 78, ["0 is no part of the keys"]),
        ("plain", "windows", ("--java", "/bin/false"), 78, ["Java has ended: it has said nothing"]),
        ("plain", "windows", ("--java", "/no/java"), 78, ["there is no such Java (file /no/java"]),
    ],
)  # fmt: skip
def test_what_cannot_be_proved_is_told(job, topology, options, code, told, prove) -> None:
    out = prove(job, topology, *options, code=code)
    assert "Traceback" not in out
    assert [words for words in told if words not in out] == []


@pytest.mark.long
@pytest.mark.parametrize("version", ["2.8.2", "3.1.2", "3.9.1", "4.3.0", "4.4.0"])
def test_versions_of_kafka_streams_that_were_tried(version: str, prove) -> None:
    """Those that docs/prove.md names."""
    page = (ROOT / "docs" / "prove.md").read_text(encoding="utf-8").replace("\n", " ")
    assert version in page[page.index("Kafka Streams 2.8 and later work") :].partition("were tried")[0]
    built = build(with_kafka(OLD_APP, version))
    assert f"(Kafka Streams {version})" in (out := prove("right_count", "counted", built=built))
    assert "out is equal" in out
    assert "The smallest input that shows it: 1 record\n" in prove("wrong_count", "counted", built=built, code=1)
