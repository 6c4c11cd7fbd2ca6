"""What a run is audited for: the expectations of the job, and those that every job has."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hindstream.contracts.logical_types import LOGICAL_TYPE
from hindstream.spark.expectations.column_values import ParameterError
from hindstream.spark.expectations.flat_tables import flat_columns, open_staged
from hindstream.spark.expectations.parameters import CONDITION_PARSER, typed
from statelib.commits.run.audit import LEDGER_SCHEMA
from statelib.operators.stateless.operator import Filter, MapValues, Peek
from statelib.operators.suppress.operator import Suppress
from statelib.operators.tables.derived import DerivedTable, ToStream
from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec
from statelib.storage.transfers import look_ahead
from statelib.topics.parquet.schema import HEADERS_COLUMN
from statelib.topology import Processor, Sink

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hindstream.spark.expectations.flat_tables import Column
    from statelib.documents.manifests import CommittedTask, Severity, SinkFile
    from statelib.job.job import Job
    from statelib.storage import Storage
    from statelib.topology import Topology

LEDGER = "ledger"
FILES = "files"
"""Names of the two tables that are audited in every run, beside the sinks' topics."""

_KEEPS_KEYS = (DerivedTable, Filter, MapValues, Peek, ToStream)
"""Operators that give at most one record for each, with its key."""

_TEXT_ABOUT_COLUMNS = ("row_condition", "unexpected_rows_query")


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation with the names of a frame's columns.

    Attributes:
        type: Great Expectations' name.
        kwargs: Its parameters.
        shown: The parameters with the names that a person uses.
        severity: What a failure does.
    """

    type: str
    kwargs: Mapping[str, Any]
    shown: Mapping[str, Any]
    severity: Severity = "fail"


@dataclass(frozen=True, slots=True)
class Suite:
    """The checks of one table.

    Attributes:
        name: The topic, or `LEDGER` or `FILES`.
        checks: What is expected.
        place: The columns that tell a row.
        names: By name in the frame, what a person calls a column.
        part: Which of the table's checks these are, if not all.
        note: What a reader of the results should know.
        share: Of a source's records that are looked at; None: all.
    """

    name: str
    checks: Sequence[Check]
    place: Sequence[str]
    names: Mapping[str, str] = field(default_factory=dict)
    part: str = ""
    note: str = ""
    share: float | None = None

    @property
    def title(self) -> str:
        """In Data Docs and in their paths (no topic's name has a ``~``); the same in every run."""
        return f"{self.name}~{self.part}" if self.part else self.name


def topic_suite(job: Job, topic: str, schema: pa.Schema) -> Suite:
    """The checks of a sink's records: the job's, and that each is one record of its own with a time.

    A sink that gets the final results of windows must have one for each key and window.
    """
    columns = flat_columns(schema)
    checks = [
        _check(columns, "expect_table_columns_to_match_set", column_set=[column.dotted for column in columns]),
        _check(columns, "expect_compound_columns_to_be_unique", column_list=["partition", "offset"]),
        _check(columns, "expect_column_values_to_not_be_null", column="timestamp"),
    ]
    if _has_final_results(job.topology, topic):
        key = [column.dotted for column in columns if column.path[0] == "key"]
        checks.append(_check(columns, "expect_compound_columns_to_be_unique", column_list=key, ignore_row_if="never"))
    checks += _declared(job, topic, columns)
    return _suite(topic, checks, columns)


def source_suite(job: Job, topic: str, schema: pa.Schema) -> Suite:
    """The checks of a source's records: the job's, and no others."""
    columns, share = flat_columns(schema), job.source_samples.get(topic)
    suite = _suite(topic, _declared(job, topic, columns), columns)
    return (
        suite if share is None else replace(suite, share=share, note=f"Run over a sample of the records: {share:.6g}.")
    )


def _declared(job: Job, topic: str, columns: Sequence[Column]) -> list[Check]:
    return [
        replace(_check(columns, declared.type, **declared.kwargs), severity=declared.severity)
        for declared in job.expectations.get(topic, ())
        if declared.type != LOGICAL_TYPE  # the plan has answered it
    ]


def _suite(topic: str, checks: Sequence[Check], columns: Sequence[Column]) -> Suite:
    names = {column.name: column.dotted for column in columns}
    return Suite(topic, tuple(checks), ("partition", "offset"), names)


def _has_final_results(topology: Topology, topic: str) -> bool:
    """Whether the sink gets final results of windows, under the same keys and once at most."""
    nodes = {node.name: node for node in topology.nodes}
    sink = next(node for node in topology.nodes if isinstance(node, Sink) and node.topic == topic)
    node = nodes[sink.parents[0]]
    while isinstance(node, Processor) and isinstance(node.spec, _KEEPS_KEYS):
        node = nodes[node.parents[0]]
    if not isinstance(node, Processor) or len(sink.parents) > 1:
        return False
    if isinstance(node.spec, Suppress):
        return node.spec.suppressed.final_results
    return isinstance(node.spec, WindowedAggregateSpec) and node.spec.final


def _check(columns: Sequence[Column], type_: str, /, **kwargs: Any) -> Check:
    """Translates the dotted names in the parameters that hold names of columns, or text about columns."""
    names = {column.dotted: column.name for column in columns}
    translated = {name: _translated(name, value, names) for name, value in kwargs.items()}
    with suppress(
        ParameterError
    ):  # planning has refused it, see `hindstream.spark.expectations.plan_time`; here it fails as it may
        translated = typed(type_, translated, {column.name: column.type for column in columns})
    if isinstance(translated.get("row_condition"), str):
        translated.setdefault("condition_parser", CONDITION_PARSER)
    return Check(type_, translated, kwargs)


def _translated(parameter: str, value: Any, names: Mapping[str, str]) -> Any:
    if parameter.startswith("column"):
        if isinstance(value, str):
            return names.get(value, value)
        return [names.get(name, name) for name in value] if isinstance(value, (list, tuple, set)) else value
    if parameter in _TEXT_ABOUT_COLUMNS and isinstance(value, str):
        dotted = sorted((name for name in names if "." in name), key=len, reverse=True)
        pattern = "|".join(rf"(?<![\w.]){re.escape(name)}(?![\w.])" for name in dotted)
        return re.sub(pattern, lambda match: names[match[0]], value) if dotted else value
    return _of_frame(value, names) if parameter == "row_condition" else value


def _of_frame(condition: Any, names: Mapping[str, str]) -> Any:
    """A condition that is an object of Great Expectations, with the names of a frame's columns."""
    if hasattr(condition, "conditions"):
        inner = [_of_frame(part, names) for part in condition.conditions]
        return condition.copy(update={"conditions": inner})
    if not hasattr(condition, "column"):
        return condition
    column = type(condition.column)(names.get(condition.column.name, condition.column.name))
    return condition.copy(update={"column": column})


def ledger_suite() -> Suite:
    """Of the run's ledger: wherever records were counted twice, the counts agree."""
    columns = tuple(field.name for field in LEDGER_SCHEMA)
    agrees: dict[str, Any] = {"column": "difference", "min_value": 0, "max_value": 0}
    check = Check("expect_column_values_to_be_between", agrees, agrees)
    return Suite(LEDGER, (check,), columns, {})


FILES_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("first_offset", pa.int64()),
        ("expected_first_offset", pa.int64()),
        ("offsets", pa.int64()),
        ("min_timestamp_ms", pa.int64()),
        ("columns", pa.string()),
        ("expected_columns", pa.string()),
    ]
)
"""Columns of `files_table`: ``offsets`` is how many there are from the first to the last of the file."""


