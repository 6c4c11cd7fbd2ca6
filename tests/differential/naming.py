"""Programs of which only the names matter: what Kafka Streams and this project call nodes, stores and topics.

A program is a list of steps, plain data, so that Java reads it, too (``Describe.java``). Each step makes one thing, but
for a split, which makes as many as it has branches behind itself; those that follow name it by its number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    FixedKeyProcessor,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Printed,
    Processor,
    Produced,
    Repartitioned,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from statelib import count as count_
from statelib.dsl.optimization import optimizations_of
from statelib.topology.describe import text_of
from tests.differential.kafka import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib import WindowBytesStoreSupplier

Step = dict[str, Any]
_MS = timedelta(milliseconds=10)
_UNBOUNDED = BufferConfig.unbounded()
_WINDOWS = {
    "tumbling": TimeWindows.of_size_and_grace(_MS, _MS),
    "unlimited": UnlimitedWindows.of(),
    "sliding": SlidingWindows.of_time_difference_and_grace(_MS, _MS),
    "sessions": SessionWindows.of_inactivity_gap_and_grace(_MS, _MS),
}


class _Nothing(Processor):
    def process(self, record: Any) -> None:
        del record


class _NothingOfValues(FixedKeyProcessor):
    def process(self, record: Any) -> None:
        del record


def builder_of(steps: Sequence[Step]) -> StreamsBuilder:
    """What this project describes of a program."""
    builder = StreamsBuilder("app")
    made: list[Any] = []
    for step in steps:
        _make(builder, made, step)
    return builder


def description_of(steps: Sequence[Step], optimization: str = "none", *, fixed: str = "false") -> str:
    """The text of a program's topology, whether it can run here (without cycles of repartition topics) or not.

    Args:
        steps: The program.
        optimization: Kafka's setting.
        fixed: Kafka's internal setting, by which processors count as changing keys or values.
    """
    optimizations = optimizations_of(settings_of(optimization, fixed))
    return text_of(builder_of(steps)._builder.optimized(optimizations))


def _make(builder: StreamsBuilder, made: list[Any], step: Step) -> None:
    op = step["op"]
    if op == "split":
        result = None
        branches = _split(made[step["of"]], step)
    else:
        branches = []
        of = made[step["of"]] if "of" in step else builder
        other = made[step["with"]] if "with" in step else None
        result = _OPERATIONS[op](of, other, step)
    made.append(result)
    made.extend(branches)


def _split(stream: Any, step: Step) -> list[Any]:
    branches: list[Any] = []
    split = stream.split(_named(step))
    for number, name in enumerate(step["branches"]):
        taken = Branched.with_consumer(branches.append, name)
        if number == len(step["branches"]) - 1 and step.get("default"):
            split.default_branch(taken)
        else:
            split.branch("value", taken)
    return branches


def _named(step: Step) -> Named | None:
    return Named.as_(step["name"]) if step.get("name") else None


def _store(step: Step) -> Materialized | None:
    """A store's name "" stands for a ``Materialized`` without one."""
    name = step.get("store")
    if step.get("versioned"):
        return Materialized.as_(Stores.persistent_versioned_key_value_store(step["store"], timedelta(seconds=1)))
    return None if name is None else Materialized.as_(name) if name else Materialized()


def _consumed(step: Step) -> Consumed | None:
    return Consumed.as_(step["name"]) if step.get("name") else None


def _stream(builder: StreamsBuilder, step: Step) -> Any:
    topics = [step["topic"], *step.get("more", ())]
    if "pattern" in step:
        return builder.stream(re.compile(step["pattern"]), _consumed(step), topics=topics)
    return builder.stream(topics, _consumed(step))


def _joined(step: Step) -> Joined | None:
    joined = Joined.as_(step["name"]) if step.get("name") else Joined()
    return joined.with_grace_period(_MS) if step.get("grace") else joined


def _stream_join(how: str) -> Callable[[Any, Any, Step], Any]:
    windows = JoinWindows.of_time_difference_and_grace(_MS, _MS)

    def join(of: Any, other: Any, step: Step) -> Any:
        joined = StreamJoined(step.get("name"), step.get("store"))
        if "this" in step:
            joined = joined.with_this_store_supplier(_join_store(step["this"]))
        if "other" in step:
            joined = joined.with_other_store_supplier(_join_store(step["other"]))
        return getattr(of, how)(other, "left", windows, joined)

    return join


def _join_store(name: str) -> WindowBytesStoreSupplier:
    return Stores.persistent_window_store(name, 3 * _MS, 2 * _MS, retain_duplicates=True)


def _table_join(how: str, **options: Any) -> Callable[[Any, Any, Step], Any]:
    return lambda of, other, step: getattr(of, how)(other, "left", _named(step), _store(step), **options)


