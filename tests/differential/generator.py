"""Makes programs of a seed: mostly such in which records come together again on several ways.

More than half of them begin with windowed aggregations, and most of their steps are behind these, under windowed keys.
One in six has many custom processors, most of which share a store. One in twelve is of the Processor API alone.
In two of five keys are of any type, in one of ten the topics' values are numbers. What of the DSL they do not call:
`tests.differential.test_coverage`.

What is left out, since it differs on purpose (``docs/semantics.md``) or cannot be said on both sides:

- what several repartition topics bring to one place: in a live application their order is chance;
- records of several topics with equal order times, where a repartition topic meets other topics: their order is that
  of the topics' declaration there, the test driver's is that of arrival;
- foreign-key joins of a table that changes more than once for one record: Kafka Streams drops answers to a row that has
  changed meanwhile;
- deduplication, which Kafka Streams does not have; records of global tables behind the others, whose order is chance;
- processors that use stores of tables, where tables are suppressed;
- processors that are called by stream time, where there are several of them that share no store, or several
  sub-topologies, each of which has its own stream time here;
- final results of windows without an end: refused here, there are none;
- streams and tables with windows of different kinds or sizes that come together: refused here;
- foreign-key joins of rows that a window store forgets: Kafka Streams drops the answers to these;
- foreign-key joins of tables that were suppressed twice: the second suppression tells of an old value that the table
  never had, and Kafka Streams takes the answer for one to a row that has changed meanwhile;
- left joins by a windowed foreign key: Kafka Streams cannot serialize one that is null;
- versioned tables whose streams are cogrouped: Kafka Streams takes the result for versioned;
- joins of a windowed table that was cogrouped: Kafka Streams cannot look into it (``KTablePassThrough``), here one can;
- functions that fail for what an update replaces, above a suppressed table or between a versioned one and a filter that
  has a store: Kafka Streams always asks them for that;
- caches, and the time at which results without a match are looked for (a setting: at once).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential import functions, low_level_steps, stream_steps, table_steps, windowed_steps
from tests.differential.making import Making, longer
from tests.differential.own_stores import own_store
from tests.differential.program import Program, Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.making import Made

_STEPS: dict[Callable[[Making], bool], int] = {
    table_steps.map_values: 4, table_steps.filter_: 3, table_steps.table_join: 5, stream_steps.stream_table_join: 3,
    stream_steps.merge: 4, stream_steps.split: 2, stream_steps.flat_map_values: 2, stream_steps.flat_map: 1,
    stream_steps.select_key: 1, stream_steps.to_table: 2, stream_steps.aggregate: 2, table_steps.group_by: 2,
    table_steps.to_stream: 2, stream_steps.process: 2, stream_steps.stream_join: 1, table_steps.foreign_key_join: 1,
    table_steps.transform_values: 1, stream_steps.repartition: 1, table_steps.suppress: 2,
    stream_steps.global_join: 2, stream_steps.through: 1, stream_steps.cogroup: 2, stream_steps.map_: 2,
    stream_steps.peek: 1, stream_steps.process_values: 1,
}  # fmt: skip
"""How often each is tried."""
_BEHIND_WINDOWS = _STEPS | {
    windowed_steps.windowed: 5, windowed_steps.suppress_windows: 3, table_steps.to_stream: 6, stream_steps.to_table: 4,
    stream_steps.aggregate: 3, stream_steps.stream_join: 2, windowed_steps.cogroup_windowed: 3,
}  # fmt: skip
"""The same, where there is a windowed aggregation to begin with."""
_SCALES = (1, 1, 1, 1, 1_000, 60_000)
"""How many times as long as it is written all of a program's time is: with the larger ones, stores drop segments."""
_MORE_OF_SOME: list[dict[Callable[[Making], bool], int]] = [
    {}, {}, {}, {}, {}, {stream_steps.process: 25}, {table_steps.foreign_key_join: 25},
    {stream_steps.stream_join: 15, stream_steps.stream_table_join: 15},
]  # fmt: skip
"""What is tried more often in some programs."""


_MAY_FAIL = {
    "map", "map_values", "named", "process", "process_values", "add_processor", "table_join", "stream_table_join",
    "global_join", "foreign_key_join", "stream_join", "group_by", "aggregate", "windowed", "cogroup",
    "cogroup_windowed",
}  # fmt: skip


def program_of(seed: int, *, steps: int = 9, records: int = 18, failing: float = 0.1) -> Program:
    """The program of a seed.

    Args:
        seed: Any number.
        steps: The most, without the ends.
        records: The most.
        failing: How many programs have functions that fail.
    """
    rng = Random(f"program {seed}")
    making = Making(rng)
    if rng.random() < 0.08:
        low_level_steps.describe(making)
    else:
        _with_types(making, Random(f"types {seed}"))
        _describe(making, steps)
    _by_wall_clock(making)
    _failing(making, failing)
    _extracting(making, Random(f"extractors {seed}"))
    _by_patterns(making, Random(f"patterns {seed}"))
    _by_partitioners(making, Random(f"partitioners {seed}"))
    _with_lists(making, Random(f"lists {seed}"))
    _with_own_stores(making, Random(f"own stores {seed}"))
    scale = Random(f"scale {seed}").choice(_SCALES)
    rows = _records(Random(f"records {seed}"), making, records, scale)
    rocksdb = making.rocksdb or rng.random() < 0.1 or scale > 1  # in memory, Kafka's stores forget at other times
    made = tuple(longer(step, scale) for step in making.steps)
    return Program(made, rows, rocksdb=rocksdb, keys=making.keys, numbers=making.numbers)


