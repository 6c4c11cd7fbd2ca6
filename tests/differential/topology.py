"""Builds a program's topology with Hindstream's DSL, as ``TopologyOfProgram.java`` does with Kafka's."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimeWindows,
    UnlimitedWindows,
    count,
    per_record,
)
from tests.differential import functions
from tests.differential.low_level import is_low_level, low_level_topics, low_level_topology
from tests.differential.own_stores import builder_of
from tests.differential.program import Program
from tests.differential.telling import (
    Filling,
    Suffixing,
    Telling,
    TellingOfValues,
    key_value_builder,
    lists_builder,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib import (
        CogroupedKStream,
        GlobalKTable,
        KGroupedStream,
        KGroupedTable,
        KStream,
        KTable,
        Topology,
        WindowedKTable,
    )
    from tests.differential.program import Step


def topology_of(program: Program) -> Topology:
    """The topology; that of a program which runs in several ways is made once."""
    functions.use_keys(program.keys)
    return _topology(program.as_json())


@lru_cache(maxsize=4)
def _topology(line: str) -> Topology:
    program = Program.from_json(line)
    if is_low_level(program):
        return low_level_topology(program)
    return _Building(functions.KEY_TYPES[program.keys]).topology(program)


def topics_of(program: Program) -> list[str]:
    """The topics that are read and that others write, in the order of declaration."""
    if is_low_level(program):
        return low_level_topics(program)
    steps = program.steps
    written = {topic for step in steps if step["op"] in {"to", "to_one_of"} for topic in _topics(step)}
    read = [topic for s in steps if s["op"] in {"stream", "table", "global_table"} for topic in _topics(s)]
    read += [global_topic(step["global"]) for step in steps if "global" in step]
    return [topic for topic in dict.fromkeys(read) if topic not in written]


def types_of(program: Program) -> dict[str, tuple[pa.DataType, pa.DataType]]:
    """The types of keys and values of `topics_of`."""
    key, value = functions.KEY_TYPES[program.keys], pa.int64() if program.numbers else pa.string()
    filled = {step["topic"] for step in program.steps if step["op"] in {"global_table", "add_global"}}
    filled |= {global_topic(step["global"]) for step in program.steps if "global" in step}
    return {topic: (key, pa.string() if topic in filled else value) for topic in topics_of(program)}


def global_topic(store: str) -> str:
    """The topic of a global store."""
    return f"topic-{store}"


def _topics(step: Step) -> list[str]:
    return [step["topic"], *step.get("more", ())]


class _Building:
    def __init__(self, key_type: pa.DataType) -> None:
        self._key_type = key_type
        self._builder = StreamsBuilder("app")
        self._made: list[Any] = []
        self._stores: set[str] = set()

    def topology(self, program: Program) -> Topology:
        for step in program.steps:
            self._made.append(getattr(self, f"_{step['op']}")(step))
        return self._builder.build({"topology.optimization": program.optimization})

    # --- what is there of streams and of tables ------------------------------------------------------------------

    def _stream(self, step: Step) -> KStream:
        if "pattern" in step:
            return self._builder.stream(re.compile(step["pattern"]), topics=_topics(step))
        return self._builder.stream(_topics(step), *_consumed(step))

    def _table(self, step: Step) -> KTable:
        return self._builder.table(step["topic"], *_consumed(step), *_store(step))

    def _global_table(self, step: Step) -> GlobalKTable:
        return self._builder.global_table(step["topic"], *_store(step))

    def _map_values(self, step: Step) -> Any:
        return self._of(step).map_values(_suffixed(step), **_kept(step))

    def _filter(self, step: Step) -> Any:
        if step.get("keyed"):
            return self._of(step).filter(per_record(lambda key: key is not None, pa.bool_(), "key"))
        return self._of(step).filter(_passes(step), **_kept(step))

    def _filter_not(self, step: Step) -> Any:
        return self._of(step).filter_not(_passes(step), **_kept(step))

    # --- tables --------------------------------------------------------------------------------------------------

    def _to_stream(self, step: Step) -> KStream:
        return self._of(step).to_stream(*([self._key_or_none(step)] if "shift" in step else []))

    def _transform_values(self, step: Step) -> KTable:
        if "uses" in step:
            uses = self._with_store(step["uses"])
            return self._of(step).transform_values_with(
                lambda: Suffixing(step), store_names=[uses], value_type=pa.string(), **_kept(step)
            )
        suffix = step["suffix"]
        transformed = per_record(lambda value: functions.cut(functions.text(value) + suffix), pa.string(), "value")
        return self._of(step).transform_values(transformed, **_kept(step))

    def _group_by(self, step: Step) -> KTable:
        key = "key" if step.get("of_window") else self._key(step["shift"])
        grouped: KGroupedTable = self._of(step).group_by(key)
        match step["function"]:
            case "count":
                return grouped.count(*_store(step))
            case "reduce":
                return grouped.reduce(_reducer(step, functions.added), _reducer(step, functions.taken), *_store(step))
            case _:
                return grouped.aggregate_with(
                    lambda: "0",
                    _aggregator(step, functions.added),
                    _aggregator(step, functions.taken),
                    pa.string(),
                    *_store(step),
                )

    def _table_join(self, step: Step) -> KTable:
        left = self._of(step)
        join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[step["how"]]
        return join(self._made[step["with"]], _joiner(step), **_kept(step))

    def _foreign_key_join(self, step: Step) -> KTable:
        left = self._of(step)
        join = {"inner": left.join, "left": left.left_join}[step["how"]]
        foreign_key = self._foreign_key(step)
        named = {} if "partitioned" not in step else {"named": _partitioned(step["partitioned"])}
        return join(self._made[step["with"]], _joiner(step), **named, **_kept(step), foreign_key=foreign_key)

    def _suppress(self, step: Step) -> Any:
        return self._of(step).suppress(Suppressed.until_time_limit(_ms(step["limit"]), _buffer(step)))

    def _suppress_windows(self, step: Step) -> Any:
        return self._of(step).suppress(Suppressed.until_window_closes(_buffer(step)))

    # --- streams -------------------------------------------------------------------------------------------------

    def _flat_map_values(self, step: Step) -> KStream:
        most = step["most"]
        unfolded = per_record(lambda value: functions.pieces(value, most), pa.list_(pa.string()), "value")
        return self._of(step).flat_map_values(unfolded)

    def _flat_map(self, step: Step) -> KStream:
        most = step["most"]

        pieces = pa.list_(pa.struct([("key", self._key_type), ("value", pa.string())]))

        def unfolded(value: Any) -> list[dict[str, Any]]:
            return [{"key": functions.key(piece, 0), "value": piece} for piece in functions.pieces(value, most)]

        return self._of(step).flat_map(per_record(unfolded, pieces, "value"))

    def _select_key(self, step: Step) -> KStream:
        if step.get("of_window"):
            return self._of(step).select_key("key")
        return self._of(step).select_key(self._key_or_none(step))

    def _merge(self, step: Step) -> KStream:
        return self._of(step).merge(self._made[step["with"]])

    def _repartition(self, step: Step) -> KStream:
        return self._of(step).repartition()

    def _to_table(self, step: Step) -> KTable:
        return self._of(step).to_table(**_kept(step))

    def _split(self, step: Step) -> list[KStream]:
        name = f"split{len(self._made)}-"
        split = self._of(step).split(Named.as_(name))
        for number, rest in enumerate(step["rests"]):
            split.branch(_passes({"modulus": step["modulus"], "rest": rest}), Branched.as_(str(number)))
        number = str(len(step["rests"]))
        branches = split.default_branch(Branched.as_(number)) if step["default"] else split.no_default_branch()
        return [branches[f"{name}{number}"] for number in range(len(branches))]

    def _map(self, step: Step) -> KStream:
        return self._of(step).map(self._key_or_none(step), _suffixed(step))

    def _peek(self, step: Step) -> KStream:
        return self._of(step).peek(partial(_observe, f"seen{len(self._made)}"))

    def _foreach(self, step: Step) -> None:
        self._of(step).foreach(partial(_observe, f"seen{len(self._made)}"))

    def _branch(self, step: Step) -> KStream:
        return self._of(step)[step["branch"]]

    def _process(self, step: Step) -> KStream:
        return self._processed(self._of(step).process, Telling, step)

    def _process_values(self, step: Step) -> KStream:
        return self._processed(self._of(step).process_values, TellingOfValues, step)

    def _processed(self, process: Any, processor: Callable[[Step], Any], step: Step) -> Any:
        stores = [self._with_store(step["uses"])] if "uses" in step else []
        stores += [step["table"]] if "table" in step else []
        if "lists" in step:
            self._builder.add_state_store(lists_builder(step["lists"]))
            stores.append(step["lists"])
        if "own" in step:
            self._builder.add_state_store(builder_of(step["own"]))
            stores.append(step["own"]["name"])
        if "global" in step:
            store = key_value_builder(step["global"])
            self._builder.add_global_store(store, global_topic(step["global"]), None, lambda: Filling(step["global"]))
        return process(lambda: processor(step), *stores, value_type=pa.string(), named=Named.as_(step["name"]))

    def _with_store(self, name: str) -> str:
        """Adds a store for processors, if it is not there."""
        if name not in self._stores:
            self._stores.add(name)
            self._builder.add_state_store(key_value_builder(name))
        return name

    def _named(self, step: Step) -> KStream:
        return self._of(step).map_values(_suffixed(step), Named.as_(step["name"]))

    def _aggregate(self, step: Step) -> KTable:
        grouped = self._grouped(step)
        match step["function"]:
            case "count":
                return grouped.count(*_store(step))
            case "reduce":
                return grouped.reduce(_reducer(step, functions.added), *_store(step))
            case _:
                return grouped.aggregate_with(
                    lambda: "0", _aggregator(step, functions.added), pa.string(), *_store(step)
                )

    def _grouped(self, step: Step) -> KGroupedStream:
        stream: KStream = self._of(step)
        return stream.group_by(self._key(step["by"])) if "by" in step else stream.group_by_key()

    def _windowed(self, step: Step) -> WindowedKTable:
        windows = _windows(step["windows"])
        grouped: Any = self._grouped(step).windowed_by(windows)
        if step.get("final"):
            grouped.emit_strategy(EmitStrategy.on_window_close())
        match step["function"]:
            case "count":
                return grouped.count(*_kept_for(step))
            case "reduce":
                return grouped.reduce(_reducer(step, functions.added), *_kept_for(step))
        merger: list[Any] = [_merger(step)] if isinstance(windows, SessionWindows) else []
        return grouped.aggregate_with(
            lambda: "0", _aggregator(step, functions.added), *merger, pa.string(), *_kept_for(step)
        )

    def _cogroup(self, step: Step) -> KTable:
        return self._cogrouped(self._cogroup_of(step), step)

    def _cogroup_windowed(self, step: Step) -> WindowedKTable:
        windows = _windows(step["windows"])
        merger = [_merger(step)] if isinstance(windows, SessionWindows) else []
        return self._cogrouped(self._cogroup_of(step).windowed_by(windows), step, *merger)

    def _cogroup_of(self, step: Step) -> CogroupedKStream:
        counts = step["function"] == "counts"
        cogrouped = (
            self._of(step).group_by_key().cogroup({"first": count()} if counts else _aggregator(step, functions.added))
        )
        if "with" in step:
            cogrouped.cogroup(
                self._made[step["with"]].group_by_key(),
                {"second": count()} if counts else _aggregator(step, functions.taken),
            )
        return cogrouped

    @staticmethod
    def _cogrouped(cogrouped: Any, step: Step, *merger: Any) -> Any:
        if step["function"] == "counts":
            return cogrouped.aggregate(*_store(step))
        return cogrouped.aggregate_with(lambda: "0", *merger, pa.string(), *_store(step))

    def _stream_join(self, step: Step) -> KStream:
        stream: KStream = self._of(step)
        join = {"inner": stream.join, "left": stream.left_join, "outer": stream.outer_join}[step["how"]]
        before, after = step["before"], step["after"]
        windows = JoinWindows.of_time_difference_and_grace(_ms(max(before, after)), _ms(step["grace"]))
        windows = windows.before(_ms(before)).after(_ms(after))
        if step.get("at_once"):
            windows = windows.emit_unmatched_at_once()
        joined = StreamJoined()
        if "stores" in step:
            kept = _ms(windows.retention_ms), _ms(windows.size_ms), True
            this, other = (Stores.persistent_window_store(name, *kept) for name in step["stores"])
            joined = joined.with_this_store_supplier(this).with_other_store_supplier(other)
        return join(self._made[step["with"]], _joiner(step), windows, joined)

    def _stream_table_join(self, step: Step) -> KStream:
        stream: KStream = self._of(step)
        join = {"inner": stream.join, "left": stream.left_join}[step["how"]]
        grace = [Joined().with_grace_period(_ms(step["grace"]))] if "grace" in step else []
        return join(self._made[step["with"]], _joiner(step), *grace)

    def _global_join(self, step: Step) -> KStream:
        stream: KStream = self._of(step)
        join = {"inner": stream.join, "left": stream.left_join}[step["how"]]
        key: Any = "key"
        if not step.get("of_key"):
            key = self._key_or_none(step)
        return join(self._made[step["with"]], key, _joiner(step))

    # --- keys made of values -------------------------------------------------------------------------------------

    def _key(self, shift: int) -> Any:
        return per_record(lambda value: functions.key(value, shift), self._key_type, "value")

    def _key_or_none(self, step: Step) -> Any:
        shift, none = step["shift"], step.get("none")
        return per_record(lambda value: functions.key_or_none(value, shift, none), self._key_type, "value")

    def _foreign_key(self, step: Step) -> Any:
        shift, window = step["shift"], step.get("window")
        if window is None:
            return self._key(shift)

        def windowed(value: Any) -> dict[str, Any]:
            start = functions.start(value, window["advance"])
            return {"key": functions.key(value, shift), "window_start": start, "window_end": start + window["size"]}

        bounds = [("window_start", pa.int64()), ("window_end", pa.int64())]
        return per_record(windowed, pa.struct([("key", self._key_type), *bounds]), "value")

    # --- ends ----------------------------------------------------------------------------------------------------

    def _to(self, step: Step) -> None:
        self._of(step).to(step["topic"])

    def _to_one_of(self, step: Step) -> None:
        topics = _topics(step)
        extractor = per_record(lambda value: functions.topic(value, topics), pa.string(), "value")
        self._of(step).to(extractor, topics=topics)

    def _of(self, step: Step) -> Any:
        return self._made[step["of"]]


def _ms(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def _consumed(step: Step) -> list[Consumed]:
    if "extractor" not in step:
        return []
    extract = partial(functions.extracted, step["extractor"])
    return [Consumed(timestamp=per_record(extract, pa.int64(), "value", "timestamp", "partition_time"))]


def _store(step: Step) -> list[Materialized]:
    if step.get("store") is None:
        return []
    if step.get("retention") is None:
        return [Materialized.as_(step["store"])]
    return [Materialized.as_(Stores.persistent_versioned_key_value_store(step["store"], _ms(step["retention"])))]


def _kept_for(step: Step) -> list[Materialized]:
    return [store.with_retention(_ms(step["kept"])) if "kept" in step else store for store in _store(step)]


def _kept(step: Step) -> dict[str, Materialized]:
    return {"materialized": _store(step)[0]} if _store(step) else {}


def _buffer(step: Step) -> Any:
    """How much a suppression holds, and what it does when it is full."""
    buffer: Any = BufferConfig.unbounded()
    if "most" in step:
        buffer = BufferConfig.max_records(step["most"])
    if "bytes" in step:
        buffer = buffer.with_max_bytes(step["bytes"])
    match step.get("full"):
        case "no bound":
            return buffer.with_no_bound()
        case "strict":
            return buffer.shut_down_when_full()
        case "early":
            return buffer.emit_early_when_full()
        case _:
            return buffer if "most" not in step else buffer.emit_early_when_full()


OBSERVED: dict[str, list[list[Any]]] = {}
"""What ``peek`` and ``foreach`` have been shown, by step, since it was last cleared."""


def _observe(name: str, key: Any, value: Any) -> None:
    OBSERVED.setdefault(name, []).append([key, value])


def _partitioned(both: bool) -> TableJoined:
    by_key = per_record(functions.partition, pa.int32(), "key", "num_partitions")
    joined = TableJoined().with_other_partitioner(by_key)
    return joined.with_partitioner(by_key) if both else joined


def _suffixed(step: Step) -> Any:
    with_key = step.get("with_key")

    def suffixed(value: Any, *key: Any) -> str | None:
        if "fails" in step:
            functions.fail_for_some(value)
        return functions.suffixed(value, (functions.key_text(*key) if key else "") + step["suffix"])

    key = [] if with_key is None else ["key", "window_start", "window_end"] if with_key else ["key"]
    return per_record(suffixed, pa.string(), "value", *key)


def _windows(told: dict[str, Any]) -> TimeWindows | SessionWindows | SlidingWindows | UnlimitedWindows:
    if told["kind"] == "unlimited":
        return UnlimitedWindows.of().start_on(datetime.fromtimestamp(told["start"] / 1000, UTC))
    grace = _ms(told["grace"])
    match told["kind"]:
        case "time":
            return TimeWindows.of_size_and_grace(_ms(told["size"]), grace).advance_by(_ms(told["advance"]))
        case "sessions":
            return SessionWindows.of_inactivity_gap_and_grace(_ms(told["gap"]), grace)
        case _:
            return SlidingWindows.of_time_difference_and_grace(_ms(told["difference"]), grace)


def _passes(step: Step) -> Any:
    modulus, rest = step["modulus"], step["rest"]
    if step.get("nullable"):  # as a comparison of columns is, and never a Java predicate
        return per_record(
            lambda value: None if value is None else functions.passes(value, modulus, rest), pa.bool_(), "value"
        )
    return per_record(lambda value: functions.passes(value, modulus, rest), pa.bool_(), "value")


def _joiner(step: Step) -> Any:
    return per_record(
        lambda left, right: functions.checked(step, functions.joined(left, right)), pa.string(), "left", "right"
    )


def _reducer(step: Step, function: Callable[[Any, Any], str]) -> Any:
    return lambda aggregate, value: functions.checked(step, function(aggregate, value))


def _aggregator(step: Step, function: Callable[[Any, Any], str]) -> Any:
    """Of key, value and aggregate."""
    return lambda _key, value, aggregate: functions.checked(step, function(aggregate, value))


def _merger(step: Step) -> Any:
    return lambda _key, one, other: functions.checked(step, functions.merged(one, other))
