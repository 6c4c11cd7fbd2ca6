"""Protobuf's descriptors: what ``protoc --descriptor_set_out --include_imports`` writes."""

from __future__ import annotations

import base64
import importlib
from typing import TYPE_CHECKING

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from statelib.errors.kinds import ConfigurationError
from statelib.serdes.schema_source import RegisteredSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

_WELL_KNOWN = "google/protobuf/"
"""Files that every Protobuf library and every registry has."""

_PROTOC = "protoc --include_imports --descriptor_set_out=FILE.desc FILE.proto"


def files_of(descriptors: bytes, message: str) -> list[FileDescriptorProto]:
    """The file that declares a message, last, after those that it imports, each after those that it imports itself.

    Args:
        descriptors: A ``FileDescriptorSet``.
        message: The message's full name.

    Raises:
        ConfigurationError: It is no ``FileDescriptorSet``, or has no such message, or lacks an import.
    """
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    except DecodeError:
        raise ConfigurationError("the descriptors are no FileDescriptorSet", next_step=f"make one: {_PROTOC}") from None
    by_name = {file.name: file for file in found.file}
    declaring = {name: file for file in found.file for name in _message_names(file)}
    if message not in declaring:
        has = ", ".join(sorted(name for name, file in declaring.items() if not file.name.startswith(_WELL_KNOWN)))
        raise ConfigurationError(
            f"the descriptors have no message {message}", next_step=f"use one of theirs: {has or None}"
        )
    ordered: dict[str, FileDescriptorProto] = {}

    def add(file: FileDescriptorProto) -> None:
        for name in file.dependency:
            if name not in ordered:
                add(by_name.get(name) or _well_known(name))
        ordered[file.name] = file

    add(declaring[message])
    return list(ordered.values())


def _well_known(name: str) -> FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    if name.startswith(_WELL_KNOWN):
        try:
            module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ImportError:
            pass
        else:
            module.DESCRIPTOR.CopyToProto(file)
            return file
    raise ConfigurationError(f"the descriptors lack the import {name}", next_step=f"make them with it: {_PROTOC}")


def message_type(files: Iterable[FileDescriptorProto], message: str) -> Descriptor:
    """The message's descriptor, in a pool of its own.

    Raises:
        ConfigurationError: The files contradict themselves.
    """
    pool = DescriptorPool()
    try:
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
        return pool.FindMessageTypeByName(message)
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            f"the descriptors contradict themselves: {error}", next_step=f"make them anew: {_PROTOC}"
        ) from None


def _message_names(file: FileDescriptorProto) -> Iterable[str]:
    """Full names of all messages, also of nested ones, but of those that stand for a map's entries."""
    open_ = [(file.package, message) for message in file.message_type]
    while open_:
        around, message = open_.pop()
        name = f"{around}.{message.name}".lstrip(".")
        if not message.options.map_entry:
            yield name
        open_ += [(name, inner) for inner in message.nested_type]


def as_registered(files: Sequence[FileDescriptorProto]) -> RegisteredSchema:
    """The last file as a registry takes it, with its imports but those that every registry has."""
    schemas: dict[str, RegisteredSchema] = {}
    for file in files:
        used = tuple((name, schemas[name]) for name in file.dependency if not name.startswith(_WELL_KNOWN))
        text = base64.b64encode(file.SerializeToString()).decode()
        schemas[file.name] = RegisteredSchema("PROTOBUF", text, used)
    return schemas[files[-1].name]
