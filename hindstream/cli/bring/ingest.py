"""``hindstream ingest``: files of a lake become a topic; and what would come of it, before anything is done."""

from __future__ import annotations

import shlex
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.table import Table

from hindstream.console.numbers import bytes_text, count_text, duration_text, percent_text, seconds_text, time_text
from hindstream.console.results import Results
from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.lake.ingest import ingest
from hindstream.spark.lake.query_results import query_samples
from statelib.calls.names import check_name
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import quarantine_topic
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.ingest.declared import topic_declared
from statelib.ingest.ledger import Ledger
from statelib.ingest.plan import plan_load
from statelib.ingest.profile import profile_of
from statelib.ingest.values.fields import is_template
from statelib.job.lake_topic import LakeTopic, load_lake_topic
from statelib.storage.storage import Storage, existing_storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.console.json_lines import Output
    from statelib.ingest.load import Loaded
    from statelib.ingest.plan import LoadPlan
    from statelib.ingest.profile import Profile
    from statelib.ingest.sample import TimeProfile
    from statelib.serdes.schema_source import SchemaSource
    from statelib.settings.settings import Settings


_LAYOUTS = {
    "connect": "files of Kafka Connect: partitions and offsets are those of their names",
    "aiven": "files of Aiven's sinks: partitions are those of their names, offsets those of their rows",
    "kcat": "rows of kcat: partitions and offsets are theirs",
}
_SCATTERED = {False: "Leave --key out, and group by the field.", True: "Let the job begin with repartition()."}
_SHOWN = 5
_MOSTLY = 0.9


def lake_topic(name: str, sources: tuple[str, ...], options: dict[str, Any], settings: Settings) -> LakeTopic:
    """What the command line asks for: a declaration in Python, options, or what the topic's newest load was asked for.

    Raises:
        ConfigurationError: There is no such declaration; or no source, and no load before; or options that cannot be.
    """
    if ":" in name:
        of_this_call = {"on_bad_record": options.pop("on_bad_record")} if "on_bad_record" in options else {}
        if sources or options:
            step = "leave the other options out, or give the topic's name and all of them"
            raise ConfigurationError("a LakeTopic says itself what is loaded", topic=name, next_step=step)
        return replace(load_lake_topic(name), **of_this_call)
    if "types" in options:
        options["types"] = dict(_field_and_type(text) for text in options["types"])
    if "registry" in options:
        options["registry"] = _registry(options["registry"])
    if len(options.get("value", ())) == 1 and not is_template(options["value"][0]):
        options["value"] = options["value"][0]
    if sources:
        return LakeTopic(name, sources, **options)
    before = _declared_before(name, settings)
    return replace(before, **options)


def _field_and_type(text: str) -> tuple[str, str]:
    field, equals, type_ = text.rpartition("=")
    if not equals:
        raise ConfigurationError("--type takes FIELD=TYPE", setting=text, next_step=f"--type {text}=string")
    return field, type_


def _declared_before(topic: str, settings: Settings) -> LakeTopic:
    check_name(topic, "a topic")
    warehouse = open_warehouse(settings)
    newest = Ledger(warehouse, topic, open_archive_if_present(warehouse, topic)).newest
    if newest is None:
        step = f"name files: hindstream ingest {topic} 'data/*.csv' --timestamp FIELD"
        raise ConfigurationError("the topic has not been loaded from files yet", topic=topic, next_step=step)
    return topic_declared(newest.declaration, _registry)


def _registry(url: str) -> SchemaSource:
    """The schema registry at an address.

    Raises:
        ConfigurationError: It is no address, or the packages for it are not installed.
    """
    try:
        from hindstream.kafka.registry import SchemaRegistry  # noqa: PLC0415 - an extra
    except ImportError:
        step = "pip install 'hindstream[kafka]'"
        raise ConfigurationError("the packages for a schema registry are not installed", next_step=step) from None
    return SchemaRegistry(url)


def run_ingest(topic: LakeTopic, settings: Settings, output: Output = "table") -> None:
    """Loads what is new, and prints what came of it. Raises as `hindstream.spark.lake.ingest.ingest` does."""
    began = time.monotonic()
    loaded = ingest(topic, settings)
    out = Results(output)
    print_loaded(loaded, out, time.monotonic() - began)
    out.result(loaded)