def _with_types(making: Making, rng: Random) -> None:
    """Chooses the types of keys, and of the values of topics."""
    if rng.random() < 0.4:
        making.keys = rng.choice([*functions.KEYS])
    making.numbers = rng.random() < 0.1


def _describe(making: Making, most: int) -> None:
    """Adds sources, steps and ends."""
    rng = making.rng
    making.windows_first = rng.random() < 0.6
    making.versions_first = rng.random() < 0.1
    making.realms.circles = rng.random() < 0.15
    topics = ["t0", "t1", "t2"][: rng.choice([1, 2, 2, 2, 3])]
    making.topics += topics
    if len(topics) > 1 and rng.random() < 0.1:
        first, second, *topics = topics
        step = {"op": "stream", "topic": first, "more": [second]}
        making.add(step, kind="stream", realm=making.realms.source(2), is_text=not making.numbers)
    for topic in topics:
        _source(making, topic)
    for _ in range(rng.choice([1, 2, 2]) if making.windows_first else 0):
        windowed_steps.windowed(making)
        if rng.random() < 0.7:
            table_steps.to_stream(making)
    weights = (_BEHIND_WINDOWS if making.windows_first else _STEPS) | rng.choice(_MORE_OF_SOME)
    if making.versions_first:  # joins with a grace period
        weights |= {stream_steps.stream_table_join: 12}
    for _ in range(rng.randint(2, most)):
        for _attempt in range(5):
            if rng.choices([*weights], [*weights.values()])[0](making):
                break
    _end_all(making)
    _leave_out(making)


def _leave_out(making: Making) -> None:
    """Takes back what cannot be compared beside other steps: see the module's docstring."""
    has = {step["op"] for step in making.steps}
    comes_back = any(step["op"] == "stream" and step["topic"].startswith("through") for step in making.steps)
    count = making.realms.count
    for step in making.steps:
        if "suppress" in has and step.pop("table", None):
            count += 1  # what it has held together
        if "foreign_key_join" in has and "writes" in step:  # Kafka looks into the left table for its answers
            step["writes"] = False
        if not has.isdisjoint({"cogroup", "cogroup_windowed"}):
            step.pop("retention", None)  # Kafka takes what is cogrouped of a versioned table's stream for versioned
    parted = count > making.realms.count
    for number, step in enumerate(making.steps):
        if step["op"] == "stream_table_join" and step.get("grace", -1) > _history_ms(making, step["with"]):
            del step["grace"]
        if step["op"] == "to" and step["topic"].startswith("out") and (comes_back or parted):
            step["topic"] = f"out{number}"
        if count > 1:  # Kafka's driver has one stream time for all sub-topologies
            step.pop("tick", None)


def _history_ms(making: Making, number: int) -> int:
    """How far back a table that Kafka Streams takes for versioned can be asked; negative: it is not versioned."""
    step = making.steps[number]
    while step["op"] in {"filter", "filter_not"} and "store" not in step:
        step = making.steps[step["of"]]
    return int(step.get("retention", -1))


def _by_wall_clock(making: Making) -> None:
    """Lets some calls go by the wall clock; it begins with the first record, which is a task's if none is global."""
    for step in making.steps:
        if "tick" in step and not making.global_topics and making.rng.random() < 0.4:
            step["by_wall_clock"] = True
            step.pop("start", None)


def _failing(making: Making, share: float) -> None:
    """Lets functions of some steps fail for some records, in a share of the programs: these go on without them."""
    if making.rng.random() < share:
        asks = any(step["op"].startswith("suppress") or "retention" in step for step in making.steps)
        tables = {made.step for made in making.pool if made.kind == "table"}
        for number, step in enumerate(making.steps):
            of_old_values = asks and number in tables and step["op"] in {"map_values", "table_join"}
            if step["op"] in _MAY_FAIL and not of_old_values and making.rng.random() < 0.5:
                step["fails"] = True


def _extracting(making: Making, rng: Random) -> None:
    """Lets some sources extract timestamps by the partition's time, in a few programs: they run in slices alone."""
    if rng.random() < 0.05 and not making.realms.meets and not any("by_wall_clock" in s for s in making.steps):
        for step in making.steps:
            if step["op"] in {"stream", "table"} and step["topic"] in making.topics:
                step["extractor"] = rng.choice(functions.EXTRACTORS)


