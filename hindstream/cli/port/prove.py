"""``hindstream prove``: what was found, as text and as data."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table

from hindstream.cli.versions.diff import DIFFERENT
from hindstream.console.differences import json_text
from hindstream.console.json_lines import print_json
from hindstream.console.numbers import count_text, percent_text
from hindstream.console.output import standard_output
from hindstream.porting.application import running
from hindstream.porting.engine import Engine
from hindstream.porting.formats import Formats
from hindstream.porting.outputs import Comparing
from hindstream.porting.prove import Prover
from hindstream.porting.sample import read_sample
from statelib.columns.times import instant_text
from statelib.errors.counted import counted
from statelib.errors.kinds import InputError
from statelib.job.job import load_job
from statelib.job.kafka_topic import KafkaTopic
from statelib.job.topics import load_topics
from statelib.serdes.json import readable_json
from statelib.settings.durations import ms_since_1970
from statelib.storage.storage import existing_storage
from statelib.testing.records import hashable, is_windowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.console.json_lines import Output
    from hindstream.porting.application import Application
    from hindstream.porting.outputs import SinkComparison
    from hindstream.porting.prove import Proof
    from hindstream.porting.sample import Sample, Wanted
    from statelib.comparison.fields import Rules
    from statelib.settings.settings import Settings
    from statelib.testing.records import TestRecord

_WIDTH = 100


@dataclass(frozen=True)
class Asked:
    """What is proved.

    Attributes:
        job: Where the job is.
        application: Whose port it is.
        wanted: On which records.
        rules: What counts as equal.
        topics: Where names and serdes of topics in Kafka are declared; None: nowhere.
        limit: How many rows of a table are shown.
    """

    job: str
    application: Application
    wanted: Wanted
    rules: Rules
    topics: str | None
    limit: int


@dataclass(frozen=True)
class _Found:
    asked: Asked
    sample: Sample
    proof: Proof
    kafka_version: str


def print_proof(asked: Asked, settings: Settings, output: Output) -> None:
    """Runs both, and prints how they differ.

    Raises:
        InputError: Neither writes a record; or see `Prover.prove`.
        Exit: With the code `DIFFERENT`: there is a difference that nothing explains.
    """
    found = _prove(asked, settings)
    if not any(sink.compared for sink in found.proof.compared.sinks):
        what = "neither the application nor the job writes a record, so nothing is proved"
        step = "prove it with more records: --records, --sample-keys, --from, --to"
        raise InputError(what, records=len(found.sample), next_step=step)
    if output == "json":
        print_json(json.loads(readable_json(_data(found))))
    else:
        _print(found)
    if not found.proof.is_port:
        raise typer.Exit(DIFFERENT)


def _prove(asked: Asked, settings: Settings) -> _Found:
    job = load_job(asked.job)
    declared = () if asked.topics is None else load_topics(asked.topics)
    formats = Formats(job, [topic for topic in declared if isinstance(topic, KafkaTopic)])
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    sample = read_sample(job.topology, warehouse, asked.wanted)
    with running(asked.application) as application, tempfile.TemporaryDirectory(prefix="hindstream-prove-") as folder:
        engine = Engine(job, sample, settings, Path(folder))
        comparing = Comparing(formats, asked.rules)
        prover = Prover(
            job, sample, application.runner, application.ready, engine, comparing, formats, settings.semantics,
            application.semantics,
        )  # fmt: skip
        return _Found(asked, sample, prover.prove(), application.kafka_version)


def _print(found: _Found) -> None:
    proof = found.proof
    for sentence in _sentences(found):
        typer.echo(sentence)
    if proof.smallest is None:
        return
    out, limit = standard_output(), found.asked.limit
    typer.echo(f"\nThe smallest input that shows it: {counted(len(proof.smallest.places), 'record')}")
    out.print(_inputs(found.sample, proof.smallest.places, limit))
    typer.echo(f"What both make of it in {proof.smallest.sink.topic}:")
    out.print(_side_by_side(proof.smallest.sink, limit))
    typer.echo(f"Next: {_next_step(found)}")


def _sentences(found: _Found) -> Iterator[str]:
    proof, asked = found.proof, found.asked
    read = f"{counted(len(found.sample), 'record')} of {', '.join(found.sample.topics)}"
    of = f"{asked.application.topology} (Kafka Streams {found.kafka_version}) and {asked.job} have run on {read}"
    if found.sample.left_out:
        of += ", the first ones"
    if asked.wanted.keys is not None:
        of += f", a sample of {percent_text(asked.wanted.keys.share, 1)} of the keys"
    yield f"{of}."
    for sink in proof.compared.sinks:
        yield _sink_sentence(sink)
    theirs, ours = proof.compared.dropped
    if theirs != ours:
        yield f"Dropped records: {count_text(theirs)} in the application, {count_text(ours)} in the job."
    if proof.only_application:
        yield f"The application also reads {', '.join(proof.only_application)}; the job does not, so it got no record."
    if proof.shipped:
        yield f"This is explained: with --set semantics={proof.shipped} nothing differs (docs/semantics.md)."
        yield from (f"  - {reason}" for reason in proof.explained)
    elif proof.explained:
        yield "This is explained: records of equal time come in another order from one topic than from the other, and"
        yield "the application's own answer depends on that (docs/semantics.md: several topics of one task)."
    elif proof.smallest is not None and proof.smallest.semantics != "kip":
        gone = proof.compared.differing - proof.unexplained
        differ = counted(proof.unexplained, "record differs", "records differ")
        others = ": the others are explained" if gone else ", too"
        yield f"With --set semantics={proof.smallest.semantics} {differ}{others}."
    if proof.possible:
        yield "A replay may differ here on purpose. See first whether that is it (docs/semantics.md):"
        yield from (f"  - {reason}" for reason in proof.possible)


def _sink_sentence(sink: SinkComparison) -> str:
    if sink.pairs:
        wrote = f"the application wrote {count_text(len(sink.theirs))}, the job {count_text(len(sink.ours))}"
        return f"{sink.topic}: {counted(len(sink.pairs), 'record differs', 'records differ')}; {wrote}."
    what = f"{sink.topic} is equal: {counted(len(sink.ours), 'record')}"
    return f"{what}, those of several keys in another order." if sink.only_order else f"{what}."


def _inputs(sample: Sample, places: tuple[int, ...], limit: int) -> Table:
    names = ("topic", "partition", "offset", "timestamp", "key", "value")
    table = Table(*names, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in _input_rows(sample, places[:limit]):
        table.add_row(*[_key_text(row[name]) for name in names[:-1]], _cut(_text(row["value"])))
    if len(places) > limit:
        table.add_row(f"and {len(places) - limit} more", *[""] * (len(names) - 1))
    return table


def _input_rows(sample: Sample, places: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for place in places:
        topic = int(sample.topic[place])
        row = sample.tables[topic].slice(int(sample.row[place]), 1)
        time_ms = row["timestamp"].cast("int64")[0].as_py()
        yield {
            **sample.at(place),
            "timestamp": "" if time_ms is None else instant_text(time_ms),
            "key": row["key"][0].as_py(),
            "value": row["value"][0].as_py(),
        }


def _side_by_side(sink: SinkComparison, limit: int) -> Table:
    table = Table("key", "application", "job", "differs", box=box.SIMPLE_HEAD, pad_edge=False)
    fields = {(id(pair.theirs), id(pair.ours)): pair.fields for pair in sink.pairs}
    of_keys: dict[Any, tuple[list[TestRecord], list[TestRecord]]] = {}
    for number, side in enumerate((sink.theirs, sink.ours)):
        for record in side:
            of_keys.setdefault(hashable(record.key), ([], []))[number].append(record)
    rows = [pair for theirs, ours in of_keys.values() for pair in zip_longest(theirs, ours)]
    differing = {part for pair in sink.pairs for part in (id(pair.theirs), id(pair.ours))}
    for theirs, ours in rows[:limit]:
        key = (theirs or ours).key
        what = ", ".join(fields.get((id(theirs), id(ours)), ()))
        if not what and {id(theirs), id(ours)} & differing:
            what = "only in the job" if theirs is None else "only in the application" if ours is None else "the order"
        table.add_row(_key_text(key), _record_text(theirs), _record_text(ours), what)
    if len(rows) > limit:
        table.add_row(f"and {len(rows) - limit} more", "", "", "")
    return table


def _record_text(record: TestRecord | None) -> str:
    return "" if record is None else f"{_cut(_text(record.value))} @ {instant_text(record.timestamp_ms)}"


def _text(value: Any) -> str:
    return json_text(_readable(value))


def _key_text(key: Any) -> str:
    if is_windowed(key):
        start, end = (instant_text(ms_since_1970(key[bound])) for bound in ("window_start", "window_end"))
        return f"{_key_text(key['key'])}, {start} to {end}"
    return _cut(key if isinstance(key, str) else _text(key))


def _readable(value: Any) -> Any:
    """With text in the place of bytes that are text."""
    if isinstance(value, bytes):
        try:
            return value.decode() if value.decode().isprintable() else value
        except UnicodeDecodeError:
            return value
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _next_step(found: _Found) -> str:
    return f"change what {found.asked.job} does there, and run the same command again"


def _data(found: _Found) -> dict[str, Any]:
    proof = found.proof
    theirs, ours = proof.compared.dropped
    return {
        "is_port": proof.is_port,
        "kafka_version": found.kafka_version,
        "records": len(found.sample),
        "is_part": found.sample.left_out,
        "sinks": [
            {
                "topic": sink.topic,
                "compared": sink.compared,
                "application": len(sink.theirs),
                "job": len(sink.ours),
                "differing": len(sink.pairs),
                "order_differs": sink.only_order,
                "examples": [
                    {
                        "key": _readable(pair.key),
                        "application": _record_data(pair.theirs),
                        "job": _record_data(pair.ours),
                        "fields": pair.fields,
                    }
                    for pair in sink.pairs[: found.asked.limit]
                ],
            }
            for sink in proof.compared.sinks
        ],
        "dropped": {"application": theirs, "job": ours},
        "explained": proof.explained,
        "unexplained": proof.unexplained,
        "possible": proof.possible,
        "only_application": proof.only_application,
        "smallest": None if proof.smallest is None else _smallest_data(found.sample, proof),
    }


def _smallest_data(sample: Sample, proof: Proof) -> dict[str, Any]:
    smallest = proof.smallest
    if smallest is None:
        return {}
    return {
        "semantics": smallest.semantics,
        "records": list(_input_rows(sample, smallest.places)),
        "topic": smallest.sink.topic,
        "application": [_record_data(record) for record in smallest.sink.theirs],
        "job": [_record_data(record) for record in smallest.sink.ours],
    }


def _record_data(record: TestRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    key, value = _readable(record.key), _readable(record.value)
    return {"key": key, "value": value, "timestamp_ms": record.timestamp_ms, "headers": record.headers}
