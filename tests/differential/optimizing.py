"""Small programs that Kafka Streams optimises: changed keys with several operators behind them, and self joins.

Their records come from one topic, so that there is one order on both sides.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError
from tests.differential.comparison import Difference, difference
from tests.differential.program import Program
from tests.differential.topology import topology_of

if TYPE_CHECKING:
    from tests.differential.kafka import Runs
    from tests.differential.program import Row, Step

_KEYS = ("a", "b", "ab", None)
_CANNOT = "Kafka Streams cannot merge these repartition topics"
_BOUNDS = [(0, 0), (0, 10), (10, 0), (10, 10), (10, -5), (-5, 10)]


_MAY_FAIL = {"map_values", "stream_join", "aggregate", "windowed"}


def program_of(seed: int, *, records: int = 25, failing: float = 0.1) -> Program:
    """The program of a seed.

    Args:
        seed: Any number.
        records: The most.
        failing: How many programs have functions that fail for some records.
    """
    rng = Random(f"optimizing {seed}")
    making = _Making(rng)
    making.describe()
    fails = Random(f"failing {seed}")
    if fails.random() < failing:
        for step in making.steps:
            if step["op"] in _MAY_FAIL and fails.random() < 0.5:
                step["fails"] = True
    setting = rng.choice(["all", "all", "merge.repartition.topics", "single.store.self.join"])
    return Program(tuple(making.steps), _records(rng, records), rocksdb=True, optimization=setting)


def difference_of(seed: int, kafka: Runs, *, by_slices: bool = False, failing: float = 0.1) -> Difference | None:
    """What differs of the program of a seed, if anything does. What Kafka Streams cannot merge is refused here."""
    program = program_of(seed, failing=failing)
    found = difference(program, kafka, ways=3, by_slices=by_slices)
    if found is not None and found.here is None and "null keyChangingChild" in found.kafka:
        try:
            topology_of(program)
        except ConfigurationError as error:
            return None if _CANNOT in str(error) else found
        except Exception as error:  # noqa: BLE001 - shown, as any other
            return replace(found, here=f"{type(error).__name__}: {error}")
    return found


class _Making:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.steps: list[Step] = []
        self.streams: list[int] = []

    def describe(self) -> None:
        """Adds a source, steps and ends."""
        rng = self.rng
        self.stream("stream", topic="t0")
        for _ in range(rng.randint(0, 2)):
            self.one_to_one()
        if rng.random() < 0.85:
            self.stream("select_key", of=self.any(), shift=rng.randrange(3), none=rng.choice([9, 0]))
            self.streams = self.streams[-1:]
        for _ in range(rng.randint(2, 6)):
            rng.choice([self.one_to_one, self.self_join, self.table, self.table, self.windowed, self.merged])()

    def any(self) -> int:
        """A stream of those that there are."""
        return self.rng.choice(self.streams)

    def stream(self, op: str, **step: Any) -> None:
        """Adds a step that makes a stream."""
        self.steps.append({"op": op, **step})
        self.streams.append(len(self.steps) - 1)

    def ended(self, op: str, **step: Any) -> None:
        """Adds a step that makes a table, or a stream of which no more is made, and its sink."""
        self.steps.append({"op": op, **step})
        if op in {"to_table", "aggregate", "windowed"}:
            self.steps.append({"op": "to_stream", "of": len(self.steps) - 1})
        self.steps.append({"op": "to", "of": len(self.steps) - 1, "topic": f"out{len(self.steps)}"})

    def one_to_one(self) -> None:
        """A filter, or another value."""
        rng, of = self.rng, self.any()
        if rng.random() < 0.7:
            self.stream("filter", of=of, modulus=3, rest=rng.randrange(3))
        else:
            self.stream("map_values", of=of, suffix=rng.choice("xyz"))

    def merged(self) -> None:
        """Two of them."""
        self.stream("merge", of=self.any(), **{"with": self.any()})

    def self_join(self) -> None:
        """One with itself: two may come through two repartition topics, whose order is chance."""
        rng, of = self.rng, self.any()
        before, after = rng.choice(_BOUNDS)
        self.ended(
            "stream_join",
            of=of,
            **{"with": of},
            how=rng.choice(["inner", "inner", "left", "outer"]),
            before=before,
            after=after,
            grace=rng.choice([0, 5, 100]),
        )

    def table(self) -> None:
        """The latest by key, or an aggregation."""
        rng, of = self.rng, self.any()
        store = {"store": f"s{len(self.steps)}"} if rng.random() < 0.4 else {}
        if rng.random() < 0.3:
            self.ended("to_table", of=of, **store)
        else:
            self.ended("aggregate", of=of, function=rng.choice(["count", "reduce", "aggregate"]), **store)

    def windowed(self) -> None:
        """An aggregation by windows."""
        windows = {"kind": "time", "size": 20, "advance": 10, "grace": 10}
        self.ended("windowed", of=self.any(), windows=windows, function=self.rng.choice(["count", "reduce"]))


def _records(rng: Random, most: int) -> tuple[Row, ...]:
    now, rows = 0, []
    for number in range(rng.randint(2, most)):
        now += rng.choice([0, 0, 1, 1, 2, 5, 20, 120])
        timestamp = max(0, now - rng.choice([0, 0, 0, 1, 2, 7, 30, 130]))
        value = None if rng.random() < 0.1 else f"{rng.choice('pqr')}{number}"
        rows.append(("t0", rng.choices(_KEYS, [6, 4, 2, 0.4])[0], value, timestamp))
    return tuple(rows)
