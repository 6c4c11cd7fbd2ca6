"""``hindstream diff``: two jobs compared, as text, as data and as a page."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hindstream.cli.arguments import check_page
from hindstream.console.differences import (
    behind_sentences,
    field_text,
    interval_sentences,
    json_text,
    schema_text,
    side_name,
    sink_name,
    sink_sentences,
    store_name,
    store_sentences,
)
from hindstream.console.json_lines import json_data, print_json
from hindstream.console.numbers import count_text
from hindstream.console.serving import serving_sentences
from hindstream.report.ledger_differences import dropped_lines, ledger_sentences
from hindstream.slices import time_ms
from statelib.columns.times import instant_text
from statelib.comparison.fields import Rules
from statelib.comparison.jobs import StoresAsked, compare_jobs
from statelib.comparison.matches import Resources
from statelib.comparison.times import ALL_TIMES, Interval
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.json import readable_json
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hindstream.console.json_lines import Output
    from statelib.comparison.difference import Difference, Example
    from statelib.comparison.jobs import JobDifferences
    from statelib.comparison.matches import Matcher, Way
    from statelib.comparison.sinks import JobCommit
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

DIFFERENT = 1
"""The exit code where there are differences."""

_MOST_TIMES = 24
_WIDTH = 160


@dataclass(frozen=True)
class Asked:
    """What is compared, and how.

    Attributes:
        sinks: See `compare_sinks`.
        way: See `compare_sinks`.
        rules: What counts as equal.
        limit: How many examples are shown of each kind.
        stores: See `compare_stores`; None: none.
        within: Rows of which time.
        explained: A's job and B's, to explain the first difference with; of each None: it is not known. None: it is not
            asked for.
        page: A file for the page; None: there is none.
        on_spark: Whether the records of sinks are matched on Spark.
        split_ms: It is told how many differences of sinks are of this time or later; None: it is not.
    """

    sinks: Sequence[str]
    way: Way | None
    rules: Rules
    limit: int
    page: Path | None = None
    stores: Sequence[str] | None = None
    within: Interval = ALL_TIMES
    explained: tuple[Job | None, Job | None] | None = None
    on_spark: bool = False
    split_ms: int | None = None


def rules_of(tolerances: Sequence[str], ignored: Sequence[str]) -> Rules:
    """What ``--tolerance`` and ``--ignore`` say.

    Raises:
        ConfigurationError: A tolerance is no number from 0.
    """
    of_all: float | None = None
    of_fields = {}
    for given in tolerances:
        path, is_of_field, text = given.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if number < 0 or not isfinite(number):
            step = "write --tolerance 1e-9, or --tolerance value.FIELD=0.01"
            raise ConfigurationError("a tolerance is a number from 0", setting=given, next_step=step)
        if is_of_field:
            of_fields[path] = number
        else:
            of_all = number
    return Rules(of_all, of_fields, frozenset(ignored))


def interval_of(since: str | None, until: str | None) -> Interval:
    """What ``--since`` and ``--until`` say.

    Raises:
        ConfigurationError: One is no time with a zone, or there is nothing between them.
    """
    within = Interval(
        None if since is None else time_ms("since", since), None if until is None else time_ms("until", until)
    )
    if within.since_ms is not None and within.until_ms is not None and within.until_ms <= within.since_ms:
        what = "there is no time to compare: it ends before it begins"
        raise ConfigurationError(what, setting="--until", next_step="give a time after --since")
    return within


def print_difference(a: JobCommit, b: JobCommit, asked: Asked, settings: Settings, *, output: Output) -> None:
    """Prints how two jobs differ; the exit code tells whether they do.

    Raises:
        ConfigurationError: See `show_difference`.
        Exit: With the code `DIFFERENT`: there is a difference.
    """
    if show_difference(a, b, asked, settings, output=output):
        raise typer.Exit(DIFFERENT)


def show_difference(a: JobCommit, b: JobCommit, asked: Asked, settings: Settings, *, output: Output) -> bool:
    """Prints how two jobs differ, and tells whether they do.

    Raises:
        ConfigurationError: See `compare_jobs`; or both are one commit, or there is no folder for the page.
    """
    if asked.page is not None:
        check_page(asked.page)
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    with tempfile.TemporaryDirectory(prefix="hindstream-diff-") as scratch:
        found = compare_jobs(
            warehouse,
            a,
            b,
            Resources(Path(scratch), matcher=_matcher_on_spark(settings) if asked.on_spark else None),
            sinks=asked.sinks,
            way=asked.way,
            rules=asked.rules,
            examples=asked.limit,
            within=asked.within,
            split_ms=asked.split_ms,
            stores=None if asked.stores is None else StoresAsked(Path(settings.state_dir), asked.stores),
        )
    if found.a == found.b:
        what = "both sides are the same commit of the same job, so nothing was compared"
        step = f"name two commits ({a.job}@N), a fork, or another job; hindstream try compares another file of the job"
        raise ConfigurationError(what, job=found.a.job, commit=found.a.commit, next_step=step)
    data, lines, reasons = (
        _data(found),
        list(_lines(found, list(serving_sentences(warehouse, a.job, b.job)))),
        list[str](),
    )
    if asked.explained is not None:
        explained, reasons = _explained(warehouse, found, asked.explained, asked.limit, settings)
        data |= {"explained": explained}
        lines += ["", *reasons]
    if output == "json":
        print_json(json.loads(readable_json(data)))
    else:
        typer.echo("\n".join(lines))
    if asked.page is not None:
        _write_page(asked.page, found, reasons)
    return not found.is_empty


def _matcher_on_spark(settings: Settings) -> Matcher:
    from hindstream.spark.comparison.matches import matcher_on_spark  # noqa: PLC0415 - Spark, for this option alone

    return matcher_on_spark(settings)


def _explained(
    warehouse: Storage, found: JobDifferences, jobs: tuple[Job | None, Job | None], limit: int, settings: Settings
) -> tuple[dict[str, object] | None, list[str]]:
    """The first difference explained, as data and as text."""
    from hindstream.cli.versions.diff_explained import explain_first_difference, explained_data, explained_lines  # noqa: PLC0415
    from hindstream.spark.phases.task_work import task_settings  # noqa: PLC0415

    explained = explain_first_difference(warehouse, found.sinks, jobs, task_settings(warehouse, settings))
    if explained is None:
        return None, ["There is no difference of sinks to explain."]
    return explained_data(explained, jobs), list(explained_lines(explained, limit))


def _data(found: JobDifferences) -> dict[str, object]:
    parts = {"ledgers": found.ledgers} if found.stores is None else {"ledgers": found.ledgers, "stores": found.stores}
    return {"is_empty": found.is_empty, **json_data(found.sinks), **json_data(parts)}


def _write_page(file: Path, found: JobDifferences, reasons: Sequence[str]) -> None:
    from hindstream.report.difference_page import difference_page  # noqa: PLC0415 - templates, for this option alone

    file.write_text(difference_page(found, reasons), encoding="utf-8")
    typer.echo(f"The page is {file}.", err=True)


def _lines(found: JobDifferences, serving: Sequence[str]) -> Iterator[str]:
    a, b = map(side_name, (found.a, found.b))
    yield " ".join([f"A is {a}, B is {b}.", *serving])
    yield from interval_sentences(found.within)
    yield from sink_sentences(found.sinks)
    if found.split_ms is not None:
        yield from behind_sentences(found.sinks, found.split_ms)
    if found.stores is not None:
        yield from store_sentences(found.stores)
    yield from ledger_sentences(found.ledgers)
    for sink in found.sinks.sinks:
        of = sink.difference.shared
        shared = f"; {counted(of, 'more record is', 'more records are')} shared, and not read" if of else ""
        yield from difference_lines(f"{sink_name(sink)}, by {sink.difference.way}", sink.difference, shared)
    for store in found.stores.stores if found.stores is not None else ():
        skipped = f"; {store.shared_partitions} of {counted(store.partitions, 'partition')} shared, not read"
        shared = skipped if store.shared_partitions else ""
        yield from difference_lines(f"{store_name(store)} ({store.kind})", store.difference, shared)
    told = list(dropped_lines(found.ledgers))
    yield from ["", *told] if told else []


def difference_lines(title: str, found: Difference, shared: str) -> Iterator[str]:
    """What differs, with examples, for a person; nothing where nothing does.

    Args:
        title: The first line.
        found: What was found.
        shared: Is said behind the counts.
    """
    if found.is_empty:
        return
    yield ""
    yield title
    counts = ("compared", "equal", "changed", "only_a", "only_b")
    told = [
        f"{name.replace('_a', ' in A').replace('_b', ' in B')} {count_text(getattr(found, name))}" for name in counts
    ]
    yield f"  {', '.join(told)}{shared}"
    for field in found.schema:
        yield f"  {schema_text(field)}"
    for changed in found.fields:
        yield f"  {field_text(changed)}"
    for kind, heading in (("changed", "Changed"), ("only_a", "Only in A"), ("only_b", "Only in B")):
        examples = found.examples[kind]
        if examples:
            yield f"  {heading}, {len(examples)} of {count_text(getattr(found, kind))}:"
            for example in examples:
                yield from _example(example)
    if found.times is not None:
        yield "  By time: changed, only in A, only in B"
        times = found.times
        rows = list(zip(times.starts_ms, times.changed, times.only_a, times.only_b, strict=True))
        yield from (
            f"    {instant_text(at)}  {n:,}  {only_a:,}  {only_b:,}" for at, n, only_a, only_b in rows[:_MOST_TIMES]
        )
        if len(rows) > _MOST_TIMES:
            yield f"    and {len(rows) - _MOST_TIMES} more; --output json has all"


def _example(example: Example) -> Iterator[str]:
    yield f"    {_cut(json_text(example.key))}"
    if example.fields:
        yield f"      {', '.join(example.fields)}"
    for name, side in (("A", example.a), ("B", example.b)):
        if side is not None:
            others = {field: side[field] for field in example.fields if field in side and field != "value"}
            behind = f"  {json_text(others)}" if others else ""
            yield f"      {name} {_cut(json_text(side.get('value')))}{behind}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
