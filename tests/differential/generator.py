"""Makes programs of a seed: mostly such in which records come together again on several ways.

What is left out, since it differs on purpose (``docs/semantics.md``) or cannot be said on both sides:

- what several repartition topics bring to one place: in a live application their order is chance;
- records of equal or falling time where a repartition topic meets other topics: there order is that of the source
  records' order times, the test driver's is that of arrival;
- circles of repartition topics (a table joined with itself by a foreign key): refused here;
- foreign-key joins of a table that changes more than once for one record: Kafka Streams drops answers to a row that has
  changed meanwhile;
- deduplication, which Kafka Streams does not have; global tables, which are complete at the start;
- processors that are called by stream time, where there are several of them, or several sub-topologies, each of which
  has its own stream time here;
- caches, and the time at which results without a match are looked for (a setting: at once).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential.program import Program, Row, Step

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = ("a", "b", "ab", None)
_SEVERAL = {"flat_map", "flat_map_values", "group_by", "stream_join", "foreign_key_join", "suppress"}
"""Steps of which one record may give several results."""


def program_of(seed: int, *, steps: int = 9, records: int = 14) -> Program:
    """The program of a seed.

    Args:
        seed: Any number.
        steps: The most, without the ends.
        records: The most.
    """
    making = _Making(Random(f"program {seed}"))
    making.describe(steps)
    rng = Random(f"records {seed}")
    rows = _records(rng, making.topics, rng.randint(2, records), strictly=making.is_strict)
    return Program(tuple(making.steps), rows, rocksdb=making.windowed)


@dataclass
class _Made:
    """A stream or table of a program.

    Attributes:
        step: Its number.
        kind: ``stream`` or ``table``.
        realm: The sub-topology that it is in, to be asked for by `_Making.root`.
        is_text: Whether values are strings; else they are counts.
        key_changed: Whether what needs its key repartitions it.
        versioned: Whether it is a versioned table.
        topics: What it is made of.
        once: Whether a record gives one result at most.
        used: How often others are made of it.
    """

    step: int
    kind: str
    realm: int
    is_text: bool = True
    key_changed: bool = False
    versioned: bool = False
    topics: frozenset[str] = frozenset()
    once: bool = True
    used: int = 0


@dataclass
class _Making:
    rng: Random
    steps: list[Step] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    pool: list[_Made] = field(default_factory=list)
    windowed: bool = False
    _parent: list[int] = field(default_factory=list)  # of each realm, towards that which it was made one with
    _externals: list[int] = field(default_factory=list)  # by realm: topics of the archive
    _internals: list[int] = field(default_factory=list)  # by realm: repartition topics
    _edges: set[tuple[int, int]] = field(default_factory=set)  # repartition topics, from realm to realm

    def describe(self, most: int) -> None:
        """Adds sources, steps and ends."""
        rng = self.rng
        for topic in ("t0", "t1", "t2")[: rng.choice([1, 2, 2, 2, 3])]:
            self.topics.append(topic)
            self._source(topic)
        makers: list[tuple[int, Callable[[], bool]]] = [
            (4, self._map_values), (3, self._filter), (5, self._table_join), (3, self._stream_table_join),
            (4, self._merge), (2, self._split), (2, self._flat_map_values), (1, self._flat_map), (1, self._select_key),
            (2, self._to_table), (2, self._aggregate), (2, self._group_by), (2, self._to_stream), (1, self._process),
            (1, self._stream_join), (1, self._foreign_key_join), (1, self._transform_values), (1, self._repartition),
            (1, self._windowed_count), (1, self._suppress),
        ]  # fmt: skip
        weights, of = zip(*makers, strict=True)
        for _ in range(rng.randint(2, most)):
            for _attempt in range(5):
                if rng.choices(of, weights)[0]():
                    break
        for made in list(self.pool):
            if not made.used or rng.random() < 0.25:
                self._end(made)
        if len({self.root(realm) for realm in range(len(self._parent))}) > 1:
            for step in self.steps:  # Kafka's driver has one stream time for all sub-topologies
                step.pop("tick", None)

    @property
    def is_strict(self) -> bool:
        """Whether records must come in order of time, no two at one."""
        roots = {self.root(realm) for realm in range(len(self._parent))}
        return any(self._internals[root] and self._internals[root] + self._externals[root] > 1 for root in roots)

    # --- realms --------------------------------------------------------------------------------------------------

    def root(self, realm: int) -> int:
        while self._parent[realm] != realm:
            realm = self._parent[realm]
        return realm

    def _new_realm(self, externals: int, internals: int) -> int:
        self._parent.append(len(self._parent))
        self._externals.append(externals)
        self._internals.append(internals)
        return len(self._parent) - 1

    def _may_meet(self, one: int, other: int) -> bool:
        one, other = self.root(one), self.root(other)
        if one == other:
            return True
        return self._internals[one] + self._internals[other] <= 1 and not (
            self._leads(one, other) or self._leads(other, one)
        )

    def _leads(self, start: int, end: int) -> bool:
        seen, todo = set(), [self.root(start)]
        while todo:
            realm = todo.pop()
            for a, b in self._edges:
                if self.root(a) == realm and self.root(b) not in seen:
                    seen.add(self.root(b))
                    todo.append(self.root(b))
        return self.root(end) in seen

    def _meet(self, one: int, other: int) -> int:
        one, other = self.root(one), self.root(other)
        if one != other:
            self._parent[other] = one
            self._externals[one] += self._externals[other]
            self._internals[one] += self._internals[other]
        return one

    def _behind(self, realm: int) -> int:
        """A new realm behind a repartition topic."""
        new = self._new_realm(0, 1)
        self._edges.add((realm, new))
        return new

    def _by_key(self, made: _Made) -> int:
        return self._behind(made.realm) if made.key_changed else made.realm

    # --- steps ---------------------------------------------------------------------------------------------------

    def _add(self, step: Step, *of: _Made, **made: Any) -> bool:
        for each in of:
            each.used += 1
        self.steps.append(step)
        if made:
            topics = frozenset([step["topic"]] if "topic" in step else []).union(*(each.topics for each in of))
            apart = sum(len(each.topics) for each in of) <= len(topics)
            once = apart and all(each.once for each in of) and step["op"] not in _SEVERAL
            self.pool.append(_Made(len(self.steps) - 1, topics=topics, once=once, **made))
        return True

    def _store(self, chance: float = 0.4) -> dict[str, str | None]:
        return {"store": f"s{len(self.steps)}"} if self.rng.random() < chance else {}

    def _one(self, *kinds: str, where: Callable[[_Made], bool] = lambda _: True) -> _Made | None:
        fitting = [made for made in self.pool if made.kind in kinds and where(made)]
        return self.rng.choice(fitting) if fitting else None

    def _source(self, topic: str) -> None:
        realm = self._new_realm(1, 0)
        if self.rng.random() < 0.4:
            self._add({"op": "stream", "topic": topic}, kind="stream", realm=realm)
            return
        versioned = self.rng.random() < 0.1
        step = {"op": "table", "topic": topic, **self._store(1 if versioned else 0.5)}
        if versioned:
            step["retention"] = self.rng.choice([0, 5, 1000])
        self._add(step, kind="table", realm=realm, versioned=versioned)

    def _map_values(self) -> bool:
        made = self._one("stream", "table")
        store = self._store() if made and made.kind == "table" else {}
        step = {"op": "map_values", "of": made.step, "suffix": self.rng.choice("xyz"), **store}
        return self._add(step, made, **self._like(made, store, is_text=True))

    def _like(self, made: _Made, store: Any, *, is_text: bool) -> dict[str, Any]:
        versioned = made.versioned and not store
        return {
            "kind": made.kind, "realm": made.realm, "is_text": is_text, "key_changed": made.key_changed,
            "versioned": versioned,
        }  # fmt: skip

    def _filter(self) -> bool:
        made = self._one("stream", "table")
        store = self._store(0.25) if made.kind == "table" else {}
        modulus = self.rng.choice([2, 2, 3])
        op = self.rng.choice(["filter", "filter", "filter_not"])
        step = {"op": op, "of": made.step, "modulus": modulus, "rest": self.rng.randrange(modulus), **store}
        if self.rng.random() < 0.3:
            step["nullable"] = True
        return self._add(step, made, **self._like(made, store, is_text=made.is_text))

    def _transform_values(self) -> bool:
        made = self._one("table")
        if made is None:
            return False
        store = self._store()
        step = {"op": "transform_values", "of": made.step, "suffix": "T", **store}
        return self._add(step, made, **self._like(made, store, is_text=True))

    def _table_join(self) -> bool:
        left = self._one("table")
        right = self._one("table", where=lambda made: self._may_meet(made.realm, left.realm)) if left else None
        if left is None or right is None:
            return False
        store = self._store(0.3)
        how = self.rng.choice(["inner", "inner", "left", "outer"])
        step = {"op": "table_join", "how": how, "of": left.step, "with": right.step, **store}
        return self._add(step, left, right, kind="table", realm=self._meet(left.realm, right.realm))

    def _foreign_key_join(self) -> bool:
        left = self._one("table", where=lambda made: made.once)
        right = self._one("table", where=lambda made: self.root(made.realm) != self.root(left.realm)) if left else None
        if left is None or right is None or self._internals[self.root(right.realm)]:
            return False
        if self._leads(right.realm, left.realm):
            return False
        foreign = self._behind(left.realm)
        realm = self._behind(self._meet(right.realm, foreign))
        how = self.rng.choice(["inner", "left"])
        step = {"op": "foreign_key_join", "how": how, "of": left.step, "with": right.step}
        return self._add(
            {**step, "shift": self.rng.randrange(3), **self._store()}, left, right, kind="table", realm=realm
        )

    def _group_by(self) -> bool:
        made = self._one("table")
        if made is None:
            return False
        function = self.rng.choice(["count", "reduce", "aggregate"] if made.is_text else ["count", "aggregate"])
        step = {"op": "group_by", "of": made.step, "shift": self.rng.randrange(3), "function": function}
        realm = self._behind(made.realm)
        return self._add({**step, **self._store()}, made, kind="table", realm=realm, is_text=function != "count")

    def _to_stream(self) -> bool:
        made = self._one("table")
        if made is None:
            return False
        step = {"op": "to_stream", "of": made.step}
        return self._add(step, made, kind="stream", realm=made.realm, is_text=made.is_text)

    def _suppress(self) -> bool:
        """And the stream of it."""
        made = self._one("table", where=lambda made: not made.versioned)
        if made is None:
            return False
        step = {"op": "suppress", "of": made.step, "limit": self.rng.choice([0, 5, 20])}
        if self.rng.random() < 0.5:
            step["most"] = self.rng.choice([1, 2])
        return self._add(step, made, kind="stream", realm=made.realm, is_text=made.is_text)

    def _merge(self) -> bool:
        one = self._one("stream")
        other = one and self._one(
            "stream",
            where=lambda made: (
                made is not one and made.is_text == one.is_text and self._may_meet(made.realm, one.realm)
            ),
        )
        if one is None or other is None:
            return False
        realm = self._meet(one.realm, other.realm)
        changed = one.key_changed or other.key_changed
        step = {"op": "merge", "of": one.step, "with": other.step}
        return self._add(step, one, other, kind="stream", realm=realm, is_text=one.is_text, key_changed=changed)

    def _split(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        rests = [0] if self.rng.random() < 0.5 else [0, 1]
        default = self.rng.random() < 0.7
        self._add({"op": "split", "of": made.step, "modulus": 3, "rests": rests, "default": default}, made)
        split = len(self.steps) - 1
        for branch in range(len(rests) + default):
            step = {"op": "branch", "of": split, "branch": branch}
            self._add(step, made, **self._like(made, {}, is_text=made.is_text))
        return True

    def _flat_map_values(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        step = {"op": "flat_map_values", "of": made.step, "most": self.rng.choice([2, 3])}
        return self._add(step, made, **self._like(made, {}, is_text=True))

    def _flat_map(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        step = {"op": "flat_map", "of": made.step, "most": self.rng.choice([2, 3])}
        return self._add(step, made, kind="stream", realm=made.realm, key_changed=True)

    def _select_key(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        step = {"op": "select_key", "of": made.step, "shift": self.rng.randrange(3)}
        if self.rng.random() < 0.4:
            step["none"] = self.rng.randrange(4)
        return self._add(step, made, kind="stream", realm=made.realm, is_text=made.is_text, key_changed=True)

    def _repartition(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        step = {"op": "repartition", "of": made.step}
        return self._add(step, made, kind="stream", realm=self._behind(made.realm), is_text=made.is_text)

    def _to_table(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        step = {"op": "to_table", "of": made.step, **self._store()}
        return self._add(step, made, kind="table", realm=self._by_key(made), is_text=made.is_text)

    def _aggregate(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        function = self.rng.choice(["count", "reduce", "aggregate"] if made.is_text else ["count", "aggregate"])
        step = {"op": "aggregate", "of": made.step, "function": function, **self._store()}
        return self._add(step, made, kind="table", realm=self._by_key(made), is_text=function != "count")

    def _process(self) -> bool:
        made = self._one("stream")
        if made is None:
            return False
        number = len(self.steps)
        children = [f"c{number}-{child}" for child in range(self.rng.choice([2, 3]))]
        forwards = [self.rng.choice([*children, None]) for _ in range(self.rng.randint(1, 4))]
        step = {"op": "process", "of": made.step, "name": f"p{number}", "forwards": forwards}
        if not any("tick" in other for other in self.steps) and self.rng.random() < 0.5:
            step["tick"] = self.rng.choice([5, 20])
        self._add(step, made)
        for child in children:
            step = {"op": "named", "of": number, "name": child, "suffix": self.rng.choice("uvw")}
            self._add(step, made, kind="stream", realm=made.realm, key_changed=True)
            self.pool[-1].once = False
        return True

    def _stream_join(self) -> bool:
        one = self._one("stream", where=lambda made: not made.key_changed)
        other = one and self._one(
            "stream", where=lambda made: not made.key_changed and self._may_meet(made.realm, one.realm)
        )
        if one is None or other is None:
            return False
        self.windowed = True
        before, after = self.rng.choice([(0, 0), (0, 10), (10, 0), (10, 10), (10, -5), (-5, 10)])
        step = {
            "op": "stream_join", "of": one.step, "with": other.step,
            "how": self.rng.choice(["inner", "left", "outer"]),
            "before": before, "after": after, "grace": self.rng.choice([0, 100]),
        }  # fmt: skip
        return self._add(step, one, other, kind="stream", realm=self._meet(one.realm, other.realm))

    def _stream_table_join(self) -> bool:
        stream = self._one("stream")
        if stream is None:
            return False
        table = self._one("table", where=lambda made: self._fits(stream, made))
        if table is None:
            return False
        realm = self._meet(table.realm, self._by_key(stream))
        how = self.rng.choice(["inner", "left"])
        step = {"op": "stream_table_join", "how": how, "of": stream.step, "with": table.step}
        return self._add(step, stream, table, kind="stream", realm=realm)

    def _fits(self, stream: _Made, table: _Made) -> bool:
        if not stream.key_changed:
            return self._may_meet(stream.realm, table.realm)
        root = self.root(table.realm)
        return not self._internals[root] and root != self.root(stream.realm) and not self._leads(root, stream.realm)

    # --- ends ----------------------------------------------------------------------------------------------------

    def _windowed_count(self) -> bool:
        made = self._one("stream", where=lambda made: not made.key_changed)
        if made is None:
            return False
        self.windowed = True
        size = self.rng.choice([5, 20])
        step = {
            "op": "windowed_count", "of": made.step, "topic": f"out{len(self.steps)}", "size": size,
            "advance": self.rng.choice([size, 5]), "grace": self.rng.choice([0, 10]),
            "suppress": self.rng.random() < 0.5,
        }  # fmt: skip
        return self._add(step, made)

    def _end(self, made: _Made) -> None:
        of = made.step
        if made.kind == "table":
            self._add({"op": "to_stream", "of": of}, made)
            of = len(self.steps) - 1
        self._add({"op": "to", "of": of, "topic": f"out{len(self.steps)}"}, made)


def _records(rng: Random, topics: list[str], count: int, *, strictly: bool) -> tuple[Row, ...]:
    """In the order in which a task takes them up: by running maximum of each topic's timestamps, then by topic."""
    made: list[tuple[int, int, Row]] = []
    now, order_time = 0, dict.fromkeys(topics, 0)
    for number in range(count):
        now += rng.choice([1, 2, 5, 20]) if strictly else rng.choice([0, 0, 1, 5, 20])
        timestamp = now if strictly else max(0, now - rng.choice([0, 0, 0, 1, 7, 30]))
        topic = rng.choice(topics)
        order_time[topic] = max(order_time[topic], timestamp)
        key = rng.choices(KEYS, [6, 4, 2, 0.4])[0]
        value = None if rng.random() < 0.2 else f"{rng.choice('pqr')}{number}"
        made.append((order_time[topic], topics.index(topic), (topic, key, value, timestamp)))
    return tuple(row for _, _, row in sorted(made, key=lambda each: each[:2]))