def print_loaded(loaded: Loaded, out: Results, seconds: float | None = None) -> None:
    """Prints what a load came to, and how long it took."""
    if loaded.number is None:
        out.say(f"{loaded.topic}: nothing is new. {counted(loaded.known, 'file')} had been loaded before.")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    before = _loaded_before(loaded.known, loaded.moved)
    size = sum(file.size_bytes for file in loaded.files)
    table.add_row("files", f"{count_text(len(loaded.files))} ({bytes_text(size)}){before}")
    table.add_row("records", count_text(loaded.records) + ("" if seconds is None else f" in {seconds_text(seconds)}"))
    if loaded.bad_rows:
        table.add_row("bad rows", f"{count_text(loaded.bad_rows)}, in {quarantine_topic(loaded.topic)}")
    if loaded.min_timestamp_ms is not None:
        table.add_row("time", f"{time_text(loaded.min_timestamp_ms)} to {time_text(loaded.max_timestamp_ms)}")
    table.add_row("timestamps", loaded.timestamps)
    if loaded.copies:
        table.add_row("copies", f"{counted(len(loaded.copies), 'file')} with the content of others, loaded once more")
    for path, other in loaded.copies[:_SHOWN]:
        table.add_row("", f"{path}, as {other}")
    if loaded.gaps:
        missing = sum(gap.last_offset - gap.first_offset + 1 for gap in loaded.gaps)
        table.add_row("gaps", f"{counted(missing, 'offset')} in no file, in {counted(len(loaded.gaps), 'place')}")
    for gap in loaded.gaps[:_SHOWN]:
        where = f"partition {gap.partition}, {gap.first_offset} to {gap.last_offset}"
        table.add_row("", f"{where}, before {gap.before}")
    out.say(f"{loaded.topic}, load {loaded.number}")
    out.table(table)


def _number_hints(profile: Profile, topic: LakeTopic) -> Iterator[str]:
    """What is said of fields of text that are numbers but for some."""
    for of_text in profile.fields:
        name, filled = of_text.name, profile.valued - of_text.nulls
        if not filled or name in topic.types:
            continue
        if _MOSTLY * filled < of_text.numbers:
            yield (
                f"Of {count_text(filled)} values of {name}, {count_text(of_text.numbers)} are numbers: --type"
                f" {shlex.quote(f'{name}=double')} reads them as such, and makes bad rows of the others."
            )
        elif _MOSTLY * filled < of_text.comma_numbers:
            yield (
                f"Of {count_text(filled)} values of {name}, {count_text(of_text.comma_numbers)} are numbers with a"
                " decimal comma: --decimal-separator , reads them."
            )


def _loaded_before(known: int, moved: int) -> str:
    if not known:
        return ""
    return f", {count_text(known)} loaded before" + (
        f" ({count_text(moved)} under another path or time)" if moved else ""
    )


def print_profile(topic: LakeTopic, settings: Settings, command: str, output: Output = "table") -> None:
    """Prints what a load would come to, and the command that does it.

    Raises:
        HindstreamError: As a load.
    """
    out = Results(output)
    with _warehouse_to_look_at(settings) as warehouse, query_samples(settings) as run_query:
        plan, _, ledger = plan_load(topic, warehouse, settings.source_store_options, run_query)
        if plan is None:
            out.say(f"{topic.name}: nothing is new. {counted(len(ledger.files()), 'file')} had been loaded before.")
            return
        profile = profile_of(plan, now_ms())
    before = _loaded_before(profile.known, profile.moved)
    out.say(
        f"{topic.name}: {counted(profile.files, 'new file')} ({bytes_text(profile.size_bytes)}){before},"
        f" about {counted(profile.rows, 'row')}. Of a sample of {count_text(profile.sampled)}:"
    )
    out.table(_fields(profile))
    out.table(_facts(profile, topic))
    for hint in _number_hints(profile, topic):
        out.say(hint)
    if profile.scattered_keys:
        keys = counted(profile.distinct_keys, "key")
        out.say(
            f"{count_text(profile.scattered_keys)} of {keys} are in several partitions: a job that groups by the key"
            f" has several groups of each. {_SCATTERED[topic.key is None]}"
        )
    for path, row in profile.bad_examples:
        field = f", {row.field}" if row.field else ""
        out.say(f"  {path}, row {row.row}{field}: {row.reason}")
    unreadable = profile.times.unreadable
    if 2 * unreadable > profile.sampled:
        out.say(f"\nNext: say how timestamps are written, such as {_time_option(plan)}")
    elif profile.bad_rows == profile.sampled + profile.unread:
        out.say("\nNext: choose options by which these rows can be read; no row of the sample can be loaded as it is")
    else:
        out.say(f"\nNext: {command}")
    out.result(profile)


