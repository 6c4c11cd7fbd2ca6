"""Public classes and their methods, read from a jar: what Java's reflection would tell, without a Java.

The layout is that of chapter 4 of the Java Virtual Machine Specification.
"""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PUBLIC, _BRIDGE, _SYNTHETIC, _ENUM = 0x0001, 0x0040, 0x1000, 0x4000
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""By tag, how many bytes of a constant nobody wants."""
_OF_OBJECT = {"equals(Object)", "hashCode()", "toString()"}
_OF_ENUMS = {"values()", "valueOf(String)"}
_PRIMITIVES = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "V": "void",
    "Z": "boolean",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JavaMethod:
    """A public method that a class declares.

    Attributes:
        name: ``new`` is a constructor.
        parameters: The simple names of their types.
        deprecated: Whether it is, or its class.
        is_new: Whether nobody has looked at it yet; a jar does not tell.
    """

    name: str
    parameters: tuple[str, ...]
    deprecated: bool = False
    is_new: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters)}){' deprecated' if self.deprecated else ''}"


@dataclass(frozen=True, slots=True)
class JavaClass:
    """A public class. Left out are methods of ``Object``, and those which the compiler makes of an enumeration."""

    name: str
    methods: tuple[JavaMethod, ...]


def public_classes(jar: Path) -> Iterator[JavaClass]:
    """The public classes of a jar, by name; without those in packages that are called ``internals``."""
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".class") and "/internals/" not in name and not name.startswith("META-INF/"):
                found = _ClassFile(io.BytesIO(archive.read(name))).read()
                if found is not None:
                    yield found


class _ClassFile:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._constants: dict[int, str | int] = {}

    def read(self) -> JavaClass | None:
        """The class; None: it is not public."""
        self._file.read(8)
        self._read_constants()
        flags, this, _super = self._numbers("HHH")
        name = self._class_name(this)
        self._file.read(2 * self._number())
        for _ in range(self._number()):  # fields
            self._member()
        methods = [self._member() for _ in range(self._number())]
        attributes = self._attributes()
        flags = self._nested_flags(attributes, this, flags)
        if not flags & _PUBLIC:
            return None
        deprecated = "Deprecated" in attributes
        left_out = _OF_OBJECT | (_OF_ENUMS if flags & _ENUM else set())
        found = []
        for member_flags, method, descriptor, of_method in methods:
            if not member_flags & _PUBLIC or member_flags & (_SYNTHETIC | _BRIDGE) or method == "<clinit>":
                continue
            parameters = tuple(_types(descriptor))
            is_deprecated = deprecated or "Deprecated" in of_method
            one = JavaMethod("new" if method == "<init>" else method, parameters, is_deprecated)
            if str(JavaMethod(one.name, parameters)) not in left_out:
                found.append(one)
        return JavaClass(name.replace("/", "."), tuple(sorted(set(found), key=str)))

    def _nested_flags(self, attributes: dict[str, bytes], this: int, flags: int) -> int:
        """Those that a class within a class was declared with."""
        nested = attributes.get("InnerClasses", b"\0\0")
        (count,) = struct.unpack_from(">H", nested)
        for number in range(count):
            inner, _outer, _name, declared = struct.unpack_from(">HHHH", nested, 2 + 8 * number)
            if inner == this:
                return int(declared)
        return flags

    def _read_constants(self) -> None:
        count, at = self._number(), 1
        while at < count:
            tag = self._file.read(1)[0]
            if tag == 1:
                self._constants[at] = self._file.read(self._number()).decode("utf-8", "replace")
            elif tag == 7:
                self._constants[at] = self._number()
            else:
                self._file.read(_SIZES[tag])
            at += 2 if tag in {5, 6} else 1

    def _member(self) -> tuple[int, str, str, dict[str, bytes]]:
        flags, name, descriptor = self._numbers("HHH")
        return flags, self._text(name), self._text(descriptor), self._attributes()

    def _attributes(self) -> dict[str, bytes]:
        found = {}
        for _ in range(self._number()):
            name, length = self._numbers("HI")
            found[self._text(name)] = self._file.read(length)
        return found

    def _class_name(self, index: int) -> str:
        return self._text(int(self._constants[index]))

    def _text(self, index: int) -> str:
        return str(self._constants[index])

    def _number(self) -> int:
        return self._numbers("H")[0]

    def _numbers(self, layout: str) -> tuple[int, ...]:
        layout = f">{layout}"
        return struct.unpack(layout, self._file.read(struct.calcsize(layout)))


def _types(descriptor: str) -> Iterator[str]:
    """The simple names of a method's parameters: ``(JLjava/lang/String;[B)V`` has long, String, byte[]."""
    at, arrays = 1, 0
    while descriptor[at] != ")":
        if descriptor[at] == "[":
            arrays += 1
            at += 1
            continue
        end = descriptor.index(";", at) if descriptor[at] == "L" else at
        name = _PRIMITIVES.get(descriptor[at]) or descriptor[at + 1 : end].rpartition("/")[2].rpartition("$")[2]
        yield name + "[]" * arrays
        at, arrays = end + 1, 0
