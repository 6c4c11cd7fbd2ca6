"""What the rules of a contract are as expectations; a rule that cannot be one is named, with the reason.

===============================================  =======================================================================
in the contract                                  the expectation
===============================================  =======================================================================
``logicalType``                                  `LOGICAL_TYPE`, which the plan answers
``required``                                     ``expect_column_values_to_not_be_null``
``unique``                                       ``expect_column_values_to_be_unique``, within a slice
``primaryKey``                                   both; of several properties ``expect_compound_columns_to_be_unique``
``enum``                                         ``expect_column_values_to_be_in_set``
``minimum``, ``exclusiveMaximum``, ...           ``expect_column_values_to_be_between``
``minLength``, ``maxLength``                     ``expect_column_value_lengths_to_be_between``
``pattern``                                      ``expect_column_values_to_match_regex``
``quality`` of metrics                           see `hindstream.contracts.metrics`
``quality`` of Great Expectations                that
===============================================  =======================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hindstream.contracts.logical_types import LOGICAL_TYPE, LOGICAL_TYPES
from hindstream.contracts.metrics import NotExpressibleError, of_metric
from statelib.job.job import Expectation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOT_NULL = "expect_column_values_to_not_be_null"
UNIQUE = "expect_column_values_to_be_unique"
COMPOUND_UNIQUE = "expect_compound_columns_to_be_unique"
IN_SET = "expect_column_values_to_be_in_set"
BETWEEN = "expect_column_values_to_be_between"
LENGTHS = "expect_column_value_lengths_to_be_between"
REGEX = "expect_column_values_to_match_regex"

GREAT_EXPECTATIONS = "greatExpectations"
_ITS_NAMES = ("greatexpectations", "great-expectations", "great_expectations", "gx")

ARCHIVE_COLUMNS = ("key", "value", "timestamp", "offset", "partition", "headers")

SEVERITIES = {
    **dict.fromkeys(("error", "fail", "critical", "blocker", "high", "major"), "fail"),
    **dict.fromkeys(("warn", "warning", "info", "medium", "minor", "low"), "warn"),
}
"""The standard leaves the words open, and has ``info``, ``warning`` and ``error`` as examples."""

_BOUNDS = {
    "minimum": "min_value",
    "maximum": "max_value",
    "exclusiveMinimum": "min_value",
    "exclusiveMaximum": "max_value",
}
_FLAGS = {"required": NOT_NULL, "unique": UNIQUE}
_NESTED = ("object", "array", "map")
_BOUNDED = ("integer", "number", "date", "timestamp")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a contract that no expectation says.

    Attributes:
        place: Where: ``orders.amount.quality[positive]``.
        why: The reason.
        is_rule: Whether it could be checked by somebody; what is told to people only is no such rule.
    """

    place: str
    why: str
    is_rule: bool = True


@dataclass(slots=True)
class Expected:
    """What a contract says of one topic.

    Attributes:
        name: Of the object in the contract's schema.
        topic: Its physical name, else its name.
    """

    name: str
    topic: str
    expectations: list[Expectation] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def expected(schema_object: Any, *, at: str | None = None) -> Expected:
    """What an object of a contract's schema expects.

    Args:
        schema_object: The object, of the standard's own model.
        at: The column of the archive whose fields its properties are; empty: they are columns of the archive. None:
            they are, if all have names of such columns, as in contracts of `export`; else they are fields of ``value``.
    """
    found = Expected(schema_object.name, schema_object.physicalName or schema_object.name)
    names = [each.physicalName or each.name for each in schema_object.properties or ()]
    if at is None:
        at = "" if names and all(name in ARCHIVE_COLUMNS for name in names) else "value"
    reading = _Reading(found, {name: f"{at}.{name}" if at else name for name in names})
    keys: list[tuple[int, str]] = []
    for each in schema_object.properties or ():
        keys += reading.property(each, reading.columns[each.physicalName or each.name], f"{found.name}.{each.name}")
    reading.primary_key([column for _, column in sorted(keys, key=lambda key: key[0])])
    for n, rule in enumerate(schema_object.quality or ()):
        reading.rule(rule, None, f"{found.name}.quality[{rule.id or rule.name or n}]")
    found.expectations = list({repr(each): each for each in found.expectations}.values())
    return found


