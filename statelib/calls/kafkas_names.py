"""What Kafka Streams' DSL has and this one has not, or calls otherwise: an error that names the way round."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_of_call

_LEADS_TO = {
    "KStream": {"KTable": "to_table()", "KGroupedStream": "group_by_key()", "BranchedKStream": "split()"},
    "KTable": {"KStream": "to_stream()", "KGroupedTable": "group_by(...)"},
    "WindowedKTable": {"KStream": "to_stream()", "KGroupedTable": "group_by(...)"},
    "KGroupedStream": {
        "TimeWindowedKStream": "windowed_by(...)", "KTable": "count()", "CogroupedKStream": "cogroup(...)"
    },
    "CogroupedKStream": {"TimeWindowedCogroupedKStream": "windowed_by(...)", "KTable": "aggregate()"},
    "TimeWindowedCogroupedKStream": {"WindowedKTable": "aggregate()"},
    "SessionWindowedCogroupedKStream": {"WindowedKTable": "aggregate()"},
    "KGroupedTable": {"KTable": "count()"},
    "TimeWindowedKStream": {"WindowedKTable": "count()"},
    "SessionWindowedKStream": {"WindowedKTable": "count()"},
    "BranchedKStream": {"KStream": "default_branch()[name]"},
    "StreamsBuilder": {"KStream": "stream(topic)", "KTable": "table(topic)"},
}  # fmt: skip
"""By class: which others its methods give, and how one is called. Aggregations: `count` stands for any."""

_NO_SERDES = (
    "leave it out: a topic's archive holds Arrow columns; KafkaTopic says in which serdes a sink is published, such as "
    "JsonSerde"
)
_PARTITIONER = (
    "leave it out: records are partitioned by key as Kafka's default partitioner does; select_key() another key"
)
_COMPARE = "use ==, hash() or str()"
_NO_CONFIGS = (
    "make the processor with what it needs: functools.partial(MyProcessor, limit=10); it does not see the settings "
    "of a run"
)
_PYTHON_DATA = "leave it out: records hold Python data, and each store has serdes of its own"

WAYS: dict[str, str] = {
    "add_read_only_state_store": "use table(), and join with it, or add it to a Topology",
    "advance_wall_clock_time": "pipe in a record with a later timestamp: in a replay nothing but records "
    "moves the wall clock, so calls by it come with the next record",
    "branch": "use split().branch(...), and default_branch() for what is left",
    "equals": _COMPARE,
    "flat_transform": "use process(), whose processor may forward several records, or flat_map()",
    "flat_transform_values": "use process_values() or flat_map_values()",
    "grace_period": "it is the attribute grace_period_ms",
    "hash_code": _COMPARE,
    "inactivity_gap": "it is the attribute gap_ms",
    "key_serde": _NO_SERDES,
    "lru_map": "use in_memory_key_value_store(): what an LRU map forgets depends on the order of its reads, which a "
    "restart forgets",
    "print_to": "use print()",
    "query_state": "use hindstream.open_state, or hindstream inspect",
    "size": "it is the attribute size_ms",
    "stream_partitioner": _PARTITIONER,
    "through": "use repartition(), or to() and stream() of the topic",
    "to_string": _COMPARE,
    "transform": "use process()",
    "type": "it is the attribute final: whether final results alone are forwarded",
    "value_serde": _NO_SERDES,
    "windows_for": "leave it out: aggregations find the windows themselves; per_record(function, arrow_type) can "
    "compute those of a record",
    "with_": _NO_SERDES,
    "with_key_serde": _NO_SERDES,
    "with_offset_reset_policy": "leave it out: a replay has no committed offsets of a group; it reads a topic from its "
    "beginning, and goes on where the last slice ended",
    "with_other_partitioner": _PARTITIONER,
    "with_partitioner": _PARTITIONER,
    "with_stream_partitioner": _PARTITIONER,
    "with_value_serde": _NO_SERDES,
    "write_as_text": "use to(), and read the topic's archive",
}  # fmt: skip
"""By name, what does the same here."""

_FINAL_RESULTS = (
    "call aggregate().suppress(Suppressed.until_window_closes(...)): a cogroup has no strategy, as in Kafka"
)
_WAYS_OF = {
    ("TimeWindowedCogroupedKStream", "emit_strategy"): _FINAL_RESULTS,
    ("SessionWindowedCogroupedKStream", "emit_strategy"): _FINAL_RESULTS,
    ("KStream", "suppress"): "aggregate by windows first: group_by_key().windowed_by(...).count().suppress(...); "
    "of a stream's latest values: to_table().suppress(...)",
    ("StrictBufferConfig", "unbounded"): "call with_no_bound()",
    ("EmitStrategy", "type"): "it is the attribute final",
    ("KTable", "through"): "use to_stream().repartition().to_table()",
    ("ProcessorContext", "app_configs"): _NO_CONFIGS,
    ("ProcessorContext", "app_configs_with_prefix"): _NO_CONFIGS,
    ("ProcessorContext", "headers"): "it is the attribute headers of the record",
    ("ProcessorContext", "key_serde"): _PYTHON_DATA,
    ("ProcessorContext", "metrics"): "forward what you count, or put it into a store: sensors measure rates in "
    "wall-clock time, which a replay has not; a run's report has the metrics of each node",
    ("ProcessorContext", "offset"): "it is the attribute offset of record_metadata()",
    ("ProcessorContext", "partition"): "it is the attribute partition of record_metadata()",
    ("ProcessorContext", "register"): "get_state_store(name): stores of Stores are opened and restored by the task",
    ("ProcessorContext", "state_dir"): "keep state in a store: a file beside it is not part of a commit, and the next "
    "slice would not find it",
    ("ProcessorContext", "timestamp"): "it is the attribute timestamp of the record",
    ("ProcessorContext", "topic"): "it is the attribute topic of record_metadata()",
    ("ProcessorContext", "value_serde"): _PYTHON_DATA,
    ("StoreBuilder", "log_config"): "leave it out: a replay writes no changelog",
    ("StoreBuilder", "logging_enabled"): "leave it out: a replay writes no changelog",
    ("StoreBuilder", "with_caching_enabled"): "leave it out: there is no record cache, as which updates it forwards "
    "would depend on when it is flushed",
}
"""By class and name, where another class has something else of the name."""


class NotInThisDsl(ConfigurationError, AttributeError):
    """A method that there is not."""


_classes: dict[str, type] = {}


class _Named(type):
    """Says of a class what to use in place of a class method that there is not."""

    def __getattr__(cls, name: str) -> Any:
        is_field = name in vars(cls).get("__annotations__", ()) and not is_dataclass(cls)
        if name.startswith("_") or is_field:  # for its default a dataclass asks that is being made
            raise AttributeError(name)
        raise _no_method(cls, name)


if TYPE_CHECKING:  # else a type checker would take any name

    class KafkasNames:
        """Base of the DSL's classes: who asks for a method that there is not is told what to use."""

        __slots__ = ()
