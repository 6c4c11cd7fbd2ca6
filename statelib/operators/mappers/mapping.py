"""Mappers: how a topology computes a new key, value, id or timestamp, a whole batch at a time.

A mapper sees a RecordBatch. For an operator on one stream its columns are ``key``, ``value``, ``timestamp`` and, if
present, ``window_start``, ``window_end``, ``headers`` (`Batch.as_record_batch`); for one on a table ``key``, ``value``
and the bounds of the window. For a join they are ``key``, ``left``, ``right``, ``timestamp``. A mapper has one of these
forms:

``"dep_delay"``, ``"carrier.name"``, ``"key"``, ``"right.wind_speed"``
    A path. If its first name is a column, the path begins at that column, and further names are fields of it.
    Otherwise all names are fields of ``value``. If a field of the value has the name of a column, write
    ``"value.timestamp"``. ``"headers.trace_id"`` is the value of the last header of that name. A field of a null struct
    is null.
``pc.field("value", "price") * 2``
    A pyarrow expression over the columns.
``{"delay": "dep_delay", "double": pc.field("value", "price") * 2}``
    A struct of mappers. If the column ``value`` is null, so is the struct: a tombstone stays a tombstone.
``function``
    Any function from the RecordBatch to an Arrow or numpy array of the same length.
``per_record(function, arrow_type)``
    A function of one record's plain Python values. Slow: a microsecond or more per record.

Functions must be pure: a replay may run them again, and in another process.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.calls import function_checked
from statelib.calls.kinds import takes
from statelib.columns.lists import parents_of
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import defined_at, place_of_call
from statelib.operators.mappers.code_identity import describe_function
from statelib.operators.mappers.function_errors import Failing, all_that_fail, calling, first_that_fails
from statelib.operators.mappers.missing import missing_column, missing_field
from statelib.operators.mappers.python_values import column_of, items_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@runtime_checkable
class Mapper(Protocol):
    """Makes one column from a batch's columns; immutable and picklable."""

    def map(self, columns: pa.RecordBatch) -> pa.Array:
        """One value for each row of ``columns``. May raise anything: `evaluate` names the node and the record."""

    def describe(self) -> object:
        """What it does, as plain data (JSON), for the fingerprint and for people."""


_UNMATCHED = re.compile(r"No match for (FieldRef\..*?\)+) in ")
_NAMES = re.compile(r"FieldRef\.Name\(([^)]*)\)")

MapperLike: TypeAlias = str | pc.Expression | Mapping[str, Any] | Callable[[pa.RecordBatch], Any] | Mapper
"""What a user may write for a mapper: see the module's docstring."""


def mapper(of: MapperLike) -> Mapper:
    """The mapper that ``of`` stands for.

    Raises:
        ConfigurationError: ``of`` is none of the forms in the module's docstring.
    """
    if isinstance(of, Mapper):
        return of
    if isinstance(of, str) and all(of.split(".")):
        return Path(tuple(of.split(".")))
    if isinstance(of, pc.Expression):
        return Expression(of)
    if isinstance(of, Mapping) and of:
        return Struct(tuple((name, mapper(field)) for name, field in of.items()))
    if callable(of):
        return Function(of)
    raise ConfigurationError(
        f"{of!r} is not a mapper",
        next_step='give a path such as "carrier.name", a pyarrow expression, a dict of these, or a function',
    )


@function_checked
def per_record(function: Callable[..., object], arrow_type: pa.DataType, *columns: MapperLike) -> Mapper:
    """A mapper that calls a function for each record, with the values of ``columns``.

    Args:
        function: Takes plain Python values (None, int, str, dict, ...) and returns one.
        arrow_type: The Arrow type of the result.
        columns: Paths or other mappers, one for each argument. None: ``key`` and ``value``, as for Kafka's
            KeyValueMapper; in a join ``left`` and ``right``, as for a ValueJoiner.

    Raises:
        ConfigurationError: The function does not take this number of arguments.
    """
    if not takes(function, len(columns) or len(KEY_VALUE)):
        names = ", ".join(map(str, columns)) or "key, value), or in a join with (left, right"
        raise ConfigurationError(
            f"per_record() calls its function with ({names}), but this one takes {inspect.signature(function)}",
            next_step='name its columns after the type: per_record(function, arrow_type, "value")',
            **place_of_call(),
        )
    return PerRecord(function, arrow_type, tuple(map(mapper, columns)))


