"""Which fields two versions of records have in common, in which types they are compared, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import is_any_list
from statelib.columns.windowed_type import archived_type
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TIMESTAMP = "timestamp"
HEADERS = "headers"
VALUE = "value"
_DOUBLE = pa.float64()
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as equal.

    Attributes:
        tolerance: By how much numbers may differ; None: they are equal if their bits are, and NaN equals NaN.
        tolerances: The same for fields by their path, such as ``value.total``.
        ignored: Paths of fields that are left out, with all below them: ``value.debug``, ``timestamp``, ``headers``.
    """

    tolerance: float | None = None
    tolerances: Mapping[str, float] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()

    def ignores(self, path: str) -> bool:
        """Whether a field is left out."""
        return any(path == name or path.startswith(f"{name}.") for name in self.ignored)

    def tolerance_of(self, path: str, type_: pa.DataType) -> float | None:
        """That of a field; only numbers have one."""
        return self.tolerances.get(path, self.tolerance) if is_number(type_) else None


@dataclass(frozen=True, slots=True)
class Field:
    """A field that both sides have.

    Attributes:
        path: ``value.a.b``; ``value`` if values are no structs; ``timestamp``; ``headers``.
        steps: The names that lead to it from the value.
        type: In which both sides are compared.
        is_presence: Only whether the struct is there is compared: its fields are fields of their own.
        tolerance: See `Rules`.
    """

    path: str
    steps: tuple[str, ...]
    type: pa.DataType
    is_presence: bool = False
    tolerance: float | None = None

    def of(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """The field of rows with the columns ``value``, ``timestamp`` and ``headers``."""
        if self.path in {TIMESTAMP, HEADERS}:
            return _whole(rows.column(self.path))
        column = _whole(rows.column(VALUE))
        if self.steps:
            column = pc.struct_field(column, list(self.steps))
        if self.is_presence:
            return column.is_valid()
        return column if column.type.equals(self.type) else column.cast(self.type, safe=False)


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """A field that only one side has (the other's type is None), or whose types differ.

    Attributes:
        path: As of `Field`; ``key`` for keys.
        a: The type in A, as text.
        b: The type in B.
        is_compared: Whether the values are compared all the same.
    """

    path: str
    a: str | None
    b: str | None
    is_compared: bool


@dataclass(frozen=True, slots=True)
class Fields:
    """What two sides have in common.

    Attributes:
        key: The type in which keys are compared; None: they cannot be.
        fields: Of values, then the timestamp and the headers.
        differences: What they do not have in common, or not in one type.
    """

    key: pa.DataType | None
    fields: tuple[Field, ...]
    differences: tuple[SchemaDifference, ...]


def common_fields(
    a: tuple[pa.DataType, pa.DataType], b: tuple[pa.DataType, pa.DataType], rules: Rules, *, records: bool = True
) -> Fields:
    """The fields of two sides.

    Args:
        a: The types of A's keys and values.
        b: Those of B's.
        rules: What is left out, and the tolerances.
        records: Whether rows have timestamps and headers.
    """
    key_a, key_b = archived_type(a[0]), archived_type(b[0])
    key = common_type(key_a, key_b)
    differences = [] if key_a.equals(key_b) else [SchemaDifference("key", str(key_a), str(key_b), key is not None)]
    fields = []
    for found in _common(a[1], b[1], ()):
        if rules.ignores(found.path):
            continue
        if isinstance(found, Field):
            fields.append(
                Field(
                    found.path, found.steps, found.type, found.is_presence, rules.tolerance_of(found.path, found.type)
                )
            )
        else:
            differences.append(found)
    if records:
        times = [Field(TIMESTAMP, (), pa.timestamp("ms", "UTC")), Field(HEADERS, (), pa.null())]
        fields += [found for found in times if not rules.ignores(found.path)]
    return Fields(key, tuple(fields), tuple(differences))


def check_paths(rules: Rules, values: Sequence[pa.DataType], columns: Sequence[pa.Field] = ()) -> None:
    """Refuses rules for fields that no side has.

    Args:
        rules: They may be meant for one of several sinks, or stores.
        values: The types of the values of all sides.
        columns: The columns of stores that are compared too.

    Raises:
        ConfigurationError: There is no such field, or a tolerance is for a field that is no number.
    """
    if not columns and all(pa.types.is_null(type_) for type_ in values):
        return  # nothing has been written yet
    paths = dict(pair for type_ in values for pair in _paths(type_, VALUE))
    paths |= dict(pair for column in columns for pair in _paths(column.type, column.name))
    numbers = [path for path, type_ in paths.items() if is_number(type_)]
    for names, known, what in (
        (sorted(rules.ignored), [*paths, TIMESTAMP, HEADERS], "there is no such field"),
        (sorted(rules.tolerances), numbers, "there is no such field of numbers"),
    ):
        for name in names:
            if name not in known:
                raise ConfigurationError(what, field=name, next_step=did_you_mean(name, known, "one of:"))


def _paths(type_: pa.DataType, path: str) -> Iterator[tuple[str, pa.DataType]]:
    yield path, type_
    if pa.types.is_struct(type_):
        for inner in type_:
            yield from _paths(inner.type, f"{path}.{inner.name}")


def _common(a: pa.DataType, b: pa.DataType, steps: tuple[str, ...]) -> Iterator[Field | SchemaDifference]:
    path = ".".join((VALUE, *steps))
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        yield Field(path, steps, pa.bool_(), is_presence=True)
        has_a, has_b = ({inner.name: inner.type for inner in side} for side in (a, b))
        for name in dict.fromkeys([*has_a, *has_b]):
            if name in has_a and name in has_b:
                yield from _common(has_a[name], has_b[name], (*steps, name))
            else:
                texts = [str(has[name]) if name in has else None for has in (has_a, has_b)]
                yield SchemaDifference(f"{path}.{name}", texts[0], texts[1], is_compared=False)
        return
    both = common_type(a, b)
    if not a.equals(b):
        yield SchemaDifference(path, str(a), str(b), is_compared=both is not None)
    if both is not None:
        yield Field(path, steps, both)


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:  # noqa: PLR0911 - a kind of types each
    """The type in which values of both can be compared; None: there is none.

    Integers and decimals are compared with floating-point numbers as doubles.
    """
    if a.equals(b):
        return a
    if pa.types.is_null(a) or pa.types.is_null(b):
        return b if pa.types.is_null(a) else a
    if is_number(a) and is_number(b):
        return _common_number(a, b)
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b) and (a.tz is None) == (b.tz is None):
        return pa.timestamp("us", a.tz)
    if pa.types.is_struct(a) and pa.types.is_struct(b) and a.names == b.names:
        inner = [common_type(one.type, other.type) for one, other in zip(a, b, strict=True)]
        return None if None in inner else pa.struct(list(zip(a.names, inner, strict=True)))
    if is_any_list(a) and is_any_list(b):
        item = common_type(a.value_type, b.value_type)
        return None if item is None else pa.list_(item)
    return None


def _common_number(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(a) and pa.types.is_integer(b):
        return max(a, b, key=lambda type_: type_.bit_width)
    if pa.types.is_floating(a) or pa.types.is_floating(b):
        return _DOUBLE
    whole = max(19 if pa.types.is_integer(type_) else type_.precision - type_.scale for type_ in (a, b))
    scale = max(0 if pa.types.is_integer(type_) else type_.scale for type_ in (a, b))
    return pa.decimal128(whole + scale, scale) if whole + scale <= _MOST_DIGITS else _DOUBLE


def is_number(type_: pa.DataType) -> bool:
    """Whether values have a difference that is a number."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