@dataclass(frozen=True, slots=True)
class _Reading:
    """The way through an object: adds to ``found``; ``columns`` of the archive by the names in the contract."""

    found: Expected
    columns: dict[str, str]

    def property(self, of: Any, column: str, place: str) -> list[tuple[int, str]]:
        """Reads a property; gives its part of the primary key: positions and columns."""
        if of.logicalType in LOGICAL_TYPES:
            self._add(LOGICAL_TYPE, column=column, logical_type=of.logicalType)
        elif of.logicalType:
            self._leave_out(f"{place}.logicalType", f"no topic holds values of the type {of.logicalType}")
        flags = [flag for flag in ("required", "unique", "primaryKey") if getattr(of, flag)]
        if of.logicalType in _NESTED:
            for flag in flags:
                self._leave_out(f"{place}.{flag}", "a check sees the fields of structs, and no arrays or maps")
            flags = []
        for flag in flags:
            if flag in _FLAGS:
                self._add(_FLAGS[flag], column=column)
        if values := [each.value for each in getattr(of, "enum", None) or ()]:
            self._add(IN_SET, column=column, value_set=values)
        self._options(of.logicalTypeOptions or {}, of.logicalType, column, place)
        for n, rule in enumerate(of.quality or ()):
            self.rule(rule, column, f"{place}.quality[{rule.id or rule.name or n}]")
        keys = [(of.primaryKeyPosition or 0, column)] if "primaryKey" in flags else []
        return keys + self._within(of, column, place)

    def _within(self, of: Any, column: str, place: str) -> list[tuple[int, str]]:
        keys: list[tuple[int, str]] = []
        for inner in of.properties or ():
            name = inner.physicalName or inner.name
            self.columns.setdefault(name, f"{column}.{name}")
            keys += self.property(inner, f"{column}.{name}", f"{place}.{inner.name}")
        for part in ("items", "map"):
            if getattr(of, part, None) is not None:
                self._leave_out(f"{place}.{part}", "a check sees no elements of arrays or maps")
        return keys

    def primary_key(self, columns: list[str]) -> None:
        """The columns of a primary key are there, and no two records agree in all of them."""
        for column in columns:
            self._add(NOT_NULL, column=column)
        if len(columns) == 1:
            self._add(UNIQUE, column=columns[0])
        elif columns:
            self._add(COMPOUND_UNIQUE, column_list=columns)

    def _options(self, options: Mapping[str, Any], of: str | None, column: str, place: str) -> None:
        bounds: dict[str, Any] = {}
        lengths: dict[str, Any] = {}
        for name, value in options.items():
            if name in _BOUNDS and of in _BOUNDED and not isinstance(value, bool):
                bounds[_BOUNDS[name]] = value
                if name.startswith("exclusive"):
                    bounds[f"strict_{name[9:12].lower()}"] = True
            elif name in {"minLength", "maxLength"} and of == "string":
                lengths[f"{name[:3]}_value"] = value
            elif name == "pattern" and of == "string":
                self._add(REGEX, column=column, regex=value)
            elif name == "required" and of == "object":
                for inner in value:
                    self._add(NOT_NULL, column=f"{column}.{inner}")
            else:
                why = f"no expectation says {name} of values of the type {of}"
                self._leave_out(f"{place}.logicalTypeOptions.{name}", why)
        if bounds:
            self._add(BETWEEN, column=column, **bounds)
        if lengths:
            self._add(LENGTHS, column=column, **lengths)

    def rule(self, rule: Any, column: str | None, place: str) -> None:
        """Reads a rule of quality; ``column``: of a property, else it is about the whole object."""
        if rule.type == "text" or (rule.type is None and rule.metric is None and rule.rule is None):
            self._leave_out(place, "it is text, for people to read", is_rule=False)
            return
        severity = SEVERITIES.get((rule.severity or "error").lower())
        if severity is None:
            self._leave_out(place, f"its severity is {rule.severity}: known are {', '.join(SEVERITIES)}")
            return
        try:
            made = list(self._of_rule(rule, column))
        except NotExpressibleError as error:
            self._leave_out(place, str(error))
            return
        for type_, kwargs in made:
            self._add(type_, severity, **kwargs)

    def _of_rule(self, rule: Any, column: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
        if rule.type == "sql":
            raise NotExpressibleError(
                "it is SQL of its server; write it as an unexpected_rows_expectation of Spark's SQL"
            )
        if rule.type != "custom":
            yield from of_metric(rule, column, self.columns)
            return
        if str(rule.engine).lower() not in _ITS_NAMES:
            raise NotExpressibleError(f"it is for {rule.engine}, and checks are run by Great Expectations")
        said = _parsed(rule.implementation)
        type_ = said.get("type") or said.get("expectation_type")
        if not isinstance(type_, str) or not isinstance(said.get("kwargs", {}), dict):
            raise NotExpressibleError("it has no type and kwargs of Great Expectations")
        kwargs = {name: self._renamed(name, value) for name, value in said.get("kwargs", {}).items()}
        if (
            column is not None
            and type_.startswith("expect_column_")
            and not any(n.startswith("column") for n in kwargs)
        ):
            kwargs = {"column": column, **kwargs}
        yield type_, kwargs

    def _renamed(self, parameter: str, value: Any) -> Any:
        """Names of properties as those of columns, in parameters that hold some."""
        if not parameter.startswith("column"):
            return value
        if isinstance(value, list):
            return [self.columns.get(str(name), name) for name in value]
        return self.columns.get(value, value) if isinstance(value, str) else value

    def _add(self, type_: str, severity: Any = "fail", /, **kwargs: Any) -> None:
        self.found.expectations.append(Expectation(type_, kwargs, severity))

    def _leave_out(self, place: str, why: str, *, is_rule: bool = True) -> None:
        self.found.left_out.append(LeftOut(place, why, is_rule))


def _parsed(implementation: Any) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - comes with the model

    if isinstance(implementation, str):
        try:
            implementation = yaml.safe_load(implementation)
        except yaml.YAMLError:
            implementation = None
    if not isinstance(implementation, dict):
        raise NotExpressibleError("its implementation is no YAML with a type and kwargs")
    return implementation
