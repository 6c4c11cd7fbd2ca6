"""An Avro schema as a program for `statelib.serdes.avro.kernel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from statelib.errors.kinds import ConfigurationError
from statelib.serdes.avro import kernel
from statelib.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Union, describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.serdes.avro.schema import Node

_PRIMITIVES = {
    "boolean": (kernel.BOOLEAN,),
    "int": (kernel.INT,),
    "long": (kernel.LONG,),
    "float": (kernel.FIXED, 4),
    "double": (kernel.FIXED, 8),
    "bytes": (kernel.BYTES,),
    "string": (kernel.BYTES,),
}


@dataclass(frozen=True)
class Place:
    """A type where it stands in a schema; ``number`` is that of its events.

    Attributes:
        number: From 0, a type before those within it.
        node: The type.
        children: Of a record its fields, of a union its members, of an array its items, of a map its keys and values.
    """

    number: int
    node: Node
    children: tuple[Place, ...]


class Program(NamedTuple):
    """A schema, compiled.

    Attributes:
        code: int64, for the kernel.
        root: The schema's places.
        places: How many.
        depth: How many arrays and maps are within one another.
    """

    code: NDArray[np.int64]
    root: Place
    places: int
    depth: int


def compiled(writer: Node) -> Program:
    """The program that reads what is written by a schema.

    Raises:
        ConfigurationError: It has an array of items that take no bytes, so that nothing bounds how many there are.
    """
    compiler = _Compiler()
    root = compiler.place(writer, 0)
    return Program(np.array([*compiler.code, kernel.END], np.int64), root, compiler.places, compiler.depth)


class _Compiler:
    def __init__(self) -> None:
        self.code: list[int] = []
        self.places = 0
        self.depth = 0

    def place(self, node: Node, depth: int) -> Place:
        number, children = self.places, tuple[Place, ...]()
        self.places += 1
        self.depth = max(self.depth, depth)
        match node:
            case Record(_, fields):
                children = tuple(self.place(field.type, depth) for field in fields)
            case Union(members):
                children = self._union(number, members, depth)
            case Array(items):
                if _least_bytes(items) == 0:
                    raise ConfigurationError(
                        f"the Avro schema has an array of {describe(items)}, of which each takes no bytes at all",
                        next_step="leave the array out of the schema",
                    )
                children = self._blocks(number, (items,), depth + 1)
            case Map(values):
                children = self._blocks(number, (Primitive("string"), values), depth + 1)
            case _:
                self.code += _leaf(node, number)
        return Place(number, node, children)

    def _union(self, number: int, members: tuple[Node, ...], depth: int) -> tuple[Place, ...]:
        self.code += [kernel.UNION, number, len(members)]
        table = len(self.code)
        self.code += [0] * len(members)
        children, jumps = [], []
        for index, member in enumerate(members):
            self.code[table + index] = len(self.code)
            children.append(self.place(member, depth))
            self.code += [kernel.JUMP, 0]
            jumps.append(len(self.code) - 1)
        for jump in jumps:
            self.code[jump] = len(self.code)
        return tuple(children)

    def _blocks(self, number: int, item: tuple[Node, ...], depth: int) -> tuple[Place, ...]:
        self.code += [kernel.BLOCKS, number]
        begin = len(self.code)
        self.code += [kernel.ITEM, 0]
        children = tuple(self.place(part, depth) for part in item)
        self.code += [kernel.JUMP, begin]
        self.code[begin + 1] = len(self.code)
        return children


def _leaf(node: Node, number: int) -> list[int]:
    match node:
        case Enum(_, symbols):
            return [kernel.ENUM, number, len(symbols)]
        case Fixed(_, size) if size:
            return [kernel.FIXED, number, size]
        case Primitive(kind) if kind != "null":
            operation, *sizes = _PRIMITIVES[kind]
            return [operation, number, *sizes]
    return []


def _least_bytes(node: Node) -> int:
    match node:
        case Primitive("null"):
            return 0
        case Fixed(_, size):
            return size
        case Record(_, fields):
            return sum(_least_bytes(field.type) for field in fields)
    return 1