@dataclass(frozen=True, slots=True)
class Path:
    """A column, or a field inside one."""

    names: tuple[str, ...]

    def map(self, columns: pa.RecordBatch) -> pa.Array:
        """The column or field."""
        names = self.names if self.names[0] in columns.schema.names else ("value", *self.names)
        if names[0] not in columns.schema.names:
            raise missing_column(names[1], columns.schema)
        array = columns.column(names[0])
        if names[0] == "headers" and len(names) > 1:
            return _last_header(array, ".".join(names[1:]))
        for depth, name in enumerate(names[1:], start=1):
            if not pa.types.is_struct(array.type) or not array.type.get_all_field_indices(name):
                if depth == 1 and names != self.names:
                    raise missing_column(name, columns.schema)
                raise missing_field(name, names[:depth], array.type)
            array = pc.struct_field(array, [name])
        return array

    def describe(self) -> object:
        """The path itself."""
        return ".".join(self.names)


def _last_header(headers: pa.Array, name: str) -> pa.Array:
    """The value of each record's last header called ``name``, null if it has none; ``headers`` as in `Batch`."""
    entries = pc.list_flatten(headers)
    wanted = pc.equal(pc.struct_field(entries, ["key"]), name)
    entry_of = np.full(len(headers), -1, dtype=np.int64)
    rows = np.flatnonzero(np.asarray(wanted))
    entry_of[parents_of(headers)[rows]] = rows  # of several assignments to one record the last one stays
    return pc.struct_field(entries, ["value"]).take(pa.array(entry_of, mask=entry_of < 0))


def _check_there(names: Sequence[str], columns: pa.RecordBatch) -> None:
    """Looks whether there is such a field, for an expression.

    Raises:
        ConfigurationError: There is none.
    """
    if names and names[0] not in columns.schema.names and "value" in columns.schema.names:
        of_value = columns.schema.field("value").type
        if pa.types.is_struct(of_value) and of_value.get_field_index(names[0]) >= 0:
            raise ConfigurationError(
                f"there is no column {names[0]!r}", next_step=f'write pc.field("value", "{names[0]}")'
            )
    if names:
        Path(tuple(names)).map(columns)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A pyarrow expression."""

    expression: pc.Expression

    def map(self, columns: pa.RecordBatch) -> pa.Array:
        """Its value on each row."""
        from pyarrow import acero  # noqa: PLC0415 - it imports pyarrow.dataset, which few mappers need

        source = acero.TableSourceNodeOptions(pa.Table.from_batches([columns]))
        plan = acero.Declaration.from_sequence(
            [
                acero.Declaration("table_source", source),
                acero.Declaration("project", acero.ProjectNodeOptions([self.expression], ["mapped"])),
            ]
        )
        try:
            return plan.to_table(use_threads=False).column(0).combine_chunks()
        except pa.ArrowInvalid as error:
            missing = _UNMATCHED.match(str(error))
            if missing is None:
                raise
            _check_there(_NAMES.findall(missing[1]), columns)
            raise

    def describe(self) -> object:
        """The expression's text."""
        return {"expression": str(self.expression)}


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of mappers."""

    fields: tuple[tuple[str, Mapper], ...]

    def map(self, columns: pa.RecordBatch) -> pa.Array:
        """The struct; null where a column ``value`` is."""
        children = [field.map(columns) for _, field in self.fields]
        null = pc.is_null(columns.column("value")) if "value" in columns.schema.names else None
        return pa.StructArray.from_arrays(
            [_as_array(child) for child in children], [name for name, _ in self.fields], mask=null
        )

    def describe(self) -> object:
        """Its fields in order (JSON objects have none)."""
        return {"struct": [[name, field.describe()] for name, field in self.fields]}


@dataclass(frozen=True, slots=True)
class Function:
    """A function over whole columns."""

    function: Callable[[pa.RecordBatch], Any]

    def map(self, columns: pa.RecordBatch) -> pa.Array:
        """What the function gives."""
        given = self.function(columns)
        try:
            made = _as_array(given)
            if len(made) != columns.num_rows:
                raise _wrong_length(len(made), columns.num_rows)
        except ConfigurationError as error:
            raise error.placed(**defined_at([self.function])) from error
        return made

    def describe(self) -> object:
        """Name and code of the function."""
        return describe_function(self.function)


@dataclass(frozen=True, slots=True)
class PerRecord:
    """A function of one record's values: see `per_record`."""

    function: Callable[..., object]
    arrow_type: pa.DataType
    arguments: tuple[Mapper, ...]
    """None: `KEY_VALUE`, or `JOINED` in a join."""

    def map(self, columns: pa.RecordBatch) -> pa.Array:
        """The function's results."""
        default = JOINED if "left" in columns.schema.names else KEY_VALUE
        arguments = [items_of(argument.map(columns)) for argument in self.arguments or default]
        given = [self.function(*row) for row in zip(*arguments, strict=True)]
        if pa.types.is_list(self.arrow_type) or pa.types.is_large_list(self.arrow_type):
            given = [list(items) if isinstance(items, Iterator) else items for items in given]  # of generators
        step = f"give what is of type {self.arrow_type}, or None, or declare another type in per_record()"
        return column_of(given, self.arrow_type, who="a mapper gave", next_step=step, functions=[self.function])

    def describe(self) -> object:
        """Name and code of the function, arguments and type."""
        arguments = [argument.describe() for argument in self.arguments or KEY_VALUE]
        return {
            "per_record": describe_function(self.function),
            "of": arguments,
            "type": str(self.arrow_type),
        }


