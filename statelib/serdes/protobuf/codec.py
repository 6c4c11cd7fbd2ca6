"""Messages of one type, as bytes and back."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass

from statelib.columns.scatter import scatter
from statelib.errors.kinds import InputError
from statelib.serdes.base import conformed
from statelib.serdes.protobuf.descriptors import as_registered, files_of, message_type
from statelib.serdes.protobuf.kinds import message_kind
from statelib.serdes.spans import has_reason, lenient, no_reasons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.message import Message

    from statelib.serdes.base import Lenient
    from statelib.serdes.protobuf.kinds import Kind
    from statelib.serdes.schema_source import RegisteredSchema
    from statelib.serdes.spans import Spans


class Codec:
    """Messages of one type.

    Args:
        descriptors: A ``FileDescriptorSet``.
        message: The message's full name.

    Attributes:
        kind: What the message is as a column.
        schema: The file, for a registry.
        described: What is needed of the descriptors, in base64.
    """

    def __init__(self, descriptors: bytes, message: str) -> None:
        files = files_of(descriptors, message)
        descriptor = message_type(files, message)
        self._class, self._name = GetMessageClass(descriptor), message
        self.kind: Kind = message_kind(descriptor)
        self.schema: RegisteredSchema = as_registered(files)
        pruned = descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
        self.described = base64.b64encode(pruned).decode()

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        """The messages' bytes; null stays null.

        Raises:
            InputError: A value does not fit.
        """
        values = conformed(values, self.kind.arrow_type, "the Protobuf message")
        try:
            messages = self.kind.values(values.drop_null(), "value")
            encoded = iter([message.SerializeToString(deterministic=True) for message in messages])
        except (EncodeError, ValueError) as error:
            raise InputError(f"the Protobuf message cannot be written: {error}") from None
        return pa.array([next(encoded) if valid else None for valid in values.is_valid().to_pylist()], pa.binary())

    def decode(self, spans: Spans) -> Lenient:
        """The values, and why some are none."""
        reasons = no_reasons(len(spans.start))
        messages: list[Message] = []
        good = []
        for row, data in enumerate(spans.binary().to_pylist()):
            try:
                message = self._class.FromString(data)
            except DecodeError:
                reasons[row] = f"no {self._name}: truncated, or not Protobuf"
                continue
            if message.IsInitialized():
                messages.append(message)
                good.append(row)
            else:
                reasons[row] = (
                    f"the {self._name} lacks what is required: {', '.join(message.FindInitializationErrors())}"
                )
        values = self._arrays(messages, good, reasons)
        return lenient(scatter(values, ~has_reason(reasons)), reasons)

    def _arrays(self, messages: Sequence[Message], rows: Sequence[int], reasons: Any) -> pa.Array:
        """Of those that can be a column; for others a reason is put into ``reasons``."""
        try:
            return self.kind.array(list(messages))
        except (
            ValueError,
            OverflowError,
            pa.ArrowException,
        ) as error:  # a text of proto2 that is not UTF-8, a far time
            if len(messages) == 1:
                reasons[rows[0]] = str(error)
                return pa.nulls(0, self.kind.arrow_type)
        middle = len(messages) // 2
        parts = [self._arrays(messages[:middle], rows[:middle], reasons)]
        parts.append(self._arrays(messages[middle:], rows[middle:], reasons))
        return pa.concat_arrays(parts)
