"""What a Protobuf field holds, as Arrow and back, many values at a time.

=====================================  ==============================================================================
Protobuf                               Arrow
=====================================  ==============================================================================
double, float, bool, string, bytes     double, float, bool, string, binary
int32, sint32, sfixed32                int32
int64, sint64, sfixed64                int64
uint32, fixed32                        int64
uint64, fixed64                        decimal128(20, 0)
enum                                   string: the name; of a number without a name its digits
message                                struct
Timestamp                              timestamp[us, UTC]; nanoseconds below are cut off
StringValue and the other wrappers     what they wrap
Struct, Value, ListValue               string: JSON
Duration, Any and others               struct, as any message
repeated, map                          list, map
=====================================  ==============================================================================

Delta tables have no unsigned numbers and no nanoseconds, so that these become the next wider type, as for Spark's
``from_protobuf``. What is not there is null where Protobuf can tell: messages, members of a oneof, ``optional`` fields;
else it is the default.
"""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from statelib.columns.scatter import scatter
from statelib.columns.time_columns import time_problem
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.serdes.spans import list_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.descriptor import Descriptor, EnumDescriptor
    from google.protobuf.message import Message

_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_JSON = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")}
_MOST_MICROS = (1 << 63) - 1
_TIMESTAMP = "google.protobuf.Timestamp"
_SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
}


class Kind(Protocol):
    """What single values are; those of a field that may be absent are put in their places by `Field`."""

    arrow_type: pa.DataType

    def array(self, values: list[Any]) -> pa.Array:
        """Protobuf's values, none of them None, as Arrow's."""

    def values(self, array: pa.Array, path: str) -> list[Any]:
        """The inverse; messages for what is a message.

        Raises:
            InputError: One does not fit; ``path`` says where.
        """


class Scalar:
    """A number, a truth value, text or bytes."""

    def __init__(self, field: FieldDescriptor) -> None:
        is_text = field.type == FieldDescriptor.TYPE_STRING
        self.arrow_type = _SCALARS.get(field.cpp_type) or (pa.string() if is_text else pa.binary())

    def array(self, values: list[Any]) -> pa.Array:
        """See `Kind`."""
        return pa.array(values, self.arrow_type)

    def values(self, array: pa.Array, path: str) -> list[Any]:
        """See `Kind`; what is out of range is refused where it is put into a message."""
        del path
        found = array.to_pylist()
        return [int(value) for value in found] if pa.types.is_decimal(self.arrow_type) else found


class Enum:
    """A name; a number that has none is its digits, and comes back as it was."""

    def __init__(self, descriptor: EnumDescriptor) -> None:
        self.arrow_type = pa.string()
        self._name = {number: value.name for number, value in descriptor.values_by_number.items()}
        self._number: dict[str, int] = {value.name: value.number for value in descriptor.values}
        self._called = descriptor.full_name

    def array(self, values: list[Any]) -> pa.Array:
        """See `Kind`."""
        return pa.array([self._name.get(value) or str(value) for value in values], self.arrow_type)

    def values(self, array: pa.Array, path: str) -> list[Any]:
        """See `Kind`."""
        return [self._of(name, path) for name in array.to_pylist()]

    def _of(self, name: str, path: str) -> int:
        number = self._number.get(name)
        if number is None and re.fullmatch(r"-?\d{1,10}", name):
            return int(name)
        if number is None:
            step = f"map it to one of {', '.join(self._number)}"
            raise InputError(f"{name!r} is no value of the enum {self._called}", field=path, next_step=step)
        return number


class Timestamp:
    """``google.protobuf.Timestamp``."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.arrow_type = pa.timestamp("us", "UTC")
        self._class = GetMessageClass(descriptor)

    def array(self, values: list[Any]) -> pa.Array:
        """See `Kind`."""
        micros = [value.seconds * 1_000_000 + value.nanos // 1_000 for value in values]
        if far := next((time for time in micros if not -_MOST_MICROS <= time <= _MOST_MICROS), None):
            raise ValueError(time_problem(far // 1_000))
        return pa.array(micros, pa.int64()).cast(self.arrow_type)

    def values(self, array: pa.Array, path: str) -> list[Any]:
        """See `Kind`."""
        del path
        return [
            self._class(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1_000)
            for micros in array.cast(pa.int64()).to_pylist()
        ]


class Wrapper:
    """``google.protobuf.Int64Value`` and the like: a value that may be absent."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._inner = Scalar(descriptor.fields_by_name["value"])
        self._class = GetMessageClass(descriptor)
        self.arrow_type = self._inner.arrow_type

    def array(self, values: list[Any]) -> pa.Array:
        """See `Kind`."""
        return self._inner.array([value.value for value in values])

    def values(self, array: pa.Array, path: str) -> list[Any]:
        """See `Kind`."""
        return [_made(self._class, value, path) for value in self._inner.values(array, path)]


