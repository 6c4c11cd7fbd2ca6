"""``hindstream show``: records of a topic's archive, whoever has written it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer

from hindstream.console.keys import keys_of
from hindstream.console.rows import rows_of, write_rows
from hindstream.console.serving import serving_sentences
from hindstream.slices import time_of
from statelib.commits import topic_path
from statelib.commits.publication.topic_writers import sought, writer_of
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.storage.storage import existing_storage
from statelib.topics.look_up import Stretch, find, partitions_of
from statelib.topics.version import TopicVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.console.rows import RowFormat
    from statelib.settings.settings import Settings

_COLUMNS = ["partition", "offset", "timestamp", "key", "value", "headers"]


def print_records(
    topic: str,
    key: str | None,
    settings: Settings,
    *,
    start: str | None = None,
    end: str | None = None,
    partition: int | None = None,
    limit: int | None = None,
    output: RowFormat = "table",
) -> None:
    """Prints records of a topic, by partition and offset.

    Args:
        topic: Its name.
        key: Text; JSON if keys are no text. Of a windowed key the plain one, or all of it. None: any key.
        settings: See `Settings`.
        start: The first offset of each partition, or the least timestamp in ISO 8601; None: no bound.
        end: The offset or timestamp before which records end.
        partition: The only one to look in; None: all, a key's own first, and no other if it is there.
        limit: How many records at most; None: all.
        output: How.

    Raises:
        ConfigurationError: There is no such topic or partition; what is given is no key, offset or time.
        InputError: A file of the topic cannot be read.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    with sought(warehouse, topic):
        archive = TopicVersion.open(warehouse.uri(topic_path(topic)), options=warehouse.options)
    within = _bounded(_bounded(Stretch(), "from", start), "to", end)
    keys = [] if key is None else keys_of(key, archive.table_schema.field("key").type)
    rows = _rows(archive, [partition] if partition is not None else None, within, keys)
    shown = rows if limit is None else islice(rows, limit)
    names = list(_COLUMNS)
    if output == "table":
        taken = list(shown)
        shown = ({**row, "headers": _headers(row["headers"])} for row in taken)
        if all(row["headers"] is None for row in taken):
            names.remove("headers")
    of = "" if key is None else f" with the key {key}"
    write_rows(shown, names, f"{topic}, version {archive.version}", output, nothing=f"{topic} has no record{of} there.")
    if output == "table" and (writer := writer_of(warehouse, topic)) is not None:
        for sentence in serving_sentences(warehouse, writer):
            typer.echo(f"{writer} has written this. {sentence}")
    if limit is not None and next(rows, None) is not None:
        typer.echo(f"The first {counted(limit, 'record')}; --limit says how many.", err=output != "table")


def _headers(headers: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """By their names; a name may come twice."""
    return None if headers is None else [{header["key"]: header["value"]} for header in headers]


def _rows(
    archive: TopicVersion, partitions: list[int] | None, within: Stretch, keys: list[Any]
) -> Iterator[dict[str, Any]]:
    for partition in partitions or partitions_of(archive, keys):
        found = False
        for table in find(archive, partition, within, keys):
            whole = table.append_column("partition", pa.repeat(pa.scalar(partition, pa.int32()), table.num_rows))
            for batch in whole.select(_COLUMNS).combine_chunks().to_batches():
                yield from rows_of(batch)
            found = True
        if found and keys:
            return


def _bounded(within: Stretch, option: str, text: str | None) -> Stretch:
    """The stretch with one bound more: an offset or a time."""
    side = "start" if option == "from" else "end"
    if text is None:
        return within
    if text.isdecimal():
        return replace(within, **{f"{side}_offset": int(text)})
    time = time_of(option, text, None)
    if time.tzinfo is None:
        step = "write it like 2013-06-01T12:00Z, or give an offset"
        raise ConfigurationError("the time has no time zone", setting=f"--{option}", next_step=step)
    return replace(within, **{f"{side}_ms": int(time.timestamp() * 1000)})
