"""Which fields of a record's value somebody looks at: what nobody does need not be read.

Nothing is guessed: what cannot be told (a Python function, a whole value) counts as all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from statelib.operators.mappers.mapping import JOINED, KEY_VALUE, Expression, Path, PerRecord, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Batch

Fields: TypeAlias = "frozenset[str] | None"
"""Names of a struct's own fields; None: all of the value."""

ALL: Fields = None
NONE: Fields = frozenset()

_ALWAYS_COLUMNS = ("key", "timestamp")
_NESTED = re.compile(r"FieldRef\.Nested\(FieldRef\.Name\((\w+)\) FieldRef\.Name\((\w+)\)(?: FieldRef\.Name\(\w+\))*\)")


@runtime_checkable
class FieldsSpec(Protocol):
    """An operator's parameters that tell what of its parents' values is looked at."""

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """The fields of a parent's values that matter.

        Args:
            parent: Which of its parents, from 0.
            wanted: The fields of its own results that matter.
        """


def both(sets: Iterable[Fields]) -> Fields:
    """All fields of several sets."""
    union: frozenset[str] = frozenset()
    for fields in sets:
        if fields is None:
            return ALL
        union |= fields
    return union


def fields_of_mapper(of: Mapper | None, column: str = "value") -> Fields:
    """The fields of the struct ``column`` that a mapper looks at; None has none."""
    match of:
        case None:
            return NONE
        case Path(names):
            return _fields_of_path(names, column)
        case Struct(fields):
            return both(fields_of_mapper(field, column) for _, field in fields)
        case PerRecord(_, _, arguments):
            return both(fields_of_mapper(argument, column) for argument in arguments or KEY_VALUE + JOINED)
        case Expression():
            return _fields_of_expression(str(of.expression), column)
        case _:
            return ALL


def narrowed(batch: Batch, wanted: Fields) -> Batch:
    """A stream's batch without the fields of its values that nobody looks at, which then need not be copied.

    Values of which nothing is looked at but whether they are null are structs of one field without values.
    """
    if wanted is None or not pa.types.is_struct(batch.value.type):
        return batch
    kept = [place for place, field in enumerate(batch.value.type) if field.name in wanted]
    if len(kept) == batch.value.type.num_fields:
        return batch
    fields = [batch.value.type[place] for place in kept] or [pa.field("nothing", pa.null())]
    children = [batch.value.field(place) for place in kept] or [pa.nulls(len(batch))]
    null = batch.value.is_null() if batch.value.null_count else None
    return replace(batch, value=pa.StructArray.from_arrays(children, fields=fields, mask=null))


def pruned(of: Mapper, wanted: Fields) -> Mapper:
    """A mapper that copies no field that nobody looks at; what is computed stays, since it may fail."""
    if wanted is None or not isinstance(of, Struct):
        return of
    kept = tuple((name, field) for name, field in of.fields if name in wanted or not isinstance(field, Path))
    return Struct(kept) if kept else of


def columns_for(mappers: Mapper | Sequence[Mapper | None], batch: Batch) -> pa.RecordBatch:
    """What mappers see of a batch: see `Batch.as_record_batch`; without its key if none of them looks at it."""
    several = mappers if isinstance(mappers, Sequence) else [mappers]
    return batch.as_record_batch(with_key=any(reads_key(of) for of in several))


def reads_key(of: Mapper | None) -> bool:
    """Whether a mapper looks at the column ``key``."""
    return fields_of_mapper(of, "key") != NONE


def _fields_of_path(names: tuple[str, ...], column: str) -> Fields:
    if names[0] == column:
        return frozenset(names[1:2]) if len(names) > 1 else ALL
    if column != "value" or names[0] in _ALWAYS_COLUMNS:
        return NONE
    return frozenset(names[:1])  # maybe a column of this name, which does no harm


def _fields_of_expression(text: str, column: str) -> Fields:
    """By the text that Arrow makes of an expression, which has no other way to ask for its fields."""
    found = frozenset(match[2] for match in _NESTED.finditer(text) if match[1] == column)
    rest = _NESTED.sub("", text)
    return ALL if re.search(rf"\b{column}\b|FieldRef|FieldPath", rest) else found