KEY_VALUE = (Path(("key",)), Path(("value",)))
JOINED = (Path(("left",)), Path(("right",)))


def holds(
    predicate: Mapper, columns: pa.RecordBatch, node: str, sequence: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """bool, one a row: for which rows a predicate is true.

    Null, which comparisons with null give, is not true. So a filter leaves such a row out, ``filter_not`` keeps it, and
    a split asks its next branch: no row is lost to both of two that are each other's opposite.

    Raises:
        ConfigurationError: As of `evaluate`; or the predicate gives something else than booleans.
    """
    given = evaluate(predicate, columns, node, sequence)
    if not (pa.types.is_boolean(given.type) or pa.types.is_null(given.type)):
        raise ConfigurationError(
            f"a predicate gave {given.type}, not bool",
            node=node,
            next_step="write a comparison, which returns booleans",
            **defined_at(functions_of(predicate)),
        )
    return np.asarray(given.cast(pa.bool_()).fill_null(False))


def evaluate(of: Mapper, columns: pa.RecordBatch, node: str, sequence: NDArray[np.int64] | None = None) -> pa.Array:
    """The mapper's column, checked.

    Args:
        of: What to evaluate.
        columns: What it sees.
        node: The node's name, for errors.
        sequence: int64, for errors: of each row, the sequence of the record that it comes from; None: not known.

    Raises:
        ConfigurationError: The mapper failed, or gave another length or type than it must; names the node.
        HindstreamError: A function has raised it.
    """

    def failed_for(error: BaseException) -> int | None:
        if sequence is None or (not functions and isinstance(error, ConfigurationError)):
            return None  # a path or an expression that suits no record
        row = first_that_fails(of.map, columns, error)
        return None if row is None else int(sequence[row])

    functions = functions_of(of)
    failing = (
        None if sequence is None else Failing("a mapper", lambda: all_that_fail(of.map, columns), columns.num_rows)
    )
    with calling("a mapper", functions, node=node, sequence=failed_for, failing=failing, columns=columns.schema):
        mapped = of.map(columns)
    if len(mapped) != columns.num_rows:
        raise _wrong_length(len(mapped), columns.num_rows).placed(node=node, **defined_at(functions))
    return mapped


def functions_of(of: Mapper | None) -> list[object]:
    """The user's functions that a mapper calls."""
    match of:
        case Function(function) | PerRecord(function):
            return [function]
        case Struct(fields):
            return [function for _, field in fields for function in functions_of(field)]
        case _:
            return []


def _wrong_length(given: int, rows: int) -> ConfigurationError:
    what = f"a mapper gave {counted(given, 'value')} for {counted(rows, 'record')}"
    return ConfigurationError(what, next_step="give one value for each record")


def _as_array(given: object) -> pa.Array:
    """What a function has given, as a column; what is wrong with it is said without the function's place."""
    if isinstance(given, pa.ChunkedArray):
        return given.combine_chunks()
    if isinstance(given, pa.Array):
        return given
    shown = type(given).__name__
    if isinstance(given, np.ndarray):
        try:
            return pa.array(given)
        except (pa.ArrowException, TypeError, ValueError) as error:
            shown = f"ndarray of {given.dtype} with {counted(given.ndim, 'dimension')} ({error})"
    raise ConfigurationError(
        f"a mapper's column must be an Arrow or numpy array, not {shown}",
        next_step="give an array with one value for each record, or use per_record() for a function of one record",
    )
