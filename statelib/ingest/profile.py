"""What a load would come to, told by a sample of the new files. Nothing is written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from statelib.ingest.envelopes import placed
from statelib.ingest.formats.rows import plain
from statelib.ingest.formats.text_values import COMMA_NUMBER
from statelib.ingest.sample import MOST_FILES, MOST_SHOWN, Sample

if TYPE_CHECKING:
    from collections.abc import Collection

    from statelib.ingest.formats.rows import BadRow
    from statelib.ingest.plan import LoadPlan
    from statelib.ingest.sample import TimeProfile

_SURE_COMMA = r"^\s*[+-]?(\d{1,3}(\.\d{3})+,\d+|\d+,(\d{1,2}|\d{4,}))\s*$"
_NUMBER = r"^\s*[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$"
"""What a number would not change: ``00123`` is text."""

_ID = re.compile(r"(^|_|-|\.)(id|uuid|guid)$|[a-z]Id$|[a-z]ID$|[#№]\s*$")


@dataclass(frozen=True, slots=True)
class FieldProfile:
    """A field of the rows.

    Attributes:
        name: Its name.
        type: The type in the file, or as which text is read.
        nulls: How many rows of the sample have none.
        numbers: Of text, how many rows of the sample are numbers.
        comma_numbers: Of text in CSV, how many are numbers with a decimal comma.
    """

    name: str
    type: pa.DataType
    nulls: int
    numbers: int
    comma_numbers: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What a load would come to.

    Attributes:
        files: How many files are new, and `known` how many were loaded before.
        known: The same.
        moved: How many of the latter were loaded under another path or time.
        size_bytes: Of the new files.
        rows: How many rows they have, about.
        sampled: How many rows this profile is of.
        deletions: How many of them have no value, since a row of a database is gone. Fields, ids and repeated rows are
            those of the others.
        fields: Of the rows.
        times: The timestamps.
        distinct_keys: In the sample.
        top_keys: The keys with most rows, and how many.
        null_keys: Rows without a key.
        scattered_keys: Keys that are in several partitions, since the files tell partitions.
        layout: How the topic lies in the files, as in `statelib.job.lake_topic.LakeTopic`.
        partition_rows: By partition, how many records it would get, about.
        ids: By field that looks like an id, how many rows of the sample repeat one.
        repeated_rows: Rows of the sample that are alike in all fields with another one.
        unread: Rows beside the sample that cannot be read.
        bad_rows: Rows that cannot become records: those, and rows of the sample.
        bad_examples: The first ones, with their files.
    """

    files: int
    known: int
    moved: int
    size_bytes: int
    rows: int
    sampled: int
    deletions: int
    fields: tuple[FieldProfile, ...]
    times: TimeProfile
    distinct_keys: int
    top_keys: tuple[tuple[object, int], ...]
    null_keys: int
    scattered_keys: int
    layout: str
    partition_rows: tuple[int, ...]
    ids: tuple[tuple[str, int], ...]
    repeated_rows: int
    unread: int
    bad_rows: int
    bad_examples: tuple[tuple[str, BadRow], ...]

    @property
    def valued(self) -> int:
        """How many rows of the sample have a value."""
        return self.sampled - self.deletions


