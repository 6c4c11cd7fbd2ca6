"""Looks at what the public methods of the DSL are given, when they are given it.

One rule for all: an object that configures (`Named`, `Materialized`, `Grouped`, ...) is known by its class and may
stand where Kafka has it, or anywhere else among the arguments; everything else goes by place or name. What does not fit
the annotation is a `ConfigurationError` that says what was given, what is wanted and how that is written, and in which
line of the user's code.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import is_dataclass
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar, get_overloads

from statelib.calls.kinds import SUPPLIERS, Kind, class_names, kinds_of, shown, unmappable
from statelib.calls.spelling import ARGUMENTS, HOW, MISSING, NAME_OF, WRITTEN
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_of_call, place_of_users_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from inspect import Signature

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound="Callable[..., Any]")
_CHECKED = "_arguments_are_checked"
_TAKERS = {
    "transform": "transform_values_with(), with store_names=[...]",
    "process": "process() or process_values()",
}
"""What takes classes with such a method, where one is given for a mapper."""
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def arguments_checked(cls: _Class) -> _Class:
    """Has the public methods of a class say what they take where they are given something else.

    Of a dataclass its constructor, too; that of other classes is the DSL's own (see `constructor_checked`). What is
    inherited counts as the class's own, unless it is of a class that is checked already: messages name what users see.
    """
    if is_dataclass(cls):
        constructor_checked(cls)
    setattr(cls, _CHECKED, True)
    for name, member in _unchecked(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType) and "NDArray" not in str(inspect.signature(member)):  # else the engine's
            setattr(cls, name, _method(cls, member))
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(cls, name, _OnClass(cls, member))
    return cls


def _unchecked(cls: type) -> dict[str, object]:
    """What a class has of itself and of those that it inherits from up to the first one that is checked."""
    members: dict[str, object] = {}
    for base in reversed(cls.__mro__[:-1]):
        if base is cls or _CHECKED not in vars(base):
            members |= vars(base)
        else:
            members = {name: member for name, member in members.items() if name not in vars(base)}
    return members


def constructor_checked(cls: _Class) -> _Class:
    """The same for the constructor of a class that users make objects of."""
    method: Any = getattr(cls, "__init__")  # noqa: B009 - of this class or one that it inherits from
    setattr(cls, "__init__", _method(cls, inspect.unwrap(method)))  # noqa: B010 - mypy lets nothing else be set
    return cls


def function_checked(function: _Function) -> _Function:
    """The same for a function."""
    call = _Call(function.__name__, function, skipped=0)

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        return call(args, options)

    return checked  # type: ignore[return-value]


def _method(cls: type, method: FunctionType) -> FunctionType:
    is_init = method.__name__ == "__init__"
    call = _Call(cls.__name__ if is_init else f"{cls.__name__}.{method.__name__}", method, skipped=1)

    @functools.wraps(method)
    def checked(*given: Any, **options: Any) -> Any:
        if not given or not isinstance(given[0], cls):
            raise _error(f"{call.name}() is called on the class", _on_object(cls, method.__name__))
        return call(given, options)

    return checked  # type: ignore[return-value]


class _OnClass:
    """A class method or static method, which makes a new object: on one that says something already it is refused."""

    def __init__(self, cls: type, method: classmethod[Any, Any, Any] | staticmethod[Any, Any]) -> None:
        function: Any = method.__func__
        self._of_class = isinstance(method, classmethod)
        self._refuses = is_dataclass(cls)
        self._call = call = _Call(f"{cls.__name__}.{function.__name__}", function, skipped=int(self._of_class))

        @functools.wraps(function)
        def checked(*given: Any, **options: Any) -> Any:
            return call(given, options)

        self._checked = checked
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        if instance is not None and self._refuses:
            return functools.partial(self._refuse, owner)
        return MethodType(self._checked, owner) if self._of_class else self._checked

    def _refuse(self, owner: type, *args: object, **options: object) -> None:
        del args, options
        name = self._checked.__name__
        others = [f"with_{name}", "with_name"] if name in {"as_", "with_"} else [f"with_{name}"]
        same = [other for other in others if hasattr(owner, other)]
        step = f"use {same[0]}()" if same else f"call {self._call.name}() first, and what begins with with_ behind it"
        raise _error(f"{self._call.name}() makes a new one, and what this one says would be lost", step)


class _Call:
    """What a method or function takes.

    Args:
        name: In messages.
        function: The function.
        skipped: How many of its first parameters are not the caller's.
    """

    def __init__(self, name: str, function: Any, *, skipped: int) -> None:
        self.name = name
        self.method = name.rpartition(".")[2]
        self._function = function
        self._skipped = skipped
        self.forms = [_without(inspect.signature(form), skipped) for form in get_overloads(function) or [function]]

    def __call__(self, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Calls the function; what it refuses names the user's line that has called it, unless it names a place.

        Raises:
            ConfigurationError: It does not take the arguments, or has raised it.
        """
        args, options = self.arranged(given[self._skipped :], options)
        try:
            return self._function(*given[: self._skipped], *args, **options)
        except ConfigurationError as error:
            if error.place.keys() & {"file", "line"}:
                raise
            raise error.placed(**place_of_users_call()).with_traceback(error.__traceback__) from error.__cause__

    def arranged(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, those that configure by name.

        Raises:
            ConfigurationError: The method does not take them.
        """
        forms = self._meant(args, options)
        args, options = _configuring_by_name(forms, args, options)
        problem: TypeError | None = None
        for form in forms:
            try:
                given = form.bind(*args, **options).arguments
            except TypeError as error:
                problem = problem or error
            else:
                self._look(form, given)
                return args, options
        self._look(forms[0], _as_far_as_possible(forms[0], args))
        raise self._wrong_arguments(forms, str(problem), args, options) from problem

    def _meant(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> list[Signature]:
        """Those overloads whose first argument is of the type that was given.

        Raises:
            ConfigurationError: There is none.
        """
        if len(self.forms) == 1:
            return self.forms
        first = next(iter(self.forms[0].parameters))
        given = [*args[:1], *([options[first]] if first in options else [])]
        if not given:
            return self.forms
        kinds = {form: _kinds(form.parameters[first]) for form in self.forms}
        meant = [form for form in self.forms if any(kind.fits(given[0]) for kind in kinds[form])]
        if not meant:
            raise self._wrong(first, given[0], [kind for of_form in kinds.values() for kind in of_form])
        return meant

    def _look(self, form: Signature, given: Mapping[str, Any]) -> None:
        for name, value in given.items():
            parameter = form.parameters[name]
            kinds = _kinds(parameter)
            each = value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else [value]
            if not kinds or parameter.kind is inspect.Parameter.VAR_KEYWORD:
                continue
            for one in each:
                fitting = [kind for kind in kinds if kind.fits(one)]
                if not fitting and not (one is None and parameter.default is None):
                    raise self._wrong(name, one, kinds)
                if fitting and all(kind.wrong_arity(one) for kind in fitting):
                    raise self._wrong_function(name, one, fitting[0])

    def _wrong(self, name: str, value: object, kinds: Iterable[Kind]) -> ConfigurationError:
        wanted = [kind for kind in kinds if kind.name != "None"]
        names = (*class_names(value), "Callable") if callable(value) else class_names(value)
        keys = [(method, name, of) for of in (*names, "*") for method in (self.name, self.method)]
        ways = [HOW[key] for key in keys if key in HOW]
        step = ways[0] if ways else " or ".join(dict.fromkeys(_written(kind, value, name) for kind in wanted))
        texts = " or ".join(dict.fromkeys(kind.shown for kind in wanted))
        return _error(f"{self.name}() takes {texts} as {name}, not {shown(value)}", step)

    def _wrong_function(self, name: str, value: Any, kind: Kind) -> ConfigurationError:
        function: Any = unmappable(value) if kind.name == "MapperLike" else value
        takes = str(inspect.signature(function))
        of_method = ARGUMENTS.get((self.method, name), ARGUMENTS.get((self.method, "*")))
        if kind.name == "MapperLike":
            wanted, step = "(batch), a pyarrow.RecordBatch", WRITTEN["MapperLike"]
            step = next((f"give it to {taker}" for of, taker in _TAKERS.items() if hasattr(function, of)), step)
        elif kind.name in SUPPLIERS:
            made = SUPPLIERS[kind.name]
            wanted, step = "()", f"give a {made}'s class, or lambda: My{made.capitalize()}(...)"
        else:
            wanted = of_method or f"{kind.arguments} arguments"
            step = f"write one of {wanted}"
        return _error(f"{self.name}() calls its {name} with {wanted}, but this one takes {takes}", step)

    def _wrong_arguments(
        self, forms: list[Signature], problem: str, args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> ConfigurationError:
        form = forms[0]
        known = [name for name, of in form.parameters.items() if of.kind not in _VARIABLE]
        unknown = [name for name in options if name not in known]
        given = {*known[: len(args)], *options}
        missing = [name for name in known if name not in given and (self.method, name) in MISSING]
        texts = " or ".join(_signature(self.method, form) for form in forms)
        step = f"it is {texts}"
        if unknown and problem.startswith("got an unexpected"):
            near = did_you_mean(unknown[0], known, "")
            step = f"{near} {step[0].upper()}{step[1:]}" if near.startswith("did") else step
        elif missing and problem.startswith("missing"):
            step = MISSING[self.method, missing[0]]
        return _error(f"{self.name}() {problem}", step)


def _without(signature: Signature, skipped: int) -> Signature:
    return signature.replace(parameters=[*signature.parameters.values()][skipped:])


def _kinds(parameter: inspect.Parameter) -> tuple[Kind, ...]:
    """What a parameter takes; nothing if that is not said."""
    return kinds_of(parameter.annotation) if isinstance(parameter.annotation, str) else ()


def _configuring_by_name(
    forms: list[Signature], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, of which those that configure have got their parameters' names."""
    left, named = [], dict(options)
    for arg in args:
        name = NAME_OF.get(type(arg).__name__)
        if name is not None and name not in named and all(name in form.parameters for form in forms):
            named[name] = arg
        else:
            left.append(arg)
    first = next(iter(forms[0].parameters), None)
    if first in named and first not in options:  # the only one, mostly: as it was given
        left.insert(0, named.pop(first))
    places = [name for name, of in forms[0].parameters.items() if of.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(forms) == 1:  # the others go by place, past the parameters that have been given
        at = next((place for place, name in enumerate(places) if name in named), len(places))
        following = [name for name in places[at:] if name not in named]
        named |= dict(zip(following, left[at:], strict=False))
        del left[at : at + len(following)]
    return tuple(left), named


def _as_far_as_possible(form: Signature, args: tuple[Any, ...]) -> Mapping[str, Any]:
    """What the first arguments are for, where they are too many or too few."""
    for count in range(len(args), 0, -1):
        try:
            return form.bind_partial(*args[:count]).arguments
        except TypeError:
            continue
    return {}


def _signature(method: str, form: Signature) -> str:
    """As text, without the types; the default values that are not None are shown."""
    parts: list[str] = []
    star = False
    for name, parameter in form.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.append(f"*{name}")
            star = True
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            parts.append(f"**{name}")
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        default = "" if parameter.default is inspect.Parameter.empty else f"={_default(parameter.default)}"
        parts.append(f"{name}{default}")
    return f"{method}({', '.join(parts)})"


def _default(value: object) -> str:
    return repr(value) if isinstance(value, (str, int, tuple, type(None))) else "..."


def _written(kind: Kind, value: object, name: str) -> str:
    """How somebody writes what is wanted, given what he has written."""
    text = WRITTEN.get(kind.name, f"give {kind.shown}")
    if isinstance(value, str) and '"name"' in text:
        return text.replace('"name"', f'"{value}"')
    if kind.name == "timedelta" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"write timedelta(milliseconds={value}), or seconds= and so on"
    return text.replace("NAME", name)


def _on_object(cls: type, method: str) -> str:
    """How a method is called that was called on the class."""
    makers = [name for name, member in vars(cls).items() if isinstance(member, _OnClass)]
    try:
        cls()
    except (ConfigurationError, TypeError):
        made = f"{cls.__name__}.{makers[-1]}(...)" if makers else "what StreamsBuilder's methods give"
    else:
        made = f"{cls.__name__}()"
    return f"call it on an object: {made}.{method}(...)"


def _error(what: str, step: str) -> ConfigurationError:
    return ConfigurationError(what, next_step=step, **place_of_call())