def smaller(program: Program) -> list[Program]:
    """Programs that have one thing less."""
    fewer_records = [
        replace(program, records=program.records[:number] + program.records[number + 1 :])
        for number in reversed(range(len(program.records)))
    ]
    return [*_fewer_steps(program), *fewer_records]


def _fewer_steps(program: Program) -> list[Program]:
    """Without a step that nothing is made of; or with one passed over: what is made of it is made of its parent."""
    used = {step[which] for step in program.steps for which in ("of", "with") if which in step}
    programs = []
    for number in reversed(range(len(program.steps))):
        step = program.steps[number]
        if number not in used:
            if step["op"] not in {"stream", "table"} or not any(row[0] == step["topic"] for row in program.records):
                programs.append(_without(program, number, None))
        else:
            programs.extend(_without(program, number, step[which]) for which in ("of", "with") if which in step)
        if "store" in step and "retention" not in step:
            bare = {name: item for name, item in step.items() if name != "store"}
            programs.append(replace(program, steps=(*program.steps[:number], bare, *program.steps[number + 1 :])))
    return programs


def _without(program: Program, number: int, instead: int | None) -> Program:
    def moved(step: Step) -> Step:
        new = dict(step)
        for which in ("of", "with"):
            if which in step:
                of = instead if step[which] == number and instead is not None else step[which]
                new[which] = of - (of > number)
        return new

    steps = [moved(step) for at, step in enumerate(program.steps) if at != number]
    return replace(program, steps=tuple(steps))
