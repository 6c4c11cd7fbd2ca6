"""Columns by their ids against a plain model: values follow an id, wherever its field has gone or what it is called."""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from statelib.ingest.values.field_ids import by_field_ids, plain, with_mapped_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("a", "b", "ü", "a b", "x.y")
WIDER = {"int": "long", "float": "double", "date": "date", "string": "string", "long": "long", "double": "double"}
TYPES = {
    "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
    "date": pa.date32(),
}  # fmt: skip
VALUES = {
    "int": st.integers(-(2**31), 2**31 - 1), "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False), "double": st.floats(allow_nan=False),
    "string": st.text(max_size=3), "date": st.dates(),
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    number: int
    name: str
    kind: str
    inner: tuple[Field, ...] = field(default=())

    def arrow(self, *, ids: bool = True) -> pa.Field:
        inner = [one.arrow(ids=ids) for one in self.inner]
        if self.kind == "struct":
            type_ = pa.struct(inner)
        elif self.kind == "list":
            type_ = pa.list_(inner[0])
        elif self.kind == "map":
            type_ = pa.map_(inner[0].with_nullable(False), inner[1])
        else:
            type_ = TYPES[self.kind]
        return pa.field(self.name, type_, metadata={"PARQUET:field_id": str(self.number)} if ids else None)

    def mapping(self) -> str:
        names = ", ".join(f'"{name}"' for name in {self.name, "another"})
        inner = ", ".join(one.mapping() for one in self.inner)
        return f'{{"field-id": {self.number}, "names": [{names}], "fields": [{inner}]}}'


def fields(numbers: itertools.count[int], depth: int) -> st.SearchStrategy[tuple[Field, ...]]:
    """Fields of a struct, with different names."""

    def named(names: Sequence[str]) -> st.SearchStrategy[tuple[Field, ...]]:
        return st.tuples(*(one_field(numbers, name, depth) for name in names))

    return st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).flatmap(named)


def one_field(numbers: itertools.count[int], name: str, depth: int) -> st.SearchStrategy[Field]:
    scalar = st.sampled_from(sorted(TYPES)).map(lambda kind: Field(next(numbers), name, kind))
    if not depth:
        return scalar
    item = one_field(numbers, "element", depth - 1)
    key = st.just("string").map(lambda kind: Field(next(numbers), "key", kind))
    return st.one_of(
        scalar,
        fields(numbers, depth - 1).map(lambda inner: Field(next(numbers), name, "struct", inner)),
        item.map(lambda inner: Field(next(numbers), name, "list", (inner,))),
        st.tuples(key, one_field(numbers, "value", depth - 1)).map(
            lambda inner: Field(next(numbers), name, "map", inner)
        ),
    )


def values(of: Field) -> st.SearchStrategy[Any]:
    if of.kind == "struct":
        made: st.SearchStrategy[Any] = st.fixed_dictionaries({one.number: values(one) for one in of.inner})
    elif of.kind == "list":
        made = st.lists(values(of.inner[0]), max_size=3)
    elif of.kind == "map":
        made = st.dictionaries(VALUES["string"], values(of.inner[1]), max_size=2).map(lambda d: list(d.items()))
    else:
        made = VALUES[of.kind]
    return st.one_of(st.none(), made)


def evolved(draw: st.DrawFn, before: Sequence[Field], numbers: itertools.count[int]) -> tuple[Field, ...]:
    """The fields of a struct after some years: gone, moved, renamed, widened, and new ones."""
    kept = [one for one in before if draw(st.booleans())]
    names = draw(st.permutations(NAMES))
    changed = [_evolved_field(draw, one, numbers, name) for one, name in zip(kept, names, strict=False)]
    if not changed or draw(st.booleans()):
        changed.append(Field(next(numbers), names[len(changed)], draw(st.sampled_from(sorted(TYPES)))))
    return tuple(draw(st.permutations(changed)))


def _evolved_field(draw: st.DrawFn, one: Field, numbers: itertools.count[int], name: str) -> Field:
    if one.kind == "struct":
        return replace(one, name=name, inner=evolved(draw, one.inner, numbers))
    if one.kind == "list":
        return replace(one, name=name, inner=(_evolved_field(draw, one.inner[0], numbers, "element"),))
    if one.kind == "map":
        return replace(one, name=name, inner=(one.inner[0], _evolved_field(draw, one.inner[1], numbers, "value")))
    return replace(one, name=name, kind=WIDER[one.kind] if draw(st.booleans()) else one.kind)


def as_written(value: Any, of: Field) -> Any:
    """A value under the names that its fields had when it was written."""
    return shown(value, of, of)


def shown(value: Any, then: Field, now: Field) -> Any:
    """A value under the names that its fields have now; ids decide."""
    if value is None:
        return None
    if then.kind == "struct":
        before = {one.number: one for one in then.inner}
        return {
            one.name: shown(value[one.number], before[one.number], one) if one.number in before else None
            for one in now.inner
        }
    if then.kind == "list":
        return [shown(item, then.inner[0], now.inner[0]) for item in value]
    if then.kind == "map":
        return [(key, shown(item, then.inner[1], now.inner[1])) for key, item in value]
    return value


@st.composite
def histories(draw: st.DrawFn) -> tuple[Field, Field, list[Any]]:
    numbers = itertools.count(1)
    then = Field(0, "", "struct", draw(fields(numbers, 2)))
    now = Field(0, "", "struct", evolved(draw, then.inner, numbers))
    rows = draw(st.lists(values(then).filter(lambda row: row is not None), min_size=1, max_size=5))
    return then, now, rows


@given(history=histories(), has_ids=st.booleans(), first=st.integers(0, 2))
def test_values_follow_their_ids(history: tuple[Field, Field, list[Any]], has_ids: bool, first: int) -> None:
    then, now, rows = history
    schema = pa.schema([one.arrow(ids=has_ids) for one in then.inner])
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([as_written(row, then) for row in rows], schema=schema), content)
    (batch,) = pq.ParquetFile(content).iter_batches()
    mapping = "[" + ", ".join(one.mapping() for one in then.inner) + "]"
    ids = with_mapped_ids(batch.schema, mapping)
    wanted = pa.schema([one.arrow() for one in now.inner])
    found = by_field_ids(batch.slice(first), ids, wanted, {})
    assert found.schema.equals(plain(wanted))
    assert found.to_pylist() == [shown(row, then, now) for row in rows[first:]]
    found.validate(full=True)


def test_a_column_that_a_file_lacks_has_its_default() -> None:
    then, now = Field(1, "a", "int"), Field(2, "b", "string")
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]}, pa.schema([then.arrow()]))
    wanted = pa.schema([now.arrow(), Field(3, "s", "struct", (Field(4, "c", "int"),)).arrow()])
    found = by_field_ids(batch, batch.schema, wanted, {2: pa.scalar("x"), 4: pa.scalar(7)})
    assert found.to_pylist() == [{"b": "x", "s": None}] * 2
