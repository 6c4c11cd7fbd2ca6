"""The messages that a Protobuf file declares, in order: what a path in a registry's wire format counts."""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.descriptor_pb2 import DescriptorProto


class Declared(NamedTuple):
    """A message.

    Attributes:
        name: Its full name.
        nested: Those within it.
        is_entry: It stands for the entries of a map: a descriptor has it, a ``.proto`` file does not.
    """

    name: str
    nested: tuple[Declared, ...]
    is_entry: bool = False


@lru_cache(maxsize=1024)
def declared_in(text: str) -> tuple[Declared, ...]:
    """The messages of a schema as a registry has it: a ``.proto`` file, or a ``FileDescriptorProto`` in base64."""
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (DecodeError, ValueError):
        return _of_source(text)
    return _of_descriptors(file.message_type, file.package)


def _of_descriptors(messages: Iterable[DescriptorProto], around: str) -> tuple[Declared, ...]:
    named = [(f"{around}.{message.name}".lstrip("."), message) for message in messages]
    return tuple(
        Declared(name, _of_descriptors(message.nested_type, name), message.options.map_entry) for name, message in named
    )


_WORDS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"  # comments and strings hold anything
    r"|\bpackage\s+(?P<package>[\w.]+)\s*;|\bmessage\s+(?P<message>\w+)\s*\{|\bgroup\s+(?P<group>\w+)\s*=\s*\d+[^{;]*\{"
    r"|(?P<open>\{)|(?P<close>\})",
    re.DOTALL,
)


def _of_source(text: str) -> tuple[Declared, ...]:
    words = _WORDS.finditer(text)
    package = next((found["package"] for found in _WORDS.finditer(text) if found["package"]), "")
    return tuple(_block(words, package))


def _block(words: Iterator[re.Match[str]], around: str) -> Iterator[Declared]:
    """The messages up to the brace that closes a block; those in a oneof are of the message around it."""
    for word in words:
        if name := word["message"] or word["group"]:
            full = f"{around}.{name}".lstrip(".")
            yield Declared(full, tuple(_block(words, full)))
        elif word["open"]:
            yield from _block(words, around)
        elif word["close"]:
            return
