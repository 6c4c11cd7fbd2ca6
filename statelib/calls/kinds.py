"""What an annotation of the DSL's public methods asks of an argument.

Annotations are read as text, so that no class has to be imported for them: an object is of a class if one of the
classes that it inherits from has the name. A few names stand for more than one class, or for less: see `_KINDS`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args

from statelib.settings.semantics import Semantics

_ANY = frozenset({"Any", "object"})
_VALUES_SHOWN = (str, bytes, int, float, list, tuple, set, dict)
_LONGEST_SHOWN = 60
_AN = frozenset("aeiouAEIOU")


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the alternatives of an annotation.

    Attributes:
        name: As it is written there, without what is in brackets.
        arguments: Of a ``Callable``: how many it must take; None: that is not said.
        values: Of a ``Literal``: what it may be.
    """

    name: str
    arguments: int | None = None
    values: tuple[object, ...] = ()

    @property
    def shown(self) -> str:
        """In a sentence, with an article."""
        if self.values:
            return " or ".join(map(repr, self.values))
        if self.name in _KINDS:
            return _KINDS[self.name][0]
        name = self.name.rpartition(".")[2]
        return f"{'an' if name[0] in _AN else 'a'} {name}"

    def fits(self, value: object) -> bool:
        """Whether it is one; how many arguments a function takes is `wrong_arity`'s."""
        if self.name in _ANY:
            return True
        if self.values:
            return any(value == one for one in self.values)
        if self.name == "None":
            return value is None
        if self.name in _KINDS:
            return _KINDS[self.name][1](value)
        return self.name.rpartition(".")[2] in class_names(value)

    def wrong_arity(self, value: object) -> bool:
        """Whether a function cannot be called with what it will be called with."""
        if self.name == "Callable":
            return self.arguments is not None and not takes(value, self.arguments)
        if self.name in SUPPLIERS:
            return "ProcessorSupplier" not in class_names(value) and not takes(value, 0)
        return self.name == "MapperLike" and unmappable(value) is not None


SUPPLIERS = {"ProcessorSupplierLike": "processor", "ValueTransformerSupplierLike": "transformer"}
"""What makes processors of a kind, and what that is called."""


def class_names(value: object) -> tuple[str, ...]:
    """Of the object's class and those that it inherits from, the nearest first."""
    return tuple(base.__name__ for base in type(value).__mro__)


def shown(value: object) -> str:
    """An argument in a sentence: its class, and itself where it is short."""
    name = type(value).__name__
    text = repr(value) if isinstance(value, _VALUES_SHOWN) else ""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None:
        return "None"
    return f"{'an' if name[0] in _AN else 'a'} {name}" + (f": {text}" if 0 < len(text) <= _LONGEST_SHOWN else "")


def takes(function: object, count: int) -> bool:
    """Whether a function can be called with so many arguments; True where it does not say."""
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


@cache
def kinds_of(annotation: str) -> tuple[Kind, ...]:
    """The alternatives of an annotation."""
    return tuple(_alternatives(ast.parse(annotation, mode="eval").body))


def _alternatives(node: ast.expr) -> list[Kind]:
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_alternatives(left), *_alternatives(right)]
        case ast.Subscript(value=ast.Name(id="Callable"), slice=ast.Tuple(elts=[ast.List(elts=arguments), _])):
            return [Kind("Callable", len(arguments))]
        case ast.Subscript(value=ast.Name(id="Literal"), slice=values):
            found = ast.literal_eval(values)
            return [Kind("Literal", values=found if isinstance(found, tuple) else (found,))]
        case ast.Subscript(value=value):
            return [Kind(ast.unparse(value))]
        case _:
            return [Kind(ast.unparse(node))]


def unmappable(value: object) -> object:
    """Of a mapper, the function in it that cannot be called with a batch; None: there is none."""
    if isinstance(value, Mapping):
        return next((found for each in value.values() if (found := unmappable(each)) is not None), None)
    return value if callable(value) and not _is_mapper(value) and not takes(value, 1) else None


def _is_mapper(value: object) -> bool:
    return callable(getattr(value, "map", None)) and callable(getattr(value, "describe", None))


def _can_map(value: object) -> bool:
    is_text = isinstance(value, (str, Mapping))
    return is_text or callable(value) or "Expression" in class_names(value) or _is_mapper(value)


def _is_serde(value: object) -> bool:
    return not isinstance(value, type) and all(hasattr(value, name) for name in ("serialize", "deserialize"))


def _is_schema_source(value: object) -> bool:
    return not isinstance(value, type) and all(hasattr(value, name) for name in ("schema", "id_of"))


def _one_of(*names: str) -> Callable[[object], bool]:
    return lambda value: not set(names).isdisjoint(class_names(value))


_TEXTS = (str, bytes)
_KINDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "str": ("a str", lambda value: isinstance(value, str)),
    "int": ("an int", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "bool": ("a bool", lambda value: isinstance(value, bool)),
    "Callable": ("a function", callable),
    "re.Pattern": ("a pattern", lambda value: isinstance(value, re.Pattern)),
    "Mapping": ("a dict", lambda value: isinstance(value, Mapping)),
    "Sequence": ("a list", lambda value: isinstance(value, Sequence) and not isinstance(value, _TEXTS)),
    "Iterable": ("a list", lambda value: isinstance(value, Iterable) and not isinstance(value, (*_TEXTS, Mapping))),
    "MapperLike": ("a mapper", _can_map),
    "ProcessorSupplierLike": ("a processor's class", lambda value: callable(value) or _is_supplier(value)),
    "ValueTransformerSupplierLike": ("a transformer's class", lambda value: callable(value) or _is_supplier(value)),
    "Serde": ("a serde", _is_serde),
    "SerdeLike": ("a serde or an Arrow type", lambda value: _is_serde(value) or "DataType" in class_names(value)),
    "SchemaSource": ("a SchemaRegistry", _is_schema_source),
    "BytesStoreSupplier": ("a supplier of Stores", lambda value: class_names(value)[0].endswith("BytesStoreSupplier")),
    "Stream": ("a KStream", _one_of("KStream")),
    "Table": ("a KTable", _one_of("KTable")),
    "AlignedWindows": ("TimeWindows or DayWindows", _one_of("TimeWindows", "DayWindows", "UnlimitedWindows")),
    "SlidingWindows": ("SlidingWindows", _one_of("SlidingWindows")),
    "SessionWindows": ("SessionWindows", _one_of("SessionWindows")),
    "JoinWindows": ("JoinWindows", _one_of("JoinWindows")),
    "AnyBufferConfig": ("a buffer", _one_of("StrictBufferConfig", "EagerBufferConfig")),
    "StrictBufferConfig": ("a buffer that never emits early", _one_of("StrictBufferConfig")),
    "Clock": ("'first', 'record' or 'last'", lambda value: value in ("first", "record", "last")),
    "Semantics": (
        " or ".join(repr(semantics) for semantics in get_args(Semantics)),
        lambda value: value in get_args(Semantics),
    ),
}
"""By name: how it is called in a sentence, and what is one."""


def _is_supplier(value: object) -> bool:
    return "ProcessorSupplier" in class_names(value)