def _derived(method: str, *arguments: Any) -> Callable[[Any, Any, Step], Any]:
    def make(of: Any, _: Any, step: Step) -> Any:
        kept = {"materialized": _store(step)} if step.get("store") is not None else {}
        return getattr(of, method)(*arguments, named=_named(step), **kept)

    return make


def _suppressed(suppressed: Suppressed) -> Callable[[Any, Any, Step], Any]:
    def make(of: Any, _: Any, step: Step) -> Any:
        return of.suppress(suppressed.with_name(step["name"]) if step.get("name") else suppressed)

    return make


def _grouped(step: Step) -> Grouped | None:
    return Grouped.as_(step["name"]) if step.get("name") else None


def _cogroup(of: Any, other: Any, step: Step) -> Any:
    cogrouped = of.cogroup({"n": count_()})
    if "with" in step:
        cogrouped.cogroup(other, {"m": count_()})  # which changes the object itself
    if step.get("again"):
        _windowed(cogrouped, step).aggregate()
    return _windowed(cogrouped, step).aggregate(_store(step), _named(step))


def _windowed(of: Any, step: Step) -> Any:
    return of.windowed_by(_WINDOWS[step["windows"]]) if "windows" in step else of


def _reduce(of: Any, _: Any, step: Step) -> Any:
    functions = [min, min] if type(of).__name__ == "KGroupedTable" else [min]
    return _emitting(of, step).reduce(*functions, materialized=_store(step), named=_named(step))


def _emitting(of: Any, step: Step) -> Any:
    if not hasattr(of, "emit_strategy"):
        return of
    return of.emit_strategy(EmitStrategy.on_window_close() if step.get("final") else EmitStrategy.on_window_update())


_KEYS_VALUES = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
_OPERATIONS: dict[str, Callable[[Any, Any, Step], Any]] = {
    "stream": lambda of, _, step: _stream(of, step),
    "table": lambda of, _, step: of.table(step["topic"], _store(step), _consumed(step)),
    "global_table": lambda of, _, step: of.global_table(step["topic"], _store(step), _consumed(step)),
    "add_state_store": lambda of, _, step: of.add_state_store(
        Stores.key_value_store_builder(Stores.persistent_key_value_store(step["store"]), pa.string(), pa.string())
    ),
    "filter": _derived("filter", "value"),
    "filter_not": _derived("filter_not", "value"),
    "map_values": _derived("map_values", "value"),
    "transform_values": _derived("transform_values", "value"),
    "map": _derived("map", "key", "value"),
    "select_key": _derived("select_key", "key"),
    "flat_map": _derived("flat_map", "value"),
    "flat_map_values": _derived("flat_map_values", "value"),
    "peek": _derived("peek", len),
    "foreach": _derived("foreach", len),
    "print": lambda of, _, step: of.print(Printed(name=step.get("name"))),
    "to_stream": _derived("to_stream"),
    "to_stream_by": _derived("to_stream", "key"),
    "to_table": _derived("to_table"),
    "repartition": lambda of, _, step: of.repartition(Repartitioned(step.get("name"))),
    "process": lambda of, _, step: of.process(_Nothing, *step.get("stores", ()), named=_named(step)),
    "process_values": lambda of, _, step: of.process_values(
        _NothingOfValues, *step.get("stores", ()), named=_named(step)
    ),
    "to": lambda of, _, step: of.to(step["topic"], Produced(name=step.get("name"))),
    "merge": lambda of, other, step: of.merge(other, _named(step)),
    "table_join": _table_join("join"),
    "table_left_join": _table_join("left_join"),
    "table_outer_join": _table_join("outer_join"),
    "foreign_key_join": _table_join("join", foreign_key="value"),
    "foreign_key_left_join": _table_join("left_join", foreign_key="value"),
    "stream_table_join": lambda of, other, step: of.join(other, "left", _joined(step)),
    "stream_table_left_join": lambda of, other, step: of.left_join(other, "left", _joined(step)),
    "global_join": lambda of, other, step: of.join(other, "key", "left", _named(step)),
    "global_left_join": lambda of, other, step: of.left_join(other, "key", "left", _named(step)),
    "stream_join": _stream_join("join"),
    "stream_left_join": _stream_join("left_join"),
    "stream_outer_join": _stream_join("outer_join"),
    "group_by": lambda of, _, step: of.group_by("key", grouped=_grouped(step)),
    "group_by_key": lambda of, _, step: of.group_by_key(_grouped(step)),
    "cogroup": _cogroup,
    "windowed_by": lambda of, _, step: of.windowed_by(_WINDOWS[step["windows"]]),
    "count": lambda of, _, step: _emitting(of, step).count(_store(step), _named(step)),
    "aggregate": lambda of, _, step: _emitting(of, step).aggregate({"n": count_()}, _store(step), _named(step)),
    "reduce": _reduce,
    "suppress": _suppressed(Suppressed.until_time_limit(_MS, _UNBOUNDED)),
    "suppress_final": _suppressed(Suppressed.until_window_closes(_UNBOUNDED)),
}  # fmt: skip

