"""``hindstream topics``: what there is in the archives of topics, and how far records are out of order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.table import Table

from hindstream.console.json_lines import print_json
from hindstream.console.numbers import bytes_text, count_text, duration_text, time_text
from hindstream.console.output import standard_output
from statelib.commits.publication.topic_writers import sought
from statelib.storage.storage import existing_storage
from statelib.topics.delta.log import ArchiveNotFoundError
from statelib.topics.places import archive_path
from statelib.topics.summary import UnreadableTopic, scanned, summaries, summarize
from statelib.topics.version import TopicVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings
    from statelib.topics.disorder import Disorder
    from statelib.topics.summary import PartitionSummary, TopicSummary

_FIELDS_IN_SHORT = 4
_WIDE = 140


def print_topics(settings: Settings, output: Output) -> None:
    """Prints a line for each topic of the warehouse, of what its Delta log says."""
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    found = summaries(warehouse)
    if output == "json":
        for one in found:
            print_json(_data(one))
        return
    console = standard_output()
    readable = [one for one in found if not isinstance(one, UnreadableTopic)]
    if readable:
        console.print(_topics_table(readable, is_wide=console.width >= _WIDE))
    elif not found:
        console.print(f"There are no topics in {warehouse.uri('')}.", soft_wrap=True, highlight=False)
    for one in found:
        if isinstance(one, UnreadableTopic):
            staged = isinstance(one.error, ArchiveNotFoundError)
            what = "nothing has been published to it yet" if staged else str(one.error)
            console.print(f"{one.topic}: {what}", soft_wrap=True, highlight=False)
    if any(not _is_known(one.total.disorder) for one in readable):
        console.print("Which records are late is exact for one topic: hindstream topics TOPIC", highlight=False)


def print_topic(topic: str, settings: Settings, output: Output, *, scan: bool) -> None:
    """Prints the schema and a line for each partition of a topic.

    Args:
        topic: Its name.
        settings: See `Settings`.
        output: How.
        scan: Whether to read timestamps where the log does not tell which records are late.

    Raises:
        ConfigurationError: There is no such topic.
        InputError: A file of it cannot be read.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    with sought(warehouse, topic):
        archive = TopicVersion.open(warehouse.uri(archive_path(topic)), options=warehouse.options)
    found = summarize(archive)
    if scan:
        found = scanned(archive, found)
    if output == "json":
        print_json(_data(found, in_detail=True))
        return
    console = standard_output()
    console.print(f"{found.topic}, version {found.version} of its archive", highlight=False, soft_wrap=True)
    for line in (*_schema_lines("key", found.key, 1), *_schema_lines("value", found.value, 1)):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(_partitions_table(found, is_wide=console.width >= _WIDE))


def _is_known(disorder: Disorder | None) -> bool:
    return disorder is not None and disorder.is_exact


def _topics_table(found: list[TopicSummary], *, is_wide: bool) -> Table:
    """Where a terminal is narrow, without what ``hindstream topics TOPIC`` says as well."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("topic", overflow="fold")
    for name in ("records", "partitions"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("from", "to"):
        table.add_column(name, min_width=len("2013-01-01"))  # the time goes below where a terminal is narrow
    table.add_column("late", justify="right", no_wrap=True)
    if is_wide:
        table.add_column("by up to", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    if is_wide:
        table.add_column("files", justify="right", no_wrap=True)
        table.add_column("key and value", overflow="fold")
    for one in found:
        late, by = _late_texts(one.total)
        row = [one.topic, count_text(one.total.records), count_text(len(one.partitions)), *_times(one.total), late]
        size = bytes_text(one.total.size_bytes)
        fields = f"{_type_in_short(one.key)}: {_type_in_short(one.value)}"
        table.add_row(*row, *([by, size, count_text(one.total.files), fields] if is_wide else [size]))
    return table


def _partitions_table(found: TopicSummary, *, is_wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("partition", "records", "from offset", "to before"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("from", "to"):
        table.add_column(name, min_width=len("2013-01-01"))
    for name in ("late", "by up to", "size", "files") if is_wide else ("late", "size"):
        table.add_column(name, justify="right", no_wrap=True)

    def add(name: str, one: PartitionSummary, start: str, end: str) -> None:
        late, by = _late_texts(one)
        size = bytes_text(one.size_bytes)
        ends = (late, by, size, count_text(one.files)) if is_wide else (late, size)
        table.add_row(name, count_text(one.records), start, end, *_times(one), *ends)

    for partition, (one, offsets) in enumerate(zip(found.partitions, found.offsets, strict=True)):
        add(str(partition), one, count_text(offsets.start), count_text(offsets.end))
    table.add_section()
    add("all", found.total, "", "")
    return table


def _times(one: PartitionSummary) -> tuple[str, str]:
    first, last = ("" if time is None else time_text(time).removesuffix(" UTC") for time in (one.first_ms, one.last_ms))
    return first, last


def _late_texts(one: PartitionSummary) -> tuple[str, str]:
    """How many records are late, and by how much at most: ``1,204`` and ``3 h``; ``unknown`` and nothing."""
    if not one.records:
        return "", ""
    if one.disorder is None or (one.disorder.late_records.exact is None and _says_little(one)):
        return "unknown", ""
    records, by = one.disorder.late_records, one.disorder.max_late_ms
    if not records.most:
        return "none", ""
    if records.exact is not None:
        text = count_text(records.most)
    else:
        text = f"{count_text(records.least)} to {count_text(records.most)}"
    return text, duration_text(by.most)


def _says_little(one: PartitionSummary) -> bool:
    """Whether it may be none, and may be most of them."""
    late = one.disorder.late_records if one.disorder is not None else None
    return late is None or (not late.least and late.most > one.records // 2)


def _type_in_short(type_: pa.DataType) -> str:
    """A type, of a struct the first fields."""
    if not pa.types.is_struct(type_):
        return str(type_)
    names = [field.name for field in type_]
    more = len(names) - _FIELDS_IN_SHORT
    shown = names if more <= 1 else [*names[:_FIELDS_IN_SHORT], f"and {more} more"]
    return "{" + ", ".join(shown) + "}"


def _schema_lines(name: str, type_: pa.DataType, depth: int) -> Iterator[str]:
    """The fields of a type, one a line, those of structs below it."""
    indent = "  " * depth
    if not pa.types.is_struct(type_):
        yield f"{indent}{name}: {type_}"
        return
    yield f"{indent}{name}:"
    for field in type_:
        yield from _schema_lines(field.name, field.type, depth + 1)


def _data(found: TopicSummary | UnreadableTopic, *, in_detail: bool = False) -> dict[str, Any]:
    """A topic as JSON data."""
    if isinstance(found, UnreadableTopic):
        return {"topic": found.topic, "error": str(found.error)}
    data = {
        "topic": found.topic,
        "version": found.version,
        "key": str(found.key),
        "value": str(found.value),
        "partitions": len(found.partitions),
        **_figures(found.total),
    }
    if in_detail:
        data["by_partition"] = [
            {"partition": partition, "start_offset": offsets.start, "end_offset": offsets.end, **_figures(one)}
            for partition, (one, offsets) in enumerate(zip(found.partitions, found.offsets, strict=True))
        ]
    return data


def _figures(one: PartitionSummary) -> dict[str, Any]:
    late = one.disorder
    return {
        "records": one.records,
        "files": one.files,
        "size_bytes": one.size_bytes,
        "first_ms": one.first_ms,
        "last_ms": one.last_ms,
        "late_records": None if late is None else late.late_records._asdict(),
        "max_late_ms": None if late is None else late.max_late_ms._asdict(),
    }