def _time_option(plan: LoadPlan) -> str:
    """The option that most likely mends timestamps that cannot be read."""
    index = plan.schema.get_field_index(plan.shape.timestamp)
    is_number = index >= 0 and not pa.types.is_string(plan.schema.field(index).type)
    return "--timestamp-unit s" if is_number else "--timestamp-format '%d.%m.%Y %H:%M'"


@contextmanager
def _warehouse_to_look_at(settings: Settings) -> Iterator[Storage]:
    """The warehouse; where there is none yet, one that is gone afterwards: a look makes nothing."""
    if "://" in settings.warehouse or Path(settings.warehouse).expanduser().exists():
        yield existing_storage(settings.warehouse, settings.store_options)
        return
    with TemporaryDirectory(prefix="hindstream-") as folder:
        yield Storage(folder)


def _fields(profile: Profile) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("field", no_wrap=True)
    table.add_column("type")
    table.add_column("null", justify="right", no_wrap=True)
    for field in profile.fields:
        table.add_row(field.name, str(field.type), percent_text(field.nulls, profile.valued))
    return table


def _facts(profile: Profile, topic: LakeTopic) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    times = profile.times
    if profile.layout != "files":
        table.add_row("layout", _LAYOUTS[profile.layout])
    table.add_row("timestamps", times.read_as)
    if times.first_ms is not None:
        of_sample = " in the sample" if profile.sampled + profile.unread < profile.rows else ""
        table.add_row("time", f"{time_text(times.first_ms)} to {time_text(times.last_ms)}{of_sample}")
    table.add_row("out of order", _disorder(times, profile.sampled))
    wrong = {
        "missing": times.missing,
        "unreadable": times.unreadable,
        "before 1990": times.ancient,
        "in the future": times.future,
    }
    shown = [f"{count_text(count)} {what}" for what, count in wrong.items() if count]
    table.add_row("odd timestamps", ", ".join(shown) or "none")
    table.add_row("keys", _keys(profile, topic))
    least, most = min(profile.partition_rows), max(profile.partition_rows)
    spread = count_text(least) if least == most else f"{count_text(least)} to {count_text(most)}"
    table.add_row("partitions", f"{len(profile.partition_rows)}, with about {spread} each")
    if profile.deletions:
        table.add_row("deletions", percent_text(profile.deletions, profile.sampled))
    repeats = [f"{name} {percent_text(count, profile.valued)}" for name, count in profile.ids]
    repeats.append(f"whole rows {percent_text(profile.repeated_rows, profile.valued)}")
    table.add_row("repeated", ", ".join(repeats))
    table.add_row("bad rows", percent_text(profile.bad_rows, profile.sampled + profile.unread))
    return table


def _disorder(times: TimeProfile, sampled: int) -> str:
    if not times.disordered:
        return "none"
    return f"{percent_text(times.disordered, sampled)}, by up to {duration_text(times.most_late_ms)}"


def _keys(profile: Profile, topic: LakeTopic) -> str:
    if topic.key is None and not profile.distinct_keys:
        return "none"
    top = ", ".join(f"{key} {percent_text(count, profile.sampled)}" for key, count in profile.top_keys[:3])
    nulls = f"; {percent_text(profile.null_keys, profile.sampled)} have none" if profile.null_keys else ""
    where = topic.key or "of the records themselves"
    return f"{where}: {count_text(profile.distinct_keys)} distinct, most often {top}{nulls}"
