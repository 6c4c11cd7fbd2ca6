"""What a job expects of its topics, checked before anything is replayed: names, parameters, columns and their types.

Great Expectations finds a wrong name when it runs, after the replay. So its names are here too
(`hindstream.spark.expectations.known_parameters`); an expectation of the job's own, registered by the module that
defines the job, is looked up in the library's registry, which has been imported then.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from hindstream.contracts.logical_types import LOGICAL_TYPE, holds, type_at
from hindstream.spark.expectations.column_values import ParameterError
from hindstream.spark.expectations.flat_tables import flat_columns
from hindstream.spark.expectations.known_parameters import PARAMETERS
from hindstream.spark.expectations.parameters import CONDITION_PARSER, typed
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.errors.did_you_mean import next_to
from statelib.errors.kinds import ConfigurationError
from statelib.task.type_inference import topic_types
from statelib.topics.parquet.schema import topic_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from statelib.job.job import Expectation, Job
    from statelib.settings.semantics import Semantics
    from statelib.storage import Storage

_OF_ALL = frozenset({"meta", "notes", "description", "row_condition", "condition_parser"})
"""Parameters that any expectation may have."""

_OWN = {LOGICAL_TYPE: dict.fromkeys(("column", "logical_type"), True)}
"""Expectations that are answered here, and no part of an audit."""

_CHOICES = {
    "ignore_row_if": (
        "both_values_are_missing", "either_value_is_missing", "neither",
        "all_values_are_missing", "any_value_is_missing", "never",
    ),
    "match_on": ("any", "all"),
}  # fmt: skip
_OF_ONE_ENGINE = {
    **dict.fromkeys(
        (
            "expect_column_values_to_match_like_pattern",
            "expect_column_values_to_match_like_pattern_list",
            "expect_column_values_to_not_match_like_pattern",
            "expect_column_values_to_not_match_like_pattern_list",
        ),
        "use expect_column_values_to_match_regex, or another one of regular expressions",
    ),
    **dict.fromkeys(
        ("expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list", "expect_column_type_to_be"),
        "leave it out: every run compares the types of a topic's columns with those of its archive",
    ),
    "expect_column_kl_divergence_to_be_less_than": "use expect_column_quantile_values_to_be_between",
}
"""Expectations that not every engine answers, or each in its own words; and the way round."""

_ABOUT_ALL_COLUMNS = frozenset({
    "expect_table_columns_to_match_set",
    "expect_table_columns_to_match_ordered_list",
})  # fmt: skip
_HOW_TO_SAY_A_CONDITION = (
    """write it as 'col("value.n") > 1', or with great_expectations.expectations.row_conditions.Column"""
)
_IN_CONDITION = re.compile(r"""\bcol\(\s*["']([^"']+)["']\s*\)""")


def check_expectations(job: Job, warehouse: Storage, semantics: Semantics = "kip") -> int:
    """Makes sure that all that a job expects can be asked of its topics; says how many expectations there are.

    Args:
        job: The job.
        warehouse: Root of all durable data. Of the archives only schemas are looked at.
        semantics: See `Semantics`.

    Raises:
        ConfigurationError: There is no such expectation, parameter or column, or one does not fit another; a source has
            no archive, or an operator cannot work on what it would get.
    """
    for problem in expectation_problems(job, warehouse, semantics):
        raise problem
    return sum(map(len, job.expectations.values()))


def expectation_problems(job: Job, warehouse: Storage, semantics: Semantics = "kip") -> Iterator[ConfigurationError]:
    """Everything that cannot be asked of a job's topics. Args and errors raised: see `check_expectations`."""
    possible: list[tuple[str, Expectation]] = []
    for topic, expectations in job.expectations.items():
        for expectation in expectations:
            try:
                check_parameters(topic, expectation)
            except ConfigurationError as problem:
                yield problem
            else:
                possible.append((topic, expectation))
    schemas = topic_schemas(job, warehouse, dict(possible), semantics)
    for topic, expectation in possible:
        try:
            _check_columns(topic, expectation, schemas[topic])
        except ConfigurationError as problem:
            yield problem


def check_parameters(topic: str, expectation: Expectation) -> None:
    """Makes sure that Great Expectations has an expectation, and that it has these parameters.

    Args:
        topic: The source or sink.
        expectation: What is expected of it.

    Raises:
        ConfigurationError: It has not.
    """
    known = _OWN.get(expectation.type) or PARAMETERS.get(expectation.type)
    if known is None:
        known = _registered(expectation.type)
    if known is None:
        step = _meant(expectation.type, PARAMETERS, "all of them are at https://greatexpectations.io/expectations")
        raise _error(topic, f"Great Expectations has no {expectation.type}", step)
    if expectation.type in _OF_ONE_ENGINE:
        what = f"{expectation.type} has no answer that pandas and Spark agree on, and either may run an audit"
        raise _error(topic, what, _OF_ONE_ENGINE[expectation.type])
    for name in expectation.kwargs:
        if name not in known and name not in _OF_ALL:
            what = f"{expectation.type} has no parameter {name}"
            raise _error(topic, what, _meant(name, known, _list("it has", known)))
    missing = [name for name, is_required in known.items() if is_required and name not in expectation.kwargs]
    if missing:
        what = f"{expectation.type} needs {' and '.join(missing)}"
        raise _error(topic, what, _list("its parameters are", known))
    for name, choices in _CHOICES.items():
        if expectation.kwargs.get(name, choices[0]) not in choices:
            what = f"{expectation.type} has {name} {expectation.kwargs[name]!r}"
            raise _error(topic, what, _meant(str(expectation.kwargs[name]), choices, _list("it can be", choices)))
    mostly = expectation.kwargs.get("mostly", 1)
    if isinstance(mostly, bool) or not isinstance(mostly, (int, float)) or not 0 <= mostly <= 1:
        raise _error(topic, f"{expectation.type} has mostly {mostly!r}", "give the least fraction of rows, from 0 to 1")


