"""What Kafka Streams' DSL has and this one has not, or calls otherwise: an error that names the way round."""

from __future__ import annotations

import functools
import inspect
import re
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from statelib.errors import ConfigurationError
from statelib.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

_Class = TypeVar("_Class", bound=type)

_WAYS = {
    "add_global_store": "use global_table(), or process() with a store of each task",
    "add_read_only_state_store": "use table(), and join with it",
    "branch": "use split().branch(...), and default_branch() for what is left",
    "cogroup": "aggregate each stream on its own, and join the tables: a.outer_join(b, ...)",
    "emit_strategy": "final results: .suppress(Suppressed.until_window_closes(...))",
    "flat_transform": "use process(), whose processor may forward several records, or flat_map()",
    "flat_transform_values": "use process_values() or flat_map_values()",
    "print": "use foreach() or peek(); a store is shown by hindstream inspect",
    "print_to": "use foreach() or peek()",
    "query_state": "use statelib.open_state, or hindstream inspect",
    "through": "use repartition(), or to() and stream() of the topic",
    "transform": "use process()",
    "write_as_text": "use to(), and read the topic's archive",
}
"""By name, what does the same here."""

_TOPICS = "read each topic with stream(), and merge() them"
_WAYS_OF_VALUES = {
    ("stream", "topic", "list"): _TOPICS,
    ("stream", "topic", "tuple"): _TOPICS,
    ("stream", "topic", "set"): _TOPICS,
    (
        "stream",
        "topic",
        "Pattern",
    ): "name the topics, as what is replayed has to be known: stream() each, and merge() them",
    ("to", "topic", "function"): "split() by what the topic depends on, and write each branch with to()",
    ("to", "topic", "method"): "split() by what the topic depends on, and write each branch with to()",
}
"""By method, parameter and the type of what was given."""

_CHECKED = frozenset({
    "BranchedKStream", "Branched", "Consumed", "Deduplicated", "Grouped", "Joined", "KStream", "KTable",
    "Materialized", "Named", "None", "Produced", "Repartitioned", "StreamJoined", "Suppressed", "str",
})  # fmt: skip
"""Types that are looked at, where an annotation has no others; joins look at what they are given themselves."""


class NotInThisDsl(ConfigurationError, AttributeError):
    """A method that there is not."""


class KafkasNames:
    """Base of the DSL's classes: who asks for a method that there is not is told what to use."""

    if not TYPE_CHECKING:  # else a type checker would take any name

        def __getattr__(self, name: str) -> Any:
            """Raises; called for names that the class does not have."""
            if name.startswith("_"):
                raise AttributeError(name)
            raise _no_method(type(self), name)


def arguments_checked(cls: _Class) -> _Class:
    """Has the public methods of a class say what they take, where they are given something else."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _checked(cls.__name__, member))
    return cls


def _no_method(cls: type, name: str) -> NotInThisDsl:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    methods = [method for method in dir(cls) if not method.startswith("_")]
    if snake in methods:
        step = f"call it {snake}()"
    elif snake in _WAYS:
        step = _WAYS[snake]
    else:
        step = did_you_mean(snake, methods, "it has")
    return NotInThisDsl(f"{cls.__name__} has no {name}()", next_step=step)


def _checked(cls: str, method: FunctionType) -> Callable[..., Any]:
    signature = inspect.signature(method)
    takes = {name: _types(of.annotation) for name, of in signature.parameters.items()}
    takes = {name: types for name, types in takes.items() if types}

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError as error:
            shown = ", ".join([*signature.parameters][1:])
            what = f"{cls}.{method.__name__}() {error}"
            raise ConfigurationError(what, next_step=f"it takes {shown or 'nothing'}") from error
        for name in takes.keys() & given.keys():
            values = (
                given[name] if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL else [given[name]]
            )
            for value in values:
                if not takes[name] & {base.__name__ for base in type(value).__mro__} and not (
                    value is None and "None" in takes[name]
                ):
                    free = {other: types for other, types in takes.items() if other == name or other not in given}
                    raise _wrong(cls, method.__name__, name, value, free)
        return method(*args, **options)

    return call


def _types(annotation: object) -> frozenset[str]:
    """Names of the types of an annotation; none where it has others than those that are looked at."""
    names = frozenset(re.split(r"\s*\|\s*", annotation)) if isinstance(annotation, str) else frozenset()
    return names if names <= _CHECKED else frozenset()


def _wrong(cls: str, method: str, name: str, value: object, takes: dict[str, frozenset[str]]) -> ConfigurationError:
    kinds = [base.__name__ for base in type(value).__mro__]
    wanted = " or ".join(sorted(takes[name] - {"None"}))
    ways = [_WAYS_OF_VALUES[method, name, kind] for kind in kinds if (method, name, kind) in _WAYS_OF_VALUES]
    others = [other for other, types in takes.items() if other != name and types & {*kinds}]
    step = ways[0] if ways else f"give it by name: {others[0]}=" if others else f"give a {wanted}"
    return ConfigurationError(f"{cls}.{method}() takes a {wanted} as {name}, not a {kinds[0]}", next_step=step)
