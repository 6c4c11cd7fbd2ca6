"""``hindstream explain``: which source records made a result, which were dropped, and how it went."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from hindstream.cli.arguments import check_page
from hindstream.console.explanations import extent_text, node_text, place_text, proof_text, reason_text
from hindstream.console.json_lines import print_json
from hindstream.console.keys import keys_of
from hindstream.slices import time_ms
from hindstream.spark.phases.task_work import task_settings
from statelib.columns.times import instant_text
from statelib.commits.archives import open_archive
from statelib.commits.layout import fork_topic, late_topic, quarantine_topic
from statelib.commits.standing import standing_commit
from statelib.errors.counted import counted
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.explanation import explain, find_result, result_at
from statelib.serdes.json import readable_json
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from hindstream.console.json_lines import Output
    from statelib.explanation import Contribution, Dropped, Explanation, Place, Step
    from statelib.explanation.result import Found
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_WIDTH = 100


@dataclass(frozen=True)
class Asked:
    """Which result is to be explained.

    Attributes:
        sink: The topic that has it.
        key: Its key as text; None: ``record`` says which it is.
        window: The start of its window: ISO 8601 with time zone, or ms; None: any.
        commit: As of which commit; None: the newest.
        record: ``PARTITION:OFFSET``; None: the newest of the key.
    """

    sink: str
    key: str | None
    window: str | None
    commit: int | None
    record: str | None


def print_explanation(
    job: Job, asked: Asked, settings: Settings, *, limit: int, output: Output, page: Path | None = None
) -> None:
    """Prints where a result comes from.

    Args:
        job: The job.
        asked: Which result.
        settings: See `Settings`.
        limit: How many records of each kind are shown, in a text.
        output: As text or as data.
        page: A file for the page; None: there is none.

    Raises:
        ConfigurationError: There is no such result, or no folder for the page; or see `statelib.explanation.explain`.
    """
    if page is not None:
        check_page(page)
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    found = _found(job, asked, warehouse)
    explanation = explain(job, warehouse, task_settings(warehouse, settings), found, commit=asked.commit)
    if output == "json":
        print_json(explanation_data(job, explanation))
    else:
        typer.echo("\n".join(_lines(explanation, limit)))
    if page is not None:
        from hindstream.report.explanation_page import explanation_page  # noqa: PLC0415 - templates, for this alone

        page.write_text(explanation_page(job.topology, explanation), encoding="utf-8")
        typer.echo(f"The page is {page}.", err=True)


def _found(job: Job, asked: Asked, warehouse: Storage) -> Found:
    if asked.sink in {late_topic(job.name), quarantine_topic(job.name)}:
        what = "this topic has no results, but source records that the job set apart"
        step = f"hindstream show {asked.sink} shows where each of them comes from, and why it is there"
        raise ConfigurationError(what, topic=asked.sink, next_step=step)
    of_fork = fork_topic(asked.sink, job.name)
    sink = of_fork if of_fork in job.topology.sink_topics else asked.sink
    if sink not in job.topology.sink_topics:
        step = did_you_mean(asked.sink, job.topology.sink_topics, "one of:")
        raise ConfigurationError("the job does not write this topic", topic=asked.sink, next_step=step)
    if (asked.key is None) == (asked.record is None):
        what = "there is no result to explain" if asked.key is None else "a key and a record are given"
        raise ConfigurationError(what, next_step="give either the result's KEY or --record PARTITION:OFFSET")
    standing_commit(warehouse, job.name, asked.commit)  # without one there need not be a topic
    if asked.record is not None:
        partition, colon, offset = asked.record.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            what = f"{asked.record!r} is no record"
            raise ConfigurationError(what, setting="--record", next_step="write it like 0:1234, partition and offset")
        return result_at(warehouse, sink, int(partition), int(offset))
    keys = keys_of(asked.key or "", open_archive(warehouse, sink).table_schema.field("key").type)
    start_ms = None if asked.window is None else time_ms("window", asked.window)
    return find_result(warehouse, job.name, sink, keys, commit=asked.commit, window_start_ms=start_ms)


def explanation_data(job: Job, explanation: Explanation) -> dict[str, Any]:
    """An explanation for a program."""
    return {
        "job": job.name,
        "commit": explanation.result.commit,
        "result": place_data(explanation.result.place),
        "reproduced": explanation.reproduced,
        "minimal": explanation.minimal,
        "drops_known": explanation.drops_known,
        "replayed_records": explanation.replayed_records,
        "replayed_behind": explanation.replayed_behind,
        "spared_slices": explanation.spared_slices,
        "contributions": [{**place_data(one.record), "last": one.last} for one in explanation.contributions],
        "dropped": [
            {
                **place_data(one.record),
                "node": one.node,
                "line": None if one.line is None else one.line._asdict(),
                "rule": one.rule,
                "lateness_ms": one.lateness_ms,
                "clock_ms": one.clock_ms,
                "duplicate_of": None if one.duplicate_of is None else place_data(one.duplicate_of),
            }
            for one in explanation.dropped
        ],
        "looked_at": [place_data(one) for one in explanation.looked_at],
        "steps": [
            {
                "node": step.node,
                "kind": step.kind,
                "parents": step.parents,
                "sub_topology": step.sub_topology,
                "line": None if step.line is None else step.line._asdict(),
                "topic": step.topic,
                "forwarded": step.forwarded,
                "last": None if step.last is None else _readable(step.last),
            }
            for step in explanation.steps
        ],
    }


def place_data(place: Place) -> dict[str, Any]:
    """A record for a program."""
    return {
        "topic": place.topic,
        "partition": place.partition,
        "offset": place.offset,
        "timestamp_ms": place.timestamp_ms,
        "key": _readable(place.key),
        "value": _readable(place.value),
    }


def _readable(value: Any) -> Any:
    """The same as JSON data: bytes are base64, times ISO 8601."""
    return json.loads(readable_json(value))


def _lines(explanation: Explanation, limit: int) -> Iterator[str]:
    result = explanation.result
    yield f"{place_text(result.place)}, by commit {result.commit}, {instant_text(result.place.timestamp_ms)}"
    yield f"  {_json(result.place.key)}"
    yield f"  {_json(result.place.value)}"
    yield ""
    yield f"Made by {counted(len(explanation.contributions), 'record')}:"
    yield from _limited([_contribution(one) for one in explanation.contributions], limit)
    yield proof_text(explanation)
    yield extent_text(explanation)
    yield ""
    if explanation.drops_known:
        yield f"Dropped on the way: {counted(len(explanation.dropped), 'record')}"
        yield from _limited([_drop(one) for one in explanation.dropped], limit)
    else:
        yield "Which records were dropped was not looked for: there are too many."
    if explanation.looked_at:
        yield ""
        yield f"Looked at, and of no effect: {counted(len(explanation.looked_at), 'record')}"
        yield from _limited([f"  {record_text(one)}" for one in explanation.looked_at], limit)
    yield ""
    yield "How it went, from the result up to the sources:"
    yield from _tree(explanation.steps)


def _limited(lines: Sequence[str], limit: int) -> Iterator[str]:
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"  and {len(lines) - limit:,} more; --limit shows them"


def _contribution(one: Contribution) -> str:
    return f"  {record_text(one.record)}{'  <- then the result was written' if one.last else ''}"


def _drop(one: Dropped) -> str:
    return f"  {record_text(one.record)}\n    {reason_text(one)}; at {node_text(one)}"


def _tree(steps: Sequence[Step]) -> Iterator[str]:
    by_name = {step.node: step for step in steps}
    told: set[str] = set()
    waiting = [(steps[-1].node, 0)] if steps else []
    sinks = [step for step in steps if step.kind == "sink" and not _has_reader(step, steps)]
    if sinks:
        waiting = [(sinks[-1].node, 0)]
    while waiting:
        name, depth = waiting.pop()
        step = by_name[name]
        yield _step(step, depth, again=name in told)
        if name not in told:
            told.add(name)
            waiting += [(parent, depth + 1) for parent in reversed(step.parents) if parent in by_name]


def _has_reader(step: Step, steps: Sequence[Step]) -> bool:
    return any(step.node in other.parents for other in steps)


def _step(step: Step, depth: int, *, again: bool) -> str:
    what = f"{step.kind} {step.topic}" if step.topic is not None else step.kind
    line = "" if step.line is None else f" ({step.line.file}:{step.line.line})"
    if again:
        return f"  {'  ' * depth}{step.node}: see above"
    last = "" if step.last is None else f"; last {_short(step.last)}"
    return f"  {'  ' * depth}{step.node}: {what}{line}, {counted(step.forwarded, 'record')}{last}"


def _short(row: Mapping[str, Any]) -> str:
    return _cut(f"{_json(row['key'])} {_json(row['value'])}")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def record_text(place: Place) -> str:
    """Where a record is, and what it says."""
    return f"{place_text(place)}  {instant_text(place.timestamp_ms)}  {_json(place.key)}  {_cut(_json(place.value))}"


def _json(value: object) -> str:
    return readable_json(value, separators=(", ", ": "))