def topic_schemas(
    job: Job, warehouse: Storage, topics: Iterable[str], semantics: Semantics = "kip"
) -> dict[str, pa.Schema]:
    """The columns of sources and sinks: those of their archives, or what the topology gives where a sink has none yet.

    Raises:
        ConfigurationError: A source has no archive, or an operator cannot work on what it would get.
    """
    schemas: dict[str, pa.Schema] = {}
    types: dict[str, pa.Schema] | None = None
    for topic in topics:
        is_source = topic in job.topology.source_topics
        archive = open_archive(warehouse, topic) if is_source else open_archive_if_present(warehouse, topic)
        if archive is not None:
            schemas[topic] = archive.schema
            continue
        if types is None:
            readers = {source: open_archive(warehouse, source).reader(0, 0, 0) for source in job.topology.source_topics}
            types = topic_types(job.topology, readers, semantics)
        schemas[topic] = topic_schema(types[topic].field("key").type, types[topic].field("value").type)
    return schemas


def _check_columns(topic: str, expectation: Expectation, schema: pa.Schema) -> None:
    """Makes sure that the topic has the columns, and that parameters fit their types."""
    if expectation.type == LOGICAL_TYPE:
        _check_type(topic, schema, **expectation.kwargs)
        return
    columns = flat_columns(schema)
    types = {column.dotted: column.type for column in columns} | {column.name: column.type for column in columns}
    names = [column.dotted for column in columns]
    for column in _named(expectation):
        if column not in types:
            what = f"{expectation.type} is about the column {column}, which the topic does not have"
            if any(field.startswith(f"{column}.") for field in names):
                what = f"{expectation.type} is about {column}, which has fields: an audit sees these"
            raise _error(topic, what, _meant(column, names, "") + _list("the columns are", names))
    _check_condition(topic, expectation)
    try:
        typed(expectation.type, expectation.kwargs, types)
    except ParameterError as error:
        raise _error(topic, f"{expectation.type} {error}", "fix the job's expectations") from None


def _check_type(topic: str, schema: pa.Schema, column: str, logical_type: str) -> None:
    """Makes sure that a column is what a contract says of it."""
    if (found := type_at(schema, column)) is None:
        names = [each.dotted for each in flat_columns(schema)]
        what = f"a contract is about the column {column}, which the topic does not have"
        raise _error(topic, what, _meant(column, names, "") + _list("the columns are", names))
    if not holds(found, logical_type):
        what = f"a contract says that {column} is of the type {logical_type}, and it is {found}"
        raise _error(topic, what, "fix the contract, or what writes the topic")


def _named(expectation: Expectation) -> Iterator[str]:
    """The columns that an expectation is about."""
    if expectation.type in _ABOUT_ALL_COLUMNS:
        return  # to say what they are is what it is for
    for name, value in expectation.kwargs.items():
        if name.startswith("column") and name != "column_index":
            yield from [value] if isinstance(value, str) else value
        elif name == "row_condition":
            yield from _IN_CONDITION.findall(value) if isinstance(value, str) else _in_condition(value)


def _in_condition(condition: Any) -> Iterator[str]:
    """The columns of a condition that is an object of Great Expectations."""
    if hasattr(condition, "column"):
        yield condition.column.name
    for inner in getattr(condition, "conditions", ()):
        yield from _in_condition(inner)


def _check_condition(topic: str, expectation: Expectation) -> None:
    """Makes sure that every engine can read a condition on rows."""
    condition = expectation.kwargs.get("row_condition")
    if not isinstance(condition, str):
        return
    parser = expectation.kwargs.get("condition_parser", CONDITION_PARSER)
    if parser in {"pandas", "spark"}:
        what = f"{expectation.type} has a row_condition for {parser} alone, and either may run an audit"
        raise _error(topic, what, _HOW_TO_SAY_A_CONDITION)
    from great_expectations.expectations import legacy_row_conditions as conditions  # noqa: PLC0415 - takes seconds

    try:
        conditions.parse_great_expectations_condition(condition)
    except conditions.ConditionParserError:
        what = f"{expectation.type} has a row_condition that cannot be read: {condition}"
        raise _error(topic, what, _HOW_TO_SAY_A_CONDITION) from None


def _registered(name: str) -> dict[str, bool] | None:
    """The parameters of an expectation that a job's own module has registered; None: there is none."""
    if "great_expectations" not in sys.modules:
        return None
    from great_expectations import exceptions  # noqa: PLC0415
    from great_expectations.expectations.registry import get_expectation_impl  # noqa: PLC0415

    try:
        fields: Mapping[str, Any] = get_expectation_impl(name).__fields__
    except exceptions.exceptions.ExpectationNotFoundError:
        return None
    return {field: bool(of.required) for field, of in fields.items()}


def _meant(name: str, known: Iterable[str], otherwise: str) -> str:
    if not (meant := next_to(name, known)):
        return otherwise
    return meant + (f" {otherwise[0].upper()}{otherwise[1:]}" if otherwise else " ")


def _list(before: str, names: Iterable[str]) -> str:
    return f"{before} {', '.join(names)}"


def _error(topic: str, what: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(what, topic=topic, next_step=next_step)