def profile_of(plan: LoadPlan, now_ms: int) -> Profile:
    """Reads a sample of the new files: 50,000 rows each of up to eight of them.

    Args:
        plan: The load's.
        now_ms: The wall clock.

    Raises:
        InputError: A file cannot be read.
    """
    sample = Sample(plan, now_ms)
    own_fields = [field for field in plan.schema if not placed.is_beside(field.name)]
    has_csv = any(plan.reader.files.format_of(file) == "csv" for file in plan.files[:MOST_FILES])
    together = _together([pa.schema(own_fields).empty_table(), *sample.tables])
    looked_at = max(sample.rows + sample.unread, 1)
    of_rows = _comparable(pa.chunked_array(sample.keys, plan.shape.key_type))
    counts: list[dict[str, Any]] = pc.value_counts(of_rows).to_pylist()
    top = sorted(counts, key=lambda one: -one["counts"])
    return Profile(
        files=len(plan.files),
        known=plan.known,
        moved=plan.moved,
        size_bytes=plan.size_bytes,
        rows=sample.rows_in_all,
        sampled=sample.rows,
        deletions=sample.deletions,
        fields=tuple(
            FieldProfile(n, c.type, c.null_count, _numbers(c), _comma_numbers(c) if has_csv else 0)
            for n, c in zip(together.column_names, together.columns, strict=True)
        ),
        times=sample.times,
        distinct_keys=sum(1 for one in top if one["values"] is not None),
        top_keys=tuple((one["values"], one["counts"]) for one in top if one["values"] is not None)[:MOST_SHOWN],
        null_keys=next((one["counts"] for one in top if one["values"] is None), 0),
        scattered_keys=_scattered(of_rows, pa.chunked_array(sample.places, pa.int32())),
        layout=plan.reader.layout,
        partition_rows=tuple(round(count * sample.rows_in_all / looked_at) for count in sample.partition_rows),
        ids=tuple((name, _repeats(together[name])) for name in together.column_names if _ID.search(name)),
        repeated_rows=_repeated_rows(together),
        unread=sample.unread,
        bad_rows=sample.bad_rows,
        bad_examples=tuple(sample.bad),
    )


def _comparable(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Keys, those with several fields as JSON."""
    if not pa.types.is_nested(keys.type):
        return keys
    texts = [None if key is None else json.dumps(key, default=str) for key in keys.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _scattered(keys: pa.ChunkedArray, partitions: pa.ChunkedArray) -> int:
    """How many keys are in several partitions."""
    pairs = pa.table({"key": keys, "partition": partitions}).group_by(["key", "partition"]).aggregate([])
    by_key = pairs.filter(pairs["key"].is_valid()).group_by("key").aggregate([("partition", "count")])
    return int(pc.sum(pc.greater(by_key["partition_count"], 1)).as_py() or 0)


def _together(tables: list[pa.Table]) -> pa.Table:
    """One table; a column that has several types, such as the timestamps of several formats, is shown as text."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        types: dict[str, set[str]] = {}
        for field in (field for table in tables for field in table.schema if not pa.types.is_null(field.type)):
            types.setdefault(field.name, set()).add(str(field.type))
        mixed = {name for name, found in types.items() if len(found) > 1}
        return pa.concat_tables([_as_text(table, mixed) for table in tables], promote_options="permissive")


def _as_text(table: pa.Table, names: Collection[str]) -> pa.Table:
    for n, name in enumerate(table.column_names):
        if name in names:
            texts = [None if not value.is_valid else str(plain(value)) for value in table[name]]
            table = table.set_column(n, name, pa.array(texts, pa.string()))
    return table


def _numbers(column: pa.ChunkedArray) -> int:
    """How many texts are numbers; 0 of what is no text."""
    if not pa.types.is_string(column.type):
        return 0
    return int(pc.sum(pc.match_substring_regex(column, _NUMBER)).as_py() or 0)


def _comma_numbers(column: pa.ChunkedArray) -> int:
    """How many texts are numbers with a decimal comma; 0 where each comma may stand between thousands instead."""
    if not pa.types.is_string(column.type) or not pc.any(pc.match_substring_regex(column, _SURE_COMMA)).as_py():
        return 0
    return int(pc.sum(pc.match_substring_regex(column, COMMA_NUMBER)).as_py() or 0)


def _repeats(column: pa.ChunkedArray) -> int:
    if pa.types.is_nested(column.type):
        return 0
    distinct: int = pc.count_distinct(column, mode="only_valid").as_py()
    return len(column) - int(column.null_count) - distinct


def _repeated_rows(rows: pa.Table) -> int:
    flat = [name for name in rows.column_names if not pa.types.is_nested(rows.schema.field(name).type)]
    if not rows.num_rows or len(flat) < len(rows.column_names):
        return 0
    distinct: int = rows.group_by(flat).aggregate([]).num_rows
    return int(rows.num_rows) - distinct