else:

    class KafkasNames(metaclass=_Named):
        """Base of the DSL's classes: who asks for a method that there is not is told what to use."""

        __slots__ = ()
        _shown_as: ClassVar[str | None] = None
        """Its name in messages, where users know it by another one."""

        def __init_subclass__(cls) -> None:
            super().__init_subclass__()
            _classes[cls.__name__] = cls

        def __getattr__(self, name: str) -> Any:
            """Raises; called for names that the class does not have."""
            if name.startswith("_"):
                raise AttributeError(name)
            raise _no_method(type(self), name)


def _no_method(cls: type, name: str) -> NotInThisDsl:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    snake = {"as": "as_", "with": "with_"}.get(snake, snake)
    methods = [method for method in dir(cls) if not method.startswith("_")]
    shown = cls._shown_as or cls.__name__  # type: ignore[attr-defined]
    of = [shown, *(base.__name__ for base in cls.__mro__)]
    ways = [_WAYS_OF[base, snake] for base in of if (base, snake) in _WAYS_OF]
    kinds = [base.__name__ for base in cls.__mro__ if base.__name__ in _LEADS_TO]
    path = _path(kinds[0], snake) if kinds else None
    if snake in methods:
        step = f"call it {snake}()" if callable(getattr(cls, snake, None)) else f"it is the attribute {snake}"
    elif ways:
        step = ways[0]
    elif path is not None:
        step = f"call {'.'.join(path)}.{snake}()"
    elif snake in WAYS:
        step = WAYS[snake]
    elif snake in dir(_classes.get("StreamsBuilder", object)):
        step = f"call it on the StreamsBuilder: builder.{snake}()"
    elif shown == "GlobalKTable" and any(snake in dir(_classes.get(name, object)) for name in _LEADS_TO):
        step = f"a global table is only looked into, by joins of streams; for {snake}() use StreamsBuilder.table()"
    else:
        step = did_you_mean(snake, methods, "it has")
    return NotInThisDsl(f"{shown} has no {name}()", next_step=step, **place_of_call())


def _path(start: str, method: str) -> list[str] | None:
    """The calls that lead from one class to the nearest that has a method; None: there is none."""
    waiting: deque[tuple[str, list[str]]] = deque([(start, [])])
    seen = {start}
    while waiting:
        name, calls = waiting.popleft()
        if calls and name in _classes and method in dir(_classes[name]):
            return calls
        for other, call in _LEADS_TO.get(name, {}).items():
            if other not in seen:
                seen.add(other)
                waiting.append((other, [*calls, call]))
    return None
