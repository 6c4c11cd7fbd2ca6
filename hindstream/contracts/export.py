"""A job's topics as a contract of the Open Data Contract Standard: their fields, and what the job expects of them.

What the standard has words for is said in these (``required``, ``unique``, ``minimum``, metrics), all else as a rule of
Great Expectations. Whether the words are right is not guessed: they are read back, and must give the same expectation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hindstream.contracts.document import API_VERSION, model
from hindstream.contracts.logical_types import LOGICAL_TYPE, logical_type
from hindstream.contracts.metrics import percent_of
from hindstream.contracts.rules import (
    BETWEEN,
    COMPOUND_UNIQUE,
    GREAT_EXPECTATIONS,
    IN_SET,
    LENGTHS,
    NOT_NULL,
    REGEX,
    UNIQUE,
    expected,
)
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.job.job import Expectation, Job

FIRST_VERSION = "1.0.0"
_WORDS = {"fail": "error", "warn": "warning"}
_ROW_COUNT = "expect_table_row_count_to_equal"
_ROWS = "expect_table_row_count_to_be_between"

Raw = dict[str, Any]


def exported(job: Job, schemas: Mapping[str, pa.Schema]) -> Any:
    """The contract of a job's sources and sinks: a document of the standard's own model.

    Args:
        job: The job.
        schemas: By topic, the columns of its archive.

    Raises:
        ConfigurationError: An expectation has a parameter that YAML cannot hold, or the model is not installed.
    """
    document = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": job.name,
        "name": job.name,
        "version": FIRST_VERSION,
        "status": "draft",
        "schema": [_topic(topic, schema, job.expectations.get(topic, ())) for topic, schema in schemas.items()],
    }
    return model().OpenDataContractStandard(**document)


def _topic(topic: str, schema: pa.Schema, expectations: tuple[Expectation, ...]) -> Raw:
    fields = [*schema, pa.field("partition", pa.int32())]
    made = {
        "name": topic,
        "physicalName": topic,
        "physicalType": "topic",
        "logicalType": "object",
        "properties": [_property(field) for field in fields],
    }
    for expectation in expectations:
        if expectation.type == LOGICAL_TYPE:
            continue  # the type is there
        for place, addition in (*_said(expectation), _custom(topic, expectation)):
            if _says(made, place, addition, expectation):
                _add(made, place, addition)
                break
    return made


def _property(field: pa.Field) -> Raw:
    made: Raw = {"name": field.name, "physicalType": str(field.type)}
    if (of := logical_type(field.type)) is not None:
        made["logicalType"] = of
    if pa.types.is_struct(field.type):
        made["properties"] = [_property(inner) for inner in field.type]
    return made


def _says(made: Raw, place: str | None, addition: Raw, expectation: Expectation) -> bool:
    """Whether an addition to an object, read back, is the expectation and nothing else."""
    of = model().SchemaObject
    properties = [{"name": name} for name in ("key", "value", "timestamp", "offset", "partition")]
    alone: Raw = {"name": made["name"], "properties": properties}
    if place is not None:
        target = _find(made, place)
        if target is None or any(name in target and name != "quality" for name in addition):
            return False  # there is no such property, or this has been said of it already
        kept = {name: target[name] for name in ("logicalType",) if name in target}
        inner: Raw = {**addition, **kept, "name": place.rpartition(".")[2]}
        for name in reversed(place.split(".")[:-1]):
            inner = {"name": name, "properties": [inner]}
        alone["properties"] = [each if each["name"] != inner["name"] else inner for each in properties]
    else:
        alone |= addition
    found = [each for each in expected(of(**alone), at="").expectations if each.type != LOGICAL_TYPE]
    return [(each.type, dict(each.kwargs), each.severity) for each in found] == [
        (expectation.type, _as_yaml(dict(expectation.kwargs)), expectation.severity)
    ]


def _find(made: Raw, place: str) -> Raw | None:
    found: Raw | None = made
    for name in place.split("."):
        inner = (found or {}).get("properties", ())
        found = next((each for each in inner if each["name"] == name), None)
    return found


def _add(made: Raw, place: str | None, addition: Raw) -> None:
    target = made if place is None else _find(made, place)
    assert target is not None  # noqa: S101 - `_says` has found it
    for name, value in addition.items():
        target[name] = [*target.get(name, []), *value] if name == "quality" else value


def _said(expectation: Expectation) -> Iterator[tuple[str | None, Raw]]:
    """Words of the standard that may say an expectation, and of what: a property, or all."""
    kwargs, type_ = dict(expectation.kwargs), expectation.type
    if isinstance(kwargs.get("column"), str):
        yield from _said_of_column(expectation, kwargs["column"], kwargs)
    elif type_ == COMPOUND_UNIQUE:
        arguments = {"properties": _as_yaml(kwargs.get("column_list"))}
        yield None, _quality(expectation, {"metric": "duplicateValues", "arguments": arguments, "mustBe": 0})
    elif type_ == _ROW_COUNT:
        yield None, _quality(expectation, {"metric": "rowCount", "mustBe": kwargs.get("value")})
    elif type_ == _ROWS:
        yield None, _quality(expectation, {"metric": "rowCount", **_operator(kwargs)})


def _said_of_column(expectation: Expectation, column: str, kwargs: Raw) -> Iterator[tuple[str, Raw]]:
    type_ = expectation.type
    if type_ in {NOT_NULL, UNIQUE}:
        yield column, {"required" if type_ == NOT_NULL else "unique": True}
    if type_ == BETWEEN:
        yield column, {"logicalTypeOptions": _options(kwargs, "minimum", "maximum")}
    if type_ == LENGTHS:
        yield column, {"logicalTypeOptions": _options(kwargs, "minLength", "maxLength")}
    if type_ == REGEX:
        yield column, {"logicalTypeOptions": {"pattern": kwargs.get("regex")}}
    if (metric := _metric(type_, kwargs)) is not None:
        wrong: Raw = {"mustBe": 0}
        if isinstance(kwargs.get("mostly"), (int, float)):
            wrong = {"mustBeLessOrEqualTo": percent_of(kwargs["mostly"]), "unit": "percent"}
        yield column, _quality(expectation, {**metric, **wrong})


def _options(kwargs: Raw, least: str, most: str) -> Raw:
    options: Raw = {}
    for end, name in (("min", least), ("max", most)):
        if (value := kwargs.get(f"{end}_value")) is not None:
            strict = kwargs.get(f"strict_{end}")
            options[f"exclusive{name[0].upper()}{name[1:]}" if strict else name] = _as_yaml(value)
    return options


def _metric(type_: str, kwargs: Raw) -> Raw | None:
    if type_ == NOT_NULL:
        return {"metric": "nullValues"}
    if type_ == UNIQUE:
        return {"metric": "duplicateValues"}
    if type_ == IN_SET:
        return {"metric": "invalidValues", "arguments": {"validValues": _as_yaml(kwargs.get("value_set"))}}
    if type_ == REGEX:
        return {"metric": "invalidValues", "arguments": {"pattern": kwargs.get("regex")}}
    return None


def _operator(kwargs: Raw) -> Raw:
    least, most = kwargs.get("min_value"), kwargs.get("max_value")
    if (
        least is not None
        and most is not None
        and least < most
        and kwargs.get("strict_min")
        and kwargs.get("strict_max")
    ):
        return {"mustBeBetween": [least, most]}
    if least is not None:
        return {"mustBeGreaterThan" if kwargs.get("strict_min") else "mustBeGreaterOrEqualTo": least}
    return {"mustBeLessThan" if kwargs.get("strict_max") else "mustBeLessOrEqualTo": most}


def _quality(expectation: Expectation, rule: Raw) -> Raw:
    return {"quality": [{**rule, "severity": _WORDS[expectation.severity]}]}


def _custom(topic: str, expectation: Expectation) -> tuple[None, Raw]:
    """An expectation as it is.

    Raises:
        ConfigurationError: It has a parameter that YAML cannot hold.
    """
    kwargs = _as_yaml(dict(expectation.kwargs))
    if not _is_plain(kwargs):
        what = f"{expectation.type} has parameters that a contract cannot hold: {kwargs}"
        raise ConfigurationError(
            what, topic=topic, next_step="write times and decimals as text, conditions as text too"
        )
    implementation = {"type": expectation.type, "kwargs": kwargs}
    rule = {"type": "custom", "engine": GREAT_EXPECTATIONS, "implementation": implementation}
    return None, _quality(expectation, rule)


def _as_yaml(value: Any) -> Any:
    """With lists for tuples and sets."""
    if isinstance(value, dict):
        return {name: _as_yaml(inner) for name, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(_as_yaml, value), key=repr)
    return [_as_yaml(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))
