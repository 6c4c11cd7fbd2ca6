"""What a topic suggests for a job over it: its key, a number, an id, windows and grace; chosen, and said why.

Names and types are those of the topic. Which fields are empty and which repeat is told by its first records, how late
records come by `statelib.topics.summary`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hindstream.console.numbers import percent_text
from statelib.columns.arrow_buffers import is_any_list
from statelib.columns.windowed_type import is_windowed_struct
from statelib.errors.counted import counted
from statelib.records.key_column import KeyColumn
from statelib.topics.partitioner import partition_for
from statelib.topics.summary import scanned, summarize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hindstream.projects.source_text import FieldPath
    from statelib.topics.version import TopicVersion

Unit = Literal["minutes", "hours", "days"]

Choice = Literal["group", "category", "table", "places", "number", "id", "repeats", "times"]

UNIT_MS: dict[Unit, int] = {"minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}

_GRACES: tuple[tuple[int, Unit], ...] = (
    (1, "minutes"), (10, "minutes"), (1, "hours"), (6, "hours"), (1, "days"), (2, "days"), (7, "days"), (30, "days"),
)  # fmt: skip
_MOST_REPEATS = 0.1
"""Where more ids come again, events share them: those of customers, not of orders."""

_WINDOWS = 20
"""So many windows there should be, at the least."""

_SAMPLED = 2_000
_PARTITIONS_SAMPLED = 4
_SCANNED = 20_000_000
"""A topic with more records is not read to see how late they come."""

_OF_PLACES = "Keys are not in the partitions that Kafka's producer chooses: records are repartitioned first."

_IS_ID = re.compile(r"(?:^|[^a-z])(?:id|uuid|guid|key|no|nr|number|ref)$|[#№]\s*$", re.IGNORECASE)
_IS_NAME = re.compile(
    r"(?:^|[^a-z])(?:code|zip|postcode|year|month|day|hour|minute|version|offset|partition|lat|lon|latitude|longitude"
    r"|timestamp|time|ts)$",
    re.IGNORECASE,
)
_IS_MEASURE = re.compile(
    r"amount|price|total|value|cost|fee|revenue|quantity|qty|count|size|bytes|duration|delay|latency|ms$|seconds"
    r"|temp|speed|distance|score|weight|rate|balance",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a project's job is made of.

    Attributes:
        topic: The source.
        key_type: Of its keys.
        value_type: Of its values.
        group_by: The field to group by; None: the topic's key, or one group where there is none.
        has_keys: Whether the topic's records have keys.
        is_misplaced: Whether keys are in other partitions than those that Kafka's producer in Java chooses.
        is_table: Whether records are versions of rows: some have no value, and delete the row of their key.
        category: A text of the values that repeats; None: there is none.
        number: A numeric field to add up; None: there is none.
        id: A field that tells events apart; None: there is none.
        repeats: Which share of the first records have an id that came before; 0 where so many do that it is no id.
        window: Size of the windows.
        grace: How late records may come.
        reasons: Why the group, the number, the id and the times are what they are, a sentence each.
    """

    topic: str
    key_type: pa.DataType
    value_type: pa.DataType
    group_by: FieldPath | None
    has_keys: bool
    is_misplaced: bool
    is_table: bool
    category: FieldPath | None
    number: FieldPath | None
    id: FieldPath | None
    repeats: float
    window: tuple[int, Unit]
    grace: tuple[int, Unit]
    reasons: Mapping[Choice, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of the values, and what the first records have in it."""

    path: FieldPath
    type: pa.DataType
    values: pa.ChunkedArray

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "value"

    @property
    def shown(self) -> str:
        return ".".join(self.path) or "value"

    @property
    def is_empty(self) -> bool:
        """Whether there are records, and none has a value here."""
        return len(self.values) > 0 and self.values.null_count == len(self.values)

    @property
    def filled(self) -> float:
        """Which share of the records has a value; 1 where there are none."""
        return 1 - self.values.null_count / len(self.values) if len(self.values) else 1.0

    @property
    def distinct(self) -> float:
        """Which share of the values is another than those before; 1 where there are none."""
        filled = self.values.drop_null()
        return len(pc.unique(filled)) / len(filled) if len(filled) else 1.0

    @property
    def is_number(self) -> bool:
        return bool(pt.is_integer(self.type) or pt.is_floating(self.type) or pt.is_decimal(self.type))

    @property
    def is_id(self) -> bool:
        return bool(_IS_ID.search(re.sub(r"([a-z])(Id|Key|No|Nr)$", r"\1_\2", self.name)))


def shape_of(archive: TopicVersion, *, is_changes: bool = False) -> Shape:
    """What a topic suggests.

    Args:
        archive: The topic.
        is_changes: Whether its records are known to be changes of a database's rows.

    Raises:
        InputError: A file of it cannot be read.
    """
    records = _first_records(archive)
    fields = list(_fields((), archive.table_schema.field("value").type, records["value"]))
    keys = records["key"]
    has_keys = not len(keys) or keys.null_count < len(keys)
    is_misplaced = has_keys and _is_misplaced(records, archive.partitions)
    group = None if has_keys else _group(fields)
    category = next(iter(_categories(fields)), None)
    is_table = is_changes or records["value"].null_count > 0
    number = _number([one for one in fields if one is not group])
    found = _id(fields)
    window, grace, of_times = _times(archive)
    repeats = 0.0 if found is None or found is group else 1 - found.distinct
    repeats = repeats if repeats <= _MOST_REPEATS else 0.0
    return Shape(
        topic=archive.topic,
        key_type=archive.table_schema.field("key").type,
        value_type=archive.table_schema.field("value").type,
        group_by=None if group is None else group.path,
        has_keys=has_keys,
        is_misplaced=is_misplaced,
        is_table=is_table,
        category=None if category is None else category.path,
        number=None if number is None else number.path,
        id=None if found is None else found.path,
        repeats=repeats,
        window=window,
        grace=grace,
        reasons={
            "group": _of_group(group, has_keys=has_keys),
            "table": _of_table(is_table=is_table),
            "category": _of_category(category),
            **({"places": _OF_PLACES} if is_misplaced else {}),
            "number": _of_number(number),
            "id": _of_id(found, has_keys=has_keys),
            **({"repeats": said} if (said := _of_repeats(found, repeats, records)) else {}),
            "times": of_times,
        },
    )


def example_shape(topic: str) -> Shape:
    """That of a project without a topic: orders, as `hindstream.projects.sample_files` has them."""
    names = ("order_id", "customer")
    fields = [*((name, pa.string()) for name in names), ("amount", pa.float64()), ("channel", pa.string())]
    day: tuple[int, Unit] = (1, "days")
    return Shape(
        topic=topic,
        key_type=pa.string(),
        value_type=pa.struct(fields),
        group_by=None,
        has_keys=True,
        is_misplaced=False,
        is_table=False,
        category=("channel",),
        number=("amount",),
        id=("order_id",),
        repeats=0.02,
        window=day,
        grace=day,
    )


def _first_records(archive: TopicVersion) -> pa.Table:
    """Keys, values, timestamps and partitions of the first records of some partitions."""
    names = ["key", "value", "timestamp"]
    tables = []
    for partition in range(archive.partitions):
        reader = archive.reader(partition, columns=names, batch_rows=_SAMPLED // _PARTITIONS_SAMPLED)
        for batch in islice(reader, 1):
            place = pa.repeat(pa.scalar(partition, pa.int32()), batch.num_rows)
            tables.append(pa.Table.from_batches([batch]).select(names).append_column("partition", place))
        if len(tables) == _PARTITIONS_SAMPLED:
            break
    schema = pa.schema([*(archive.table_schema.field(name) for name in names), ("partition", pa.int32())])
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _is_misplaced(records: pa.Table, partitions: int) -> bool:
    """Whether a job would have to repartition records before it needs their keys; see `statelib.task.sinks`.

    What a windowed aggregation has written is placed by the keys without their windows, and taken as it is.
    """
    keys = records["key"].combine_chunks()
    if is_windowed_struct(keys.type):
        return False
    chosen = partition_for(KeyColumn(keys).serialized(), partitions)
    elsewhere = (chosen != records["partition"].to_numpy()) & keys.is_valid().to_numpy(zero_copy_only=False)
    return bool(elsewhere.any())


def _fields(path: FieldPath, type_: pa.DataType, values: pa.ChunkedArray) -> Iterator[_Field]:
    """The fields of values that are no structs, lists or maps."""
    if pt.is_struct(type_):
        for inner in type_:
            yield from _fields((*path, inner.name), inner.type, pc.struct_field(values, [inner.name]))
    elif not (is_any_list(type_) or pt.is_map(type_)):
        yield _Field(path, type_, values)


def _group(fields: list[_Field]) -> _Field | None:
    """A field to group by: a text that repeats, else an id, else any text or whole number."""
    usable = [one for one in fields if not one.is_empty and (pt.is_string(one.type) or pt.is_integer(one.type))]
    return next(iter([*_categories(fields), *(one for one in usable if one.is_id), *usable]), None)


def _categories(fields: list[_Field]) -> list[_Field]:
    """Texts that repeat."""
    texts = [one for one in fields if not one.is_empty and pt.is_string(one.type)]
    return [one for one in texts if one.distinct <= 0.5]  # noqa: PLR2004 - half


def _number(fields: list[_Field]) -> _Field | None:
    """A number that is worth a sum: one that is called like a measure, else one with a fraction, else the first."""
    numbers = [one for one in fields if one.is_number and not one.is_empty and not one.is_id]
    measures = [one for one in numbers if not _IS_NAME.search(one.name)]

    def rank(one: _Field) -> tuple[bool, bool]:
        return not _IS_MEASURE.search(one.name), pt.is_integer(one.type)

    return min(measures, key=rank, default=None)


def _id(fields: list[_Field]) -> _Field | None:
    """What tells events apart: a field that is called like an id, and that of the most different values."""
    texts = [one for one in fields if not one.is_empty and (pt.is_string(one.type) or pt.is_integer(one.type))]
    return max((one for one in texts if one.is_id and one.filled >= 0.5), key=lambda one: one.distinct, default=None)  # noqa: PLR2004 - half


def _times(archive: TopicVersion) -> tuple[tuple[int, Unit], tuple[int, Unit], str]:
    """Size of windows, grace, and why."""
    summary = summarize(archive)
    if summary.total.records <= _SCANNED:
        summary = scanned(archive, summary)
    first, last, disorder = summary.total.first_ms, summary.total.last_ms, summary.total.disorder
    span_ms = last - first if first is not None and last is not None else 0
    units: tuple[Unit, ...] = ("days", "hours", "minutes")
    unit = next((one for one in units if span_ms >= _WINDOWS * UNIT_MS[one]), units[-1])
    if disorder is None:
        return (1, unit), (1, "days"), "Nobody knows how late records come: grace is a day."
    late_ms = disorder.max_late_ms.most
    days = -(-late_ms // UNIT_MS["days"])
    grace = next(((n, of) for n, of in _GRACES if n * UNIT_MS[of] >= late_ms), (days, "days"))
    late = disorder.late_records
    if not late.most:
        return (1, unit), (1, "days"), "No record is late so far; later loads may bring late ones: grace is 1 day."
    if late.exact is None:
        how = f"At most {counted(late.most, 'record is', 'records are')} late"
    else:
        how = f"{counted(late.most, 'record is', 'records are')} late"
    size, of = grace
    return (1, unit), grace, f"{how}, by up to {late_ms / 1000:,.0f} s: grace is {counted(size, of[:-1])}."


def _of_group(group: _Field | None, *, has_keys: bool) -> str:
    if has_keys:
        return "Records are grouped by the topic's key."
    if group is None:
        return "The topic has no keys, and no field to group by: all records are one group."
    return f"The topic has no keys: records are grouped by {group.shown}."


def _of_table(*, is_table: bool) -> str:
    if is_table:
        return "The topic is a table: the latest record of a key is its row, and one without a value deletes it."
    return "The latest record of a key is taken for its row."


def _of_category(category: _Field | None) -> str:
    if category is None:
        return "No text of the values repeats: all rows are counted together."
    return f"Rows are counted by {category.shown}, a text that repeats."


def _of_id(found: _Field | None, *, has_keys: bool) -> str:
    if found is not None:
        return f"Events are told apart by {found.shown}{' and their key' if has_keys else ''}."
    return f"No field is called like an id: events are told apart by {'their key' if has_keys else 'the first field'}."


def _of_repeats(found: _Field | None, repeats: float, records: pa.Table) -> str | None:
    """What comes again; None: nothing does."""
    if found is not None and repeats:
        return f"{found.shown} comes again in {percent_text(repeats, 1)} of the first records: these are dropped."
    rows = [json.dumps(row, default=str) for row in records.to_pylist()]
    copies = len(rows) - len(set(rows))
    if not copies:
        return None
    share = percent_text(copies, len(rows))
    return f"{share} of the first records are like one before, and count again: see deduplicate() for dropping them."


def _of_number(number: _Field | None) -> str:
    return (
        f"{number.shown} is added up." if number else "No field is a number that is worth a sum: records are counted."
    )