def _by_patterns(making: Making, rng: Random) -> None:
    """Lets some sources of several topics name these by a pattern.

    Not with an extractor: Kafka's driver has one partition, with one time, for all topics of a pattern.
    """
    for step in making.steps:
        topics = [step["topic"], *step["more"]] if "more" in step else step.get("topics", ())
        if (
            step["op"] in {"stream", "add_source"}
            and len(topics) > 1
            and "extractor" not in step
            and rng.random() < 0.5
        ):
            step["pattern"] = "|".join(topics)


def _by_partitioners(making: Making, rng: Random) -> None:
    """Gives some joins by a foreign key partitioners."""
    for step in making.steps:
        if step["op"] == "foreign_key_join" and rng.random() < 0.3:
            step["partitioned"] = rng.choice([True, False])  # by both tables' keys, or by the right one's


def _with_lists(making: Making, rng: Random) -> None:
    """Gives some processors with a store another one: of windows with timestamps that retains duplicates."""
    for number, step in enumerate(making.steps):
        if step["op"] in {"process", "process_values", "add_processor"} and "uses" in step and rng.random() < 0.25:
            step["lists"] = f"lists{number}"


def _with_own_stores(making: Making, rng: Random) -> None:
    """Gives some processors with a store another one, of any kind, which they read in one way."""
    for number, step in enumerate(making.steps):
        if step["op"] in {"process", "process_values", "add_processor"} and "uses" in step and rng.random() < 0.5:
            step["own"] = own_store(rng, f"own{number}")


def _source(making: Making, topic: str) -> None:
    realm, rng = making.realms.source(), making.rng
    if rng.random() < (0.8 if making.windows_first else 0.4) * (0.6 if making.versions_first else 1):
        making.add({"op": "stream", "topic": topic}, kind="stream", realm=realm, is_text=not making.numbers)
        return
    versioned = rng.random() < (0.7 if making.versions_first else 0.1)
    step = {"op": "table", "topic": topic, **making.store(1 if versioned else 0.5, versions=False)}
    if versioned:
        step["retention"] = rng.choice([0, 5, 20, 1000])
    making.add(step, kind="table", realm=realm, versioned=versioned, is_text=not making.numbers)


def _end_all(making: Making) -> None:
    """What nothing is made of, and some of the rest."""
    for made in [made for made in making.pool if made.kind != "global"]:
        if not made.used or making.rng.random() < 0.25:
            _end(making, made)


def _end(making: Making, made: Made) -> None:
    of = made.step
    if made.kind != "stream":
        making.add({"op": "to_stream", "of": of}, made)
        of = len(making.steps) - 1
    topic = f"out{len(making.steps)}"
    kind = (making.realms.root(made.realm), made.windows, made.is_text)
    if kind in making.written and made.is_text is not None and making.rng.random() < 0.3:
        topic = making.written[kind]
    elif making.rng.random() < 0.1:
        making.add({"op": "to_one_of", "of": of, "topic": topic, "more": [f"{topic}-b"]}, made)
        return
    making.written[kind] = topic
    making.add({"op": "to", "of": of, "topic": topic}, made)


def _records(rng: Random, making: Making, most: int, scale: int) -> tuple[Row, ...]:
    """In the order in which a task takes them up: by running maximum of each topic's timestamps, then by topic.

    First come those of global tables. Where a repartition topic meets others, no topic's maximum is ever another's.
    """
    topics, parted = making.topics, making.realms.meets
    keys = [*map(functions.written, functions.KEYS[making.keys]), None]
    made: list[tuple[int, int, Row]] = []
    now, order_time = 0, dict.fromkeys(topics, -1)
    extractors = {
        topic: step["extractor"]
        for step in making.steps
        if "extractor" in step
        for topic in (step["topic"], *step.get("more", ()))
    }
    for number in range(rng.randint(2, most)):
        now += rng.choice([0, 0, 1, 5, 20])
        timestamp = max(0, now - rng.choice([0, 0, 0, 1, 7, 30])) * scale
        if scale > 1:
            timestamp = max(0, timestamp + rng.choice([0, 0, 1, -1]))
        topic = rng.choice(topics)
        if parted and timestamp > order_time[topic]:
            timestamp += (topics.index(topic) - timestamp) % len(topics)
        key = rng.choices(keys, [6, 4, 2, 0.4])[0]
        value: Any = None if rng.random() < 0.2 else f"{rng.choice('pqr')}{number}"
        if making.numbers and value is not None:
            value = number * (-1 if value[0] == "q" else 1)
        extracted = timestamp
        if topic in extractors:
            extracted = functions.extracted(extractors[topic], value, timestamp, order_time[topic])
        order_time[topic] = max(order_time[topic], extracted)
        made.append((order_time[topic], topics.index(topic), (topic, key, value, timestamp)))
    first: list[Row] = [
        (topic, rng.choice(keys), rng.choice([None, *(f"g{number}" for number in range(9))]), rng.randrange(99))
        for topic in making.global_topics
        for _ in range(rng.randint(0, 8))
    ]
    return (*first, *(row for _, _, row in sorted(made, key=lambda each: each[:2])))