_OF_STREAM = {
    "filter": "stream", "filter_not": "stream", "map_values": "stream", "map": "stream", "select_key": "stream",
    "flat_map": "stream", "flat_map_values": "stream", "peek": "stream", "foreach": None, "print": None,
    "repartition": "stream", "process": "stream", "process_values": "stream", "to_table": "table",
    "group_by": "grouped", "group_by_key": "grouped",
}  # fmt: skip
_OF_TABLE = {
    "filter": "table", "filter_not": "table", "map_values": "table", "transform_values": "table",
    "to_stream": "stream", "to_stream_by": "stream", "group_by": "grouped table", "suppress": "suppressed",
}  # fmt: skip
_OF_WINDOWED_TABLE = {
    "filter": "windowed table", "map_values": "windowed table", "to_stream": "stream",
    "to_stream_by": "stream", "suppress_final": "windowed table",
}  # fmt: skip
_JOINS = {
    ("stream", "stream"): ("stream_join", "stream_left_join", "stream_outer_join", "merge", "merge"),
    ("stream", "table"): ("stream_table_join", "stream_table_left_join"),
    ("stream", "global"): ("global_join", "global_left_join"),
    ("table", "table"): (
        "table_join", "table_left_join", "table_outer_join", "foreign_key_join", "foreign_key_left_join"
    ),
}  # fmt: skip
_STORED = {
    "to_table", "count", "aggregate", "reduce", "table_join", "table_left_join", "table_outer_join",
    "foreign_key_join", "foreign_key_left_join", "stream_join", "stream_left_join", "stream_outer_join",
}  # fmt: skip
_DERIVED_TABLES = {"filter", "filter_not", "map_values", "transform_values"}


def program_of(seed: int, *, most: int = 14) -> list[Step]:
    """The program of a seed; ``most``: the most steps but sources and sinks."""
    rng = Random(f"names {seed}")
    making = _Making(rng, several=rng.choice([2, 3, 15]))
    making.sources()
    for _ in range(making.rng.randint(2, most)):
        making.step()
    making.sinks()
    return making.steps


