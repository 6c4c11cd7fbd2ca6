"""Walks over all public methods of the DSL: what does not fit is refused at once, and what fits is taken."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_overloads

import pytest

import statelib
from statelib import (
    BufferConfig,
    ConfigurationError,
    Job,
    LakeTopic,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)  # fmt: skip
from statelib.calls.kinds import _KINDS, Kind, kinds_of
from statelib.calls.spelling import NAME_OF
from statelib.operators.suppress.definition import Clock
from statelib.settings.semantics import Semantics
from tests.calls.samples import ARGUMENTS, OBJECTS, STREAMS, UNCHECKED, an, checked_classes, function_of
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
MADE_BY_USERS = {"StreamsBuilder", "TopologyTestDriver"}
BASES = {"Stream": "KStream", "Table": "KTable"}
"""What methods ask for that take what `statelib.dsl.streams_and_tables` makes."""
ENGINES = {"end_of"}
"""Methods that the engine calls, with arrays."""


class Call(NamedTuple):
    """A method, or a constructor, and one of the ways in which it can be called."""

    of: str
    method: str
    form: inspect.Signature
    is_static: bool

    def __repr__(self) -> str:
        first = next(iter(self.form.parameters.values()), None)
        return f"{self.of}.{self.method}[{first.annotation if first else ''}]"

    def on(self, folder: str) -> Callable[..., Any]:
        """What is called."""
        cls = getattr(statelib, self.of)
        if self.method == "__init__":
            return cls  # type: ignore[no-any-return]
        return getattr(cls if self.is_static else an(self.of, folder), self.method)  # type: ignore[no-any-return]


class Wrong:
    """Of no kind that anything takes."""


def calls() -> list[Call]:
    found = []
    for cls in checked_classes():
        constructed = hasattr(cls, "__dataclass_fields__") or cls.__name__ in MADE_BY_USERS
        public = [name for name in dir(cls) if not name.startswith("_")]
        for name in [*public, *(["__init__"] if constructed else [])]:
            member = inspect.getattr_static(cls, name)
            function: Any = getattr(cls, name)
            if isinstance(member, property) or not callable(function) or isinstance(function, type) or name in ENGINES:
                continue
            is_static = not inspect.isfunction(member)
            original = inspect.unwrap(getattr(function, "__func__", function))
            forms = [inspect.signature(form) for form in get_overloads(original) or [original]]
            skipped = 0 if "self" not in forms[0].parameters and "cls" not in forms[0].parameters else 1
            found += [
                Call(cls.__name__, name, form.replace(parameters=[*form.parameters.values()][skipped:]), is_static)
                for form in forms
            ]
    return found


CALLS = calls()


def right(parameter: inspect.Parameter, folder: str, of: str) -> Any:
    """An argument that fits; streams and tables are of one builder with each other only."""
    kind = next(kind for kind in kinds_of(parameter.annotation) if kind.name != "None")
    if kind.name == "Callable":
        return function_of(kind.arguments or 0)
    name = BASES.get(kind.name, kind.name)
    if name in STREAMS:
        return an(name, folder)
    if kind.name in {"Any", "object"}:
        return 1
    return ARGUMENTS[kind.name] if kind.name in ARGUMENTS else OBJECTS[kind.name]


def arguments(call: Call, folder: str) -> dict[str, Any]:
    """Right ones for all parameters that have no default."""
    return {
        name: right(parameter, folder, call.of)
        for name, parameter in call.form.parameters.items()
        if parameter.default is inspect.Parameter.empty and parameter.kind not in VARIABLE
    }


def refused(call: Callable[..., Any], *args: Any, **options: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as raised:
        call(*args, **options)
    assert raised.value.next_step
    assert not re.search(r"\b_[A-Z]", str(raised.value)), "names a class that users do not know"
    return raised.value


def shown(call: Call) -> str:
    return call.of if call.method == "__init__" else call.method


def test_every_public_class_is_looked_at_or_says_why_not() -> None:
    checked = {cls.__name__ for cls in checked_classes()}
    assert checked - {call.of for call in CALLS} == {"GlobalKTable"}  # it has no methods
    public = {name for name in statelib.__all__ if isinstance(getattr(statelib, name), type)}
    assert public >= UNCHECKED.keys()


def test_every_annotation_is_of_a_known_kind() -> None:
    known = {*_KINDS, *statelib.__all__, "None", "Any", "object"}
    known |= {"timedelta", "datetime", "Path", "pa.DataType", "tuple", "Literal"}
    for call in CALLS:
        for parameter in call.form.parameters.values():
            assert isinstance(parameter.annotation, str), (call, parameter)
            assert {kind.name for kind in kinds_of(parameter.annotation)} <= known, (call, parameter)
    assert all(Kind("Clock").fits(clock) for clock in get_args(Clock))
    assert not Kind("Clock").fits("frist")
    assert all(Kind("Semantics").fits(semantics) for semantics in get_args(Semantics))


@pytest.mark.parametrize("call", CALLS, ids=repr)
def test_an_argument_of_the_wrong_type_is_refused(call: Call, tmp_path: Path) -> None:
    given = arguments(call, str(tmp_path))
    for name, parameter in call.form.parameters.items():
        if {"Any", "object"} & {kind.name for kind in kinds_of(parameter.annotation)}:
            continue
        if parameter.kind in VARIABLE:
            continue
        error = refused(call.on(str(tmp_path)), **(given | {name: Wrong()}))
        assert re.search(rf"{shown(call)}\(\) takes .* as {name}, not a Wrong", error.what), error
        assert error.place["file"] == __file__


@pytest.mark.parametrize("call", CALLS, ids=repr)
def test_too_few_too_many_or_misspelt_arguments_are_refused(call: Call, tmp_path: Path) -> None:
    given = arguments(call, str(tmp_path))
    method = call.on(str(tmp_path))
    variable = {parameter.kind for parameter in call.form.parameters.values()} & {*VARIABLE}
    if inspect.Parameter.VAR_KEYWORD not in variable:
        error = refused(method, **given, mispelt=1)
        assert "mispelt" in error.what
        assert f"{shown(call)}(" in (error.next_step or "")
    if inspect.Parameter.VAR_POSITIONAL not in variable:
        error = refused(method, *given.values(), *[None] * 20)
        assert f"{shown(call)}() " in error.what
    for name in given:
        error = refused(method, **{other: value for other, value in given.items() if other != name})
        assert f"{shown(call)}() " in error.what
        assert name in error.what or len(given) > 1


@pytest.mark.parametrize("call", [c for c in CALLS if c.method != "__init__" and not c.is_static], ids=repr)
def test_a_method_that_is_called_on_the_class_says_so(call: Call) -> None:
    error = refused(getattr(getattr(statelib, call.of), call.method), 1)
    assert f"{call.of}.{call.method}() is called on the class" in error.what.replace("BufferConfig", call.of) or (
        "() is called on the class" in error.what
    )
    assert f".{call.method}(...)" in (error.next_step or "")


@pytest.mark.parametrize("call", [c for c in CALLS if c.is_static and c.of != "Stores"], ids=repr)
def test_what_makes_a_new_object_is_not_called_on_one(call: Call, tmp_path: Path) -> None:
    error = refused(getattr(an(call.of, str(tmp_path)), call.method))
    assert "makes a new one" in error.what


@pytest.mark.parametrize("call", CALLS, ids=repr)
def test_what_configures_may_stand_anywhere(call: Call, tmp_path: Path) -> None:
    configuring = {
        name: OBJECTS[kind.name]
        for name, parameter in call.form.parameters.items()
        for kind in kinds_of(parameter.annotation)
        if NAME_OF.get(kind.name) == name
    }
    if not configuring or next(iter(call.form.parameters)) in {"suppressed", "driver"}:
        return
    given = arguments(call, str(tmp_path))
    first = [value for name, value in given.items() if name not in configuring]
    nothing: dict[str, None] = dict.fromkeys(configuring)
    if len(configuring) > 1:
        for given_last in ([None, *configuring.values()][:-1], [*[*configuring.values()][1:], None]):
            _taken(call.on(str(tmp_path)), *first, *given_last)
    _taken(call.on(str(tmp_path)), *first, **(nothing | configuring))
    _taken(call.on(str(tmp_path)), *first[:1], *reversed(configuring.values()), *first[1:])


def _taken(method: Callable[..., Any], *args: Any, **options: Any) -> None:
    try:
        method(*args, **options)
    except ConfigurationError as error:
        others = ("two StreamsBuilders", "merger", "takes no initializer")
        assert any(other in error.what for other in others), error  # noqa: PT017 - in form it is right


def test_kafkas_orders_give_the_topology_that_ours_gives() -> None:
    from statelib import Consumed, Grouped, Joined, Materialized, Named  # noqa: PLC0415

    def ours(s: StreamsBuilder) -> None:
        a = s.table("a", Materialized.as_("a-store"), Consumed.as_("a-source"))
        b = s.stream("b").filter("x", Named.as_("f")).to_table(materialized=Materialized.as_("b-store"))
        c = a.filter("x", materialized=Materialized.as_("c-store")).map_values("y", materialized=Materialized.as_("d"))
        j = c.join(b, {"l": "left", "r": "right"}, Named.as_("j"), Materialized.as_("j-store"))
        grouped = j.group_by("value.l", grouped=Grouped.as_("g"))
        grouped.count(Materialized.as_("n"), Named.as_("count")).to_stream().to("out")
        s.stream("e").join(a, {"l": "left"}, Joined.as_("sj")).to("out2")

    def kafkas(s: StreamsBuilder) -> None:
        a = s.table("a", Consumed.as_("a-source"), Materialized.as_("a-store"))
        b = s.stream("b").filter("x", Named.as_("f")).to_table(Materialized.as_("b-store"))  # type: ignore[arg-type]
        c = a.filter("x", Materialized.as_("c-store")).map_values("y", Materialized.as_("d"))  # type: ignore[arg-type]
        j = c.join(b, {"l": "left", "r": "right"}, Named.as_("j"), Materialized.as_("j-store"))
        grouped = j.group_by("value.l", Grouped.as_("g"))  # type: ignore[arg-type]
        grouped.count(Named.as_("count"), Materialized.as_("n")).to_stream().to("out")  # type: ignore[arg-type]
        s.stream("e").join(a, {"l": "left"}, Joined.as_("sj")).to("out2")

    built = []
    for describe in (ours, kafkas):
        streams = StreamsBuilder("job")
        describe(streams)
        built.append(streams.build())
    assert built[0].describe() == built[1].describe()
    assert built[0].fingerprint == built[1].fingerprint


HOUR = timedelta(hours=1)
BAD_VALUES: dict[str, Callable[[], object]] = {
    "class method": lambda: TimeWindows.of_size_with_no_grace(timedelta(0)),
    "static method": lambda: Stores.persistent_versioned_key_value_store("s", -HOUR),
    "method": lambda: TimeWindows.of_size_with_no_grace(HOUR).advance_by(2 * HOUR),
    "method of a bound": lambda: BufferConfig.max_records(1).with_max_bytes(-1),
    "constructor": lambda: LakeTopic("two words", "orders.csv"),
    "constructor, later": lambda: LakeTopic("orders", "orders.csv", partitions=0),
    "job": lambda: Job("orders", StreamsBuilder("orders").build()),
    "duration": lambda: Suppressed.until_time_limit(timedelta(microseconds=1), BufferConfig.unbounded()),
}


@pytest.mark.parametrize("bad", BAD_VALUES)
def test_a_value_of_the_right_type_that_is_refused_tells_the_line_that_gave_it(bad: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        BAD_VALUES[bad]()
    line = BAD_VALUES[bad].__code__.co_firstlineno
    assert (raised.value.place["file"], raised.value.place["line"]) == (__file__, line)
    assert raised.value.next_step
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(("caller", "is_told"), [("hindstream/demo/job.py", False), ("statelib/job/job.py", True)])
def test_the_line_that_is_told_is_never_hindstreams_own(caller: str, *, is_told: bool) -> None:
    """Where the engine has called, it is whose call that is for."""
    call = compile('LakeTopic("two words", "orders.csv")', str(ROOT / caller), "eval")
    with pytest.raises(ConfigurationError, match="two words") as raised:
        eval(call, {"LakeTopic": LakeTopic})
    assert raised.value.place.get("file") == (__file__ if is_told else None)
