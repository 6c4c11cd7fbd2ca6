"""Arrow to Avro's bytes, by fastavro."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

import fastavro
import pyarrow as pa

from statelib.columns.arrow_buffers import fixed_values
from statelib.errors.counted import counted
from statelib.errors.kinds import InputError
from statelib.serdes.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    declaration,
    describe,
    nullable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.serdes.avro.schema import Logical, Node


def encode(node: Node, values: pa.Array) -> list[bytes | None]:
    """The bytes of each value; None for null.

    Raises:
        InputError: A value that the schema does not allow, such as null in a field that is not nullable.
    """
    schema = _for_fastavro(node)
    valid = values.drop_null()
    encoded = iter([_written(schema, value) for value in _python(node, valid, "value")])
    return [next(encoded) if one else None for one in values.is_valid().to_pylist()]


@lru_cache(maxsize=256)
def _for_fastavro(node: Node) -> Any:
    return fastavro.parse_schema(declaration(node))


def _written(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def _python(node: Node, values: pa.Array, path: str) -> list[Any]:
    """Values as Python data for a schema without logical types."""
    one, has_null = nullable(node)
    if has_null:
        present = iter(_python(one, values.drop_null(), path))
        return [next(present) if valid else None for valid in values.is_valid().to_pylist()]
    if values.null_count and one != Primitive("null"):
        step = f'declare the field with a union, ["null", ...], or make sure that {path} is there'
        raise InputError(f"null where the Avro schema wants a {describe(one)}", field=path, next_step=step)
    return _present(one, values, path)


def _present(node: Node, values: pa.Array, path: str) -> list[Any]:
    """The same of values without nulls."""
    match node:
        case Record(_, fields):
            columns = [_python(item.type, values.field(item.names[0]), f"{path}.{item.names[0]}") for item in fields]
            names = [item.names[0] for item in fields]
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * len(values)
        case Array(items):
            return _grouped(values, _python(items, values.flatten(), f"{path}[]"))
        case Map(within):
            keys = _grouped(values, values.keys.to_pylist()[_first(values) : _last(values)])
            inner = _python(within, values.items[_first(values) : _last(values)], f"{path}{{}}")
            return [dict(zip(*pair, strict=True)) for pair in zip(keys, _grouped(values, inner), strict=True)]
        case Primitive(kind, logical):
            return _scalars(values, kind, logical, path)
        case Fixed(_, size, logical):
            data = _fixed(values, size, logical, path)
            _check(data, lambda value: len(value) == size, node, path)
            return data
        case Enum(_, symbols):
            called: list[Any] = values.to_pylist()
            _check(called, lambda name: name in symbols, node, path)
            return called
    raise AssertionError("a general union is refused when the serde is declared")


def _fixed(values: pa.Array, size: int, logical: Logical | None, path: str) -> list[Any]:
    if _is(logical, "decimal"):
        return _two_complements(values, size, path)
    data: list[Any] = values.to_pylist()
    return [_uuid_bytes(text, path) for text in data] if _is(logical, "uuid") else data


def _uuid_bytes(text: str, path: str) -> bytes:
    try:
        return UUID(text).bytes
    except ValueError:
        raise InputError(f"{text!r} is no UUID", field=path, next_step="map it to one that is") from None


def _scalars(values: pa.Array, kind: str, logical: Logical | None, path: str) -> list[Any]:
    if _is(logical, "decimal"):
        return _two_complements(values, None, path)
    if kind in {"int", "long"} and not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if kind == "int" else pa.int64())
    return values.to_pylist()  # type: ignore[no-any-return]


def _is(logical: Logical | None, name: str) -> bool:
    return logical is not None and logical.name == name


def _two_complements(values: pa.Array, size: int | None, path: str) -> list[Any]:
    """Decimals as of Java's ``BigInteger.toByteArray``, or in ``size`` bytes."""
    encoded = []
    for row, number in enumerate(fixed_values(values)):
        whole = int.from_bytes(number.tobytes(), "little", signed=True)
        least = (whole + (whole < 0)).bit_length() // 8 + 1
        if size is not None and least > size:
            raise InputError(f"the decimal {values[row]} takes more than {counted(size, 'byte')}", field=path)
        encoded.append(whole.to_bytes(size or least, "big", signed=True))
    return encoded


def _check(values: Sequence[Any], fits: Any, node: Node, path: str) -> None:
    for value in values:
        if not fits(value):
            raise InputError(f"{value!r} is no {describe(node)}", field=path, next_step="map it to one that is")


def _grouped(values: pa.Array, items: list[Any]) -> list[list[Any]]:
    offsets = values.offsets.to_pylist()
    return [items[begin - offsets[0] : end - offsets[0]] for begin, end in pairwise(offsets)]


def _first(values: pa.Array) -> int:
    return values.offsets[0].as_py()  # type: ignore[no-any-return]


def _last(values: pa.Array) -> int:
    return values.offsets[-1].as_py()  # type: ignore[no-any-return]