def files_suite() -> Suite:
    """Of the staged files: the archive's columns, and offsets that go on where the last commit ended, without holes."""
    checks: list[tuple[str, dict[str, Any]]] = [
        ("expect_column_pair_values_to_be_equal", {"column_A": "first_offset", "column_B": "expected_first_offset"}),
        ("expect_column_pair_values_to_be_equal", {"column_A": "rows", "column_B": "offsets"}),
        ("expect_column_values_to_be_between", {"column": "min_timestamp_ms", "min_value": 0}),
        ("expect_column_pair_values_to_be_equal", {"column_A": "columns", "column_B": "expected_columns"}),
    ]
    return Suite(FILES, tuple(Check(type_, kwargs, kwargs) for type_, kwargs in checks), ("path",), {})


def files_table(
    warehouse: Storage,
    sinks: Sequence[SinkFile],
    schemas: Mapping[str, pa.Schema],
    before: Mapping[str, CommittedTask],
) -> pa.Table:
    """One row for each staged file.

    Args:
        warehouse: Where the files are; of each the footer is read.
        sinks: The files, those of a partition in order.
        schemas: By topic, the columns that its files should have; a topic that is not there begins with these files.
        before: The tasks as of the last commit.

    Raises:
        CorruptedDataError: A file is missing or damaged.
    """

    def columns_of(sink: SinkFile) -> pa.Schema:
        with open_staged(warehouse, sink.topic, sink.file) as parquet:
            return parquet.schema_arrow

    ends = {place: end for task in before.values() for place, end in task.sink_offsets.items()}
    rows = []
    for sink, columns in zip(sinks, look_ahead(columns_of, sinks, warehouse.requests_at_once), strict=True):
        place, file = f"{sink.topic}/{sink.file.partition}", sink.file
        rows.append({
            "topic": sink.topic,
            "partition": file.partition,
            "path": file.path,
            "rows": file.rows,
            "first_offset": file.first_offset,
            "expected_first_offset": ends.get(place, 0),
            "offsets": file.last_offset - file.first_offset + 1,
            "min_timestamp_ms": file.min_timestamp_ms,
            "columns": _columns(columns),
            "expected_columns": _columns(_of_file(schemas.get(sink.topic, columns), columns)),
        })  # fmt: skip
        ends[place] = file.last_offset + 1
    return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)


def _of_file(schema: pa.Schema, found: pa.Schema) -> pa.Schema:
    """The columns of a topic that a file with the columns ``found`` should have: headers if there are any."""
    return pa.schema([field for field in schema if field.name != HEADERS_COLUMN or field.name in found.names])


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {_type(field.type)}" for field in schema)


def _type(type_: pa.DataType) -> str:
    """A type as text, without the names of lists' elements: each writer of Parquet has its own."""
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{field.name}: {_type(field.type)}' for field in type_)}>"
    if pa.types.is_map(type_):
        return f"map<{_type(type_.key_type)}, {_type(type_.item_type)}>"
    return f"list<{_type(type_.value_type)}>" if pa.types.is_list(type_) else str(type_)
