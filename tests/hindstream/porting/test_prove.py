"""Twenty mistakes in ports: each is found, with an input of few records, and the port without it is proved."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindstream.porting.application import Running
from hindstream.porting.engine import Engine
from hindstream.porting.explained import SEVERAL_TOPICS
from hindstream.porting.formats import Formats
from hindstream.porting.outputs import Comparing
from hindstream.porting.prove import Proof, Prover
from hindstream.porting.sample import Sample, Wanted, read_sample
from statelib import KafkaTopic, StreamsBuilder, StringSerde, serde_for
from statelib.comparison.fields import Rules
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Job
from statelib.settings.settings import Settings
from statelib.storage import Storage
from tests.hindstream.porting.conftest import archive_topic, records
from tests.hindstream.porting.ports import PORTS, Port

PACKAGE = "hindstream.ports."
MOST_RECORDS = 6


SHRUNK = 4
"""How many mistakes are made small in short tests."""
EXPLAINED = {
    "Ports::sessions": "sessions out of retention",
    "Ports::outer": "left and outer join of two streams: results of unmatched records",
}
"""Where the shipped library does other than the KIPs promise, by topology."""
POSSIBLE = {"Ports::foreignKeys": ("foreign-key joins",), "Ports::global": ("global tables",)}
"""What may be a difference on purpose, by topology."""

ALL, EXACT = Wanted(), Rules()
Prove = Callable[..., tuple[Sample, Proof]]


@pytest.fixture
def proved(runner, warehouse, tmp_path) -> Prove:
    """Proves a job with a topology of Ports.java."""
    numbers = itertools.count()

    def prove(java: str, job: Job, wanted: Wanted = ALL, rules: Rules = EXACT, **options: Any):
        sample = read_sample(job.topology, options.pop("storage", warehouse), wanted)
        formats = Formats(job, options.pop("topics", ()))
        engine = Engine(job, sample, Settings(), tmp_path / str(next(numbers)))
        ready = runner.topology(PACKAGE + java)
        comparing = Comparing(formats, rules)
        prover = Prover(
            job, sample, runner, ready, engine, comparing, formats, options.pop("semantics", "kip"), **options
        )
        return sample, prover.prove()

    return prove


@pytest.mark.thorough
@pytest.mark.parametrize("port", PORTS, ids=[port.mistake for port in PORTS])
def test_a_mistake_is_found_and_the_port_without_it_is_proved(port: Port, proved: Prove) -> None:
    sample, right = proved(port.java, port.job())
    assert right.is_port
    assert right.compared.sinks[0].compared > 5
    assert [EXPLAINED[port.java]] == [*right.explained][:1] if port.java in EXPLAINED else not right.explained
    _, wrong = proved(port.java, port.job(right=False), most_tries=0)
    assert not wrong.is_port
    assert wrong.possible == POSSIBLE.get(port.java, ())
    assert wrong.smallest is not None
    assert len(wrong.smallest.places) == len(sample)


@pytest.mark.parametrize(
    "port",
    [*PORTS[:SHRUNK], *(pytest.param(port, marks=pytest.mark.long) for port in PORTS[SHRUNK:])],
    ids=[port.mistake for port in PORTS],
)
def test_few_records_show_a_mistake(port: Port, proved: Prove) -> None:
    _, wrong = proved(port.java, port.job(right=False))
    assert wrong.smallest is not None
    assert 1 <= len(wrong.smallest.places) <= MOST_RECORDS
    assert wrong.smallest.sink.pairs


def test_records_of_one_time_in_another_order_explain_a_difference(proved: Prove, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "ties"))
    for seed, topic in enumerate(("weather", "flights")):
        archive_topic(storage, topic, records(Random(seed), 200, 0))
    port = next(port for port in PORTS if port.java == "Ports::foreignKeys")
    _, proof = proved(port.java, port.job(), storage=storage)
    assert proof.compared.differing
    assert (proof.is_port, proof.explained, proof.smallest) == (True, (SEVERAL_TOPICS,), None)
    _, proof = proved(port.java, port.job(right=False), storage=storage, most_tries=0)
    assert not proof.is_port


def test_other_names_in_kafka_are_declared(proved: Prove, warehouse: Storage, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "renamed"))
    archive_topic(storage, "departures", records(Random(1), 20, 1))
    builder = StreamsBuilder("port")
    builder.stream("departures").filter(pc.field("value") <= 10).to("few")
    job = Job("port", builder.build())
    with pytest.raises(ConfigurationError) as error:
        proved("Ports::filtered", job, storage=storage)
    assert error.value.message == (
        "the application does not read departures; it reads flights (job port). Next: say what the application calls "
        "it: --topics FILE.py:NAME, with KafkaTopic(NAME, archive=TOPIC)"
    )
    serdes = {"key": StringSerde(), "value": serde_for(pa.int64())}
    topics = (KafkaTopic("flights", **serdes, archive="departures"), KafkaTopic("out", **serdes, archive="few"))
    _, proof = proved("Ports::filtered", job, storage=storage, topics=topics)
    assert proof.is_port
    assert proof.compared.sinks[0].compared


def test_a_topic_that_only_the_application_reads_is_told(proved: Prove) -> None:
    builder = StreamsBuilder("port")
    builder.stream("flights").to("out")
    _, proof = proved("Ports::merged", Job("port", builder.build()))
    assert proof.only_application == ("weather",)
    assert proof.is_port  # without its records nothing can differ


def test_what_is_dropped_is_counted_on_both_sides(proved: Prove) -> None:
    _, right = proved("Ports::windows", PORTS[0].job())
    assert right.compared.dropped[0] == right.compared.dropped[1] > 0
    _, wrong = proved("Ports::windows", PORTS[0].job(right=False), most_tries=0)
    assert wrong.compared.dropped[0] < wrong.compared.dropped[1]


@pytest.mark.parametrize(
    ("version", "semantics"),
    [("4.3.0", "kafka-4.3"), ("4.4.0", "kafka-4.4"), ("4.10.1-SNAPSHOT", "kafka-4.4"), ("3.9.1", "kafka-4.3")],
)
def test_what_is_shipped_goes_by_the_applications_version(runner, version: str, semantics: str) -> None:
    assert Running(runner, runner.topology(PACKAGE + "Ports::windows"), version, None).semantics == semantics
