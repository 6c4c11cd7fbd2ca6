"""Views of SQL that have what the readers of a job read: the records of whichever job serves them, whole.

A view reads the Delta tables of the topics themselves, by partitions and offsets. What a fork has of the jobs before it
ends at offsets that stay; its own table is read to its end. So a view is right as long as the same job serves, however
that goes on, is rolled back, or has its files merged: only a promotion needs the views made again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statelib.commits.archives import open_archive_if_present
from statelib.commits.versions.promotion import serving
from statelib.commits.versions.sink_history import own_topics, sink_history
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hindstream.sql.dialects import Dialect
    from statelib.commits.versions.sink_history import Segment
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


@dataclass(frozen=True)
class View:
    """A view of a sink.

    Attributes:
        sink: The sink.
        name: What the view is called.
        sql: The statement that makes it, or puts it in the place of a former one.
        is_complete: Whether later records come into it by themselves; not so while the job that serves has written none
            to the sink.
    """

    sink: str
    name: str
    sql: str
    is_complete: bool


@dataclass(frozen=True)
class Views:
    """The views of all sinks of a job.

    Attributes:
        job: The job.
        serving: Whose records they have.
        views: By sink; a sink without any record has none.
    """

    job: str
    serving: str
    views: tuple[View, ...]


def views_of(warehouse: Storage, job: str, dialect: Dialect, *, schema: str | None = None) -> Views:
    """The views of what the readers of a job read now.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        dialect: The engine that makes them.
        schema: Where it makes them: ``schema`` or ``catalog.schema``; None: in its current one.

    Raises:
        ConfigurationError: There is no such job; a topic does not show yet what the job that serves has of it; or two
            sinks would have one view.
        CorruptedDataError: A document of the job is damaged.
    """
    by = serving(warehouse, job)
    own = own_topics(warehouse, by)
    made: dict[str, View] = {}
    for sink, segments in sink_history(warehouse, by).items():
        name = _view_name(sink, dialect, schema)
        if (other := made.get(name)) is not None:
            what = f"the view {name} would be that of {other.sink} too"
            raise ConfigurationError(what, job=job, topic=sink, next_step="rename one of the sinks")
        archives = _opened(warehouse, by, segments, own.get(sink))
        if archives:
            sql = f"CREATE OR REPLACE VIEW {name} AS\n{_select(archives, segments, own.get(sink), dialect)}"
            made[name] = View(sink, name, sql, is_complete=own.get(sink) in archives)
    return Views(job, by, tuple(made.values()))


def _view_name(sink: str, dialect: Dialect, schema: str | None) -> str:
    """Catalogs of Spark take no other characters than these."""
    view = re.sub(r"\W", "_", sink, flags=re.ASCII)
    return ".".join(map(dialect.name, [*(schema.split(".") if schema else ()), f"{view}_current"]))


def _opened(warehouse: Storage, by: str, segments: Sequence[Segment], own: str | None) -> dict[str, TopicArchive]:
    """The archives of a sink by topic, oldest first; of those that there are.

    Raises:
        ConfigurationError: One does not show yet what ``by`` has of it.
    """
    topics = dict.fromkeys([*(part.topic for part in segments), *([own] if own is not None else [])])
    found = {topic: archive for topic in topics if (archive := open_archive_if_present(warehouse, topic)) is not None}
    for part in segments:
        if part.topic not in found or found[part.topic].end_offsets()[part.partition] < part.end_offset:
            what = f"the topic does not show all that {by} has of it yet"
            raise ConfigurationError(what, job=by, topic=part.topic, next_step="publish it: hindstream publish")
    return found


def _select(
    archives: Mapping[str, TopicArchive], segments: Sequence[Segment], own: str | None, dialect: Dialect
) -> str:
    """The records of all topics of a sink, with offsets that count through, as `hindstream.read` has them."""
    want = _types(list(archives.values())[-1])
    behind: Counter[int] = Counter()
    selects = []
    for topic, archive in archives.items():
        parts = [part for part in segments if part.topic == topic]
        have = _types(archive)
        columns = [dialect.name("partition"), _shifted(dialect, behind), dialect.name("timestamp")]
        for name in ("key", "value"):
            quoted = dialect.name(name)
            read = dialect.read_as(quoted, have[name], want[name])
            columns.append(read if read == quoted else f"{read} AS {quoted}")
        columns.append(dialect.name("headers"))
        text = f"SELECT {', '.join(columns)}\nFROM {dialect.table(archive.uri)}"
        selects.append(
            text if topic == own else f"{text}\nWHERE {' OR '.join(_is_in(part, dialect) for part in parts)}"
        )
        behind.update({part.partition: len(part) for part in parts})
    return "\nUNION ALL\n".join(selects)


def _types(archive: TopicArchive) -> dict[str, Any]:
    """The table's columns and their types, as Delta has them."""
    return {field["name"]: field["type"] for field in json.loads(archive.schema_json)["fields"]}


def _shifted(dialect: Dialect, behind: Counter[int]) -> str:
    """The offset that a record gets behind those of the topics before."""
    offset, partition = dialect.name("offset"), dialect.name("partition")
    shifts = {p: by for p, by in sorted(behind.items()) if by}
    if not shifts:
        return offset
    cases = " ".join(f"WHEN {p} THEN {by}" for p, by in shifts.items())
    return f"{offset} + CASE {partition} {cases} ELSE 0 END AS {offset}"


def _is_in(part: Segment, dialect: Dialect) -> str:
    offset, partition = dialect.name("offset"), dialect.name("partition")
    begin = f"{offset} >= {part.first_offset} AND " if part.first_offset else ""
    return f"{partition} = {part.partition} AND {begin}{offset} < {part.end_offset}"