def _made(of: type[Message], value: Any, path: str) -> Message:
    try:
        return of(value=value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{value!r} does not fit: {error}", field=path) from None


class Json:
    """``google.protobuf.Struct`` and what is in it: JSON, which may hold itself."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.arrow_type = pa.string()
        self._class = GetMessageClass(descriptor)

    def array(self, values: list[Any]) -> pa.Array:
        """See `Kind`."""
        return pa.array([json_format.MessageToJson(value, indent=None) for value in values], self.arrow_type)

    def values(self, array: pa.Array, path: str) -> list[Any]:
        """See `Kind`."""
        try:
            return [json_format.Parse(text, self._class()) for text in array.to_pylist()]
        except json_format.ParseError as error:
            raise InputError(f"the text is no {self._class.DESCRIPTOR.name}: {error}", field=path) from None


class Struct:
    """A message: its fields, in the order of the descriptor.

    Raises:
        ConfigurationError: It holds itself.
    """

    def __init__(self, descriptor: Descriptor, around: tuple[str, ...] = (), path: str = "") -> None:
        if descriptor.full_name in around:
            raise ConfigurationError(
                f"the message {descriptor.full_name} contains itself, which a column cannot",
                field=path,
                next_step="declare descriptors without this field: Protobuf skips fields that it does not know",
            )
        around = (*around, descriptor.full_name)
        self._class = GetMessageClass(descriptor)
        self._fields = [
            field_of(field, around, f"{path}.{field.name}".lstrip("."))
            for field in sorted(descriptor.fields, key=lambda field: field.index)
        ]
        self.arrow_type = pa.struct([(field.name, field.arrow_type) for field in self._fields])

    def array(self, values: list[Any]) -> pa.Array:
        """See `Kind`."""
        columns = [field.read(values) for field in self._fields]
        return pa.Array.from_buffers(self.arrow_type, len(values), [None], children=columns)

    def values(self, array: pa.Array, path: str) -> list[Any]:
        """See `Kind`."""
        messages = [self._class() for _ in range(len(array))]
        for field in self._fields:
            field.write(messages, array.field(field.name), f"{path}.{field.name}")
        return messages


class Field:
    """A field with at most one value."""

    def __init__(self, field: FieldDescriptor, kind: Kind) -> None:
        self.name, self._kind, self.arrow_type = field.name, kind, kind.arrow_type
        self._has_presence = field.has_presence
        self._is_message = field.message_type is not None

    def read(self, messages: Sequence[Message]) -> pa.Array:
        """The field's values, null where absent."""
        name = self.name
        if not self._has_presence:
            return self._kind.array([getattr(message, name) for message in messages])
        there = np.array([message.HasField(name) for message in messages], np.bool_)
        present = self._kind.array(
            [getattr(message, name) for message, has in zip(messages, there, strict=True) if has]
        )
        return scatter(present, there)

    def write(self, messages: Sequence[Message], column: pa.Array, path: str) -> None:
        """Puts a value into each message, but null."""
        if column.null_count:
            if not self._has_presence:
                raise _null(path)
            messages = [
                message for message, valid in zip(messages, column.is_valid().to_pylist(), strict=True) if valid
            ]
            column = column.drop_null()
        for message, value in zip(messages, self._kind.values(column, path), strict=True):
            if self._is_message:
                inner = getattr(message, self.name)
                inner.SetInParent()
                inner.MergeFrom(value)
            else:
                _set(message, self.name, value, path)


class Repeated:
    """A field with any number of values."""

    def __init__(self, field: FieldDescriptor, kind: Kind) -> None:
        self.name, self._kind = field.name, kind
        self.arrow_type = pa.list_(kind.arrow_type)

    def read(self, messages: Sequence[Message]) -> pa.Array:
        """The field's lists."""
        lists = [getattr(message, self.name) for message in messages]
        items = self._kind.array(list(chain.from_iterable(lists)))
        return pa.ListArray.from_arrays(list_offsets([len(items) for items in lists]), items, type=self.arrow_type)

    def write(self, messages: Sequence[Message], column: pa.Array, path: str) -> None:
        """Puts a list into each message."""
        if column.null_count:
            raise _null(path)
        items = column.flatten()
        if items.null_count:
            raise _null(f"{path}[]")
        values, offsets = self._kind.values(items, f"{path}[]"), column.offsets.to_pylist()
        for message, (begin, end) in zip(messages, pairwise(offsets), strict=True):
            try:
                getattr(message, self.name).extend(values[begin - offsets[0] : end - offsets[0]])
            except (TypeError, ValueError) as error:
                raise InputError(f"a value does not fit: {error}", field=path) from None


class Map:
    """A field with values by key."""

    def __init__(self, field: FieldDescriptor, key: Kind, value: Kind) -> None:
        self.name, self._key, self._value = field.name, key, value
        self.arrow_type = pa.map_(key.arrow_type, value.arrow_type)
        self._is_message = field.message_type.fields_by_name["value"].message_type is not None

    def read(self, messages: Sequence[Message]) -> pa.Array:
        """The field's maps, by key, because Protobuf has no order."""
        maps = [sorted(getattr(message, self.name).items(), key=lambda item: item[0]) for message in messages]
        pairs = list(chain.from_iterable(maps))
        keys = self._key.array([key for key, _ in pairs])
        values = self._value.array([value for _, value in pairs])
        return pa.MapArray.from_arrays(list_offsets([len(pairs) for pairs in maps]), keys, values, type=self.arrow_type)

    def write(self, messages: Sequence[Message], column: pa.Array, path: str) -> None:
        """Puts a map into each message."""
        offsets = column.offsets.to_pylist()
        keys, values = column.keys[offsets[0] : offsets[-1]], column.items[offsets[0] : offsets[-1]]
        if column.null_count or values.null_count:
            raise _null(path)
        pairs = list(zip(self._key.values(keys, path), self._value.values(values, f"{path}{{}}"), strict=True))
        for message, (begin, end) in zip(messages, pairwise(offsets), strict=True):
            target = getattr(message, self.name)
            for key, value in pairs[begin - offsets[0] : end - offsets[0]]:
                if self._is_message:
                    target[key].CopyFrom(value)
                else:
                    _put(target, key, value, path)


def field_of(field: FieldDescriptor, around: tuple[str, ...], path: str) -> Field | Repeated | Map:
    """What reads and writes a field; ``around``: the messages that it is within."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields_by_name["key"], message.fields_by_name["value"]
        return Map(field, _kind(key, around, path), _kind(value, around, f"{path}{{}}"))
    kind = _kind(field, around, path)
    return Repeated(field, kind) if field.is_repeated else Field(field, kind)


def _kind(field: FieldDescriptor, around: tuple[str, ...], path: str) -> Kind:
    message = field.message_type
    if message is None:
        return Enum(field.enum_type) if field.enum_type is not None else Scalar(field)
    return message_kind(message, around, path)


def message_kind(message: Descriptor, around: tuple[str, ...] = (), path: str = "") -> Kind:
    """What reads and writes messages of a type."""
    if message.full_name == _TIMESTAMP:
        return Timestamp(message)
    if message.full_name in _WRAPPERS:
        return Wrapper(message)
    if message.full_name in _JSON:
        return Json(message)
    return Struct(message, around, path)


def _null(path: str) -> InputError:
    step = "map null to a default, or declare the field optional"
    return InputError("null, which the Protobuf field cannot hold", field=path, next_step=step)


def _set(message: Message, name: str, value: Any, path: str) -> None:
    try:
        setattr(message, name, value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{value!r} does not fit: {error}", field=path) from None


def _put(target: Any, key: Any, value: Any, path: str) -> None:
    try:
        target[key] = value
    except (TypeError, ValueError) as error:
        raise InputError(f"{value!r} does not fit: {error}", field=path) from None