@dataclass
class _Making:
    rng: Random
    several: int  # topics that are read as one
    steps: list[Step] = field(default_factory=list)
    kinds: list[str | None] = field(default_factory=list)  # of what has been made
    used: set[int] = field(default_factory=set)
    final: set[int] = field(default_factory=set)  # windowed tables that cannot be suppressed

    def _add(self, step: Step, kind: str | None) -> None:
        for end in ("of", "with"):
            if end in step:
                self.used.add(step[end])
        self.steps.append(step)
        self.kinds.append(kind)

    def _name(self, chance: float = 0.3) -> Step:
        return {"name": f"n{len(self.kinds)}"} if self.rng.random() < chance else {}

    def _store(self, *, kept: bool) -> Step:
        rng = self.rng
        if rng.random() < 0.45:
            return {}
        name = f"s{len(self.kinds)}" if rng.random() < 0.7 else ""
        return {"store": name} if name or not kept else {"store": ""}

    def sources(self) -> None:
        rng = self.rng
        for number in range(rng.randint(1, 4)):
            op = rng.choice(["stream", "stream", "table", "table", "global_table"])
            topic = rng.choice(["t0", "t1", "shared"]) if op == "stream" else f"{op}{number}"
            step = {"op": op, "topic": topic, **self._name()}
            if op == "stream" and rng.random() < 0.15:
                several = [f"topic-{name}" for name in range(self.several)]
                rng.shuffle(several)
                step |= {"topic": several[0], "more": several[1:]}
            if op == "table":
                step |= self._store(kept=True)
                if rng.random() < 0.1:
                    step |= {"store": f"v{number}", "versioned": True}
            elif op == "global_table" and rng.random() < 0.5:  # with a Materialized without a name Kafka refuses it
                step |= {"store": f"s{number}"}
            kind = {"stream": "stream", "table": "table", "global_table": "global"}[op]
            self._add(step, "versioned" if step.get("versioned") else kind)
        if "stream" not in self.kinds:
            self._add({"op": "stream", "topic": "t9"}, "stream")

    def step(self) -> None:
        rng = self.rng
        number = rng.choice([n for n, kind in enumerate(self.kinds) if kind not in {None, "global"}])
        kind = self.kinds[number]
        if kind == "versioned":
            with_ = rng.choice([n for n, other in enumerate(self.kinds) if other == "stream"])
            step = {"op": "stream_table_join", "of": with_, "with": number, "grace": rng.random() < 0.6}
            self._add({**step, **self._name()}, "stream")
        elif kind in {"stream", "table"} and rng.random() < 0.4:
            self._join(number)
        elif kind == "stream" and rng.random() < 0.12:
            self._split(number)
        elif kind in {"grouped", "grouped table", "windowed"}:
            self._aggregate(number, str(kind))
        else:
            self._derive(number, str(kind))

    def _join(self, number: int) -> None:
        rng, kind = self.rng, str(self.kinds[number])
        others = [n for n, other in enumerate(self.kinds) if (kind, other) in _JOINS]
        if not others:
            return
        other = rng.choice(others)
        op = rng.choice(_JOINS[kind, str(self.kinds[other])])
        kept = self._store(kept=True) if op in _STORED else {}
        if op.startswith("stream_") and kept.get("store") == "":
            kept = {}
        made = "table" if kind == "table" else "stream"
        self._add({"op": op, "of": number, "with": other, **self._name(), **kept}, made)

    def _split(self, number: int) -> None:
        rng = self.rng
        branches = [f"-b{n}" if rng.random() < 0.3 else None for n in range(rng.randint(1, 3))]
        step = {"op": "split", "of": number, "branches": branches, "default": rng.random() < 0.5, **self._name()}
        self._add(step, None)
        self.kinds += ["stream"] * len(branches)

    def _aggregate(self, number: int, kind: str) -> None:
        rng = self.rng
        if number in self.used and any(step["op"].startswith("foreign_key") for step in self.steps):
            return  # the order of names behind such a join may differ then: see docs/semantics.md
        if kind == "grouped" and rng.random() < 0.4:
            self._add({"op": "windowed_by", "of": number, "windows": rng.choice(list(_WINDOWS))}, "windowed")
            number, kind = len(self.kinds) - 1, "windowed"
        if kind == "grouped" and rng.random() < 0.35:
            self._cogroup(number)
            return
        op = rng.choice(["count", "reduce", "aggregate"])
        made = "windowed table" if kind == "windowed" else "table"
        step = {"op": op, "of": number, **self._name(), **self._store(kept=True)}
        never_closes = kind == "windowed" and self._windows_of(number)["windows"] == "unlimited"
        if kind == "windowed" and not never_closes and rng.random() < 0.3:
            step["final"] = True
        self._add(step, made)
        if never_closes:
            self.final.add(len(self.kinds) - 1)

    def _cogroup(self, number: int) -> None:
        rng = self.rng
        step = {"op": "cogroup", "of": number, **self._name(), **self._store(kept=True)}
        if rng.random() < 0.8:
            step["with"] = rng.choice([n for n, other in enumerate(self.kinds) if other == "grouped"])
        if rng.random() < 0.5:
            step["windows"] = rng.choice(list(_WINDOWS))
        if rng.random() < 0.2:
            step["again"] = True
        self._add(step, "windowed table" if "windows" in step else "table")
        if step.get("windows") == "unlimited":
            self.final.add(len(self.kinds) - 1)

    def _windows_of(self, number: int) -> Step:
        made = -1
        for step in self.steps:
            made += 1
            if made == number:
                return step
            made += len(step.get("branches", ()))
        raise AssertionError(number)

    def _derive(self, number: int, kind: str) -> None:
        rng = self.rng
        operations = {
            "stream": _OF_STREAM, "table": _OF_TABLE, "suppressed": {"to_stream": "stream"},
            "windowed table": _OF_WINDOWED_TABLE,
        }[kind]  # fmt: skip
        op = rng.choice(list(operations))
        if op == "suppress_final" and number in self.final:
            op = "to_stream"
        step = {"op": op, "of": number, **self._name()}
        if op == "to_table" or (kind == "table" and op in _DERIVED_TABLES):
            step |= self._store(kept=False)
        if op.startswith("process") and rng.random() < 0.5:
            stores = [f"p{len(self.kinds)}-{n}" for n in range(rng.randint(1, 3))]
            for store in stores:
                self._add({"op": "add_state_store", "store": store}, None)
            step |= {"stores": stores}
        self._add(step, operations[op])
        if op in {"filter", "map_values"} and number in self.final:
            self.final.add(len(self.kinds) - 1)
        if op == "suppress_final":
            self.final.add(len(self.kinds) - 1)

    def sinks(self) -> None:
        rng = self.rng
        for number, kind in enumerate(list(self.kinds)):
            if kind == "stream" and (number not in self.used or self.rng.random() < 0.2):
                self._add(
                    {"op": "to", "of": number, "topic": rng.choice(["shared", f"out{number}"]), **self._name(0.15)},
                    None,
                )
