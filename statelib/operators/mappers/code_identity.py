"""Which code a topology's function is: what the fingerprint knows of it."""

from __future__ import annotations

import functools
import hashlib
import json
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def describe_function(function: Callable[..., object]) -> object:
    """The qualified name, and a hash of the code that ignores comments, layout and place in the file."""
    described = {"function": getattr(function, "__qualname__", type(function).__qualname__)}
    code = getattr(function, "__code__", None)
    if code is not None:
        described["code"] = hashlib.sha256(repr(_code_facts(code)).encode()).hexdigest()
    return described


def _code_facts(code: CodeType) -> tuple[object, ...]:
    def constant(value: object) -> object:
        if isinstance(value, CodeType):
            return _code_facts(value)
        return sorted(map(repr, value)) if isinstance(value, frozenset) else value

    return (
        code.co_code.hex(),
        code.co_names,
        code.co_varnames,
        [constant(value) for value in code.co_consts],
    )


def describe_class(cls: type) -> object:
    """The qualified name, and a hash of the code of its methods and of those of the classes it is made of."""
    facts = [
        (name, _code_facts(member.__code__))
        for base in cls.__mro__
        for name, member in sorted(vars(base).items())
        if isinstance(member, FunctionType)
    ]
    return {"class": cls.__qualname__, "code": hashlib.sha256(repr(facts).encode()).hexdigest()}


def describe_factory(factory: Callable[[], object]) -> object:
    """A class, a function, a `functools.partial` of one, or an object that is called: `describe_class` of its class."""
    if isinstance(factory, functools.partial):
        arguments = [_plain(argument) for argument in factory.args]
        named = {name: _plain(argument) for name, argument in factory.keywords.items()}
        return {"partial": describe_factory(factory.func), "arguments": arguments, "named": named}
    if isinstance(factory, type):
        return describe_class(factory)
    return describe_function(factory) if isinstance(factory, FunctionType) else describe_class(type(factory))


def _plain(argument: object) -> object:
    """The argument itself if it is plain data, else what is the same in every process: its type."""
    try:
        json.dumps(argument)
    except (TypeError, ValueError):
        return {"type": type(argument).__qualname__}
    return argument
