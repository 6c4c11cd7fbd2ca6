"""A program in the making: its steps so far, and the streams and tables that more can be made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.differential.realms import Realms

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.differential.program import Step

Windows = tuple[str, ...]
"""Of what kind and size the windows of keys are, the outermost last; none: plain keys."""

_CHANCE_OF_WINDOWS = 0.7
_CHANCE_OF_SUPPRESSED = 0.35
_CHANCE_OF_VERSIONS = 0.12
_SEVERAL = {
    "flat_map", "flat_map_values", "group_by", "stream_join", "foreign_key_join", "suppress", "windowed",
    "suppress_windows", "cogroup_windowed",
}  # fmt: skip
"""Steps of which one record may give several results."""
_KEEPS_KEYS = {
    "map_values", "filter", "filter_not", "transform_values", "to_stream", "to_table", "suppress", "suppress_windows",
    "table_join", "stream_table_join",
}  # fmt: skip
"""Steps of which one change gives one at most, under the same key."""

_TIMES = {
    "advance", "after", "before", "difference", "gap", "grace", "kept", "limit", "retention", "size", "start",
    "tick",
}  # fmt: skip
"""What steps have in milliseconds."""


@dataclass
class Made:
    """A stream or table of a program.

    Attributes:
        step: Its number.
        kind: ``stream``, ``table`` or ``global``: a global table.
        realm: The sub-topology that it is in, to be asked for by `Realms.root`.
        windows: Of its keys.
        is_text: Whether values are strings; else they are counts (False), or counts of streams (None).
        key_changed: Whether what needs its key repartitions it.
        versioned: Whether it is a versioned table.
        forgets: Whether what it has goes as time goes on, and nobody is told: it has the store of a windowed
            aggregation.
        hidden: Whether it is a table that cannot be looked into, here or in Kafka Streams.
        closes: Whether windows are made of its keys somewhere above, and not read from a topic.
        known: Of a table of plain keys by time windows, when these begin and how long they are, ms.
        suppressed: Whether it is a suppressed table, or made of one without a store of its own.
        topics: What it is made of.
        once: Whether a record gives one result at most.
        once_a_key: Whether it gives one at most to each key.
        used: How often others are made of it.
    """

    step: int
    kind: str
    realm: int
    windows: Windows = ()
    is_text: bool | None = True
    key_changed: bool = False
    versioned: bool = False
    forgets: bool = False
    hidden: bool = False
    closes: bool = True
    known: dict[str, int] | None = None
    suppressed: bool = False
    topics: frozenset[str] = frozenset()
    once: bool = True
    once_a_key: bool = True
    used: int = 0


@dataclass
class Making:
    """See the module's docstring.

    Attributes:
        rng: Chooses.
        steps: So far.
        topics: That are read, but for those of global tables.
        global_topics: Those of global tables.
        pool: What more can be made of.
        windows: That there are: what keys say of them, and what a step does.
        realms: What is in one sub-topology.
        written: By realm, windows and kind of values, the last topic to which such were written.
        stores: By name of a store of processors, the realm in which it is.
        low_level_sources: The names of the sources of a program of the Processor API.
        rocksdb: Whether Kafka Streams has to keep its stores in RocksDB.
        versions_first: Whether many tables are versioned.
        windows_first: Whether what has windowed keys is chosen more often than what has not.
        keys: See `Program.keys`.
        numbers: See `Program.numbers`.
    """

    rng: Random
    steps: list[Step] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    global_topics: list[str] = field(default_factory=list)
    pool: list[Made] = field(default_factory=list)
    windows: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    realms: Realms = field(default_factory=Realms)
    written: dict[tuple[int, Windows, bool], str] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)
    low_level_sources: list[str] = field(default_factory=list)
    rocksdb: bool = False
    versions_first: bool = False
    windows_first: bool = False
    keys: str = "string"
    numbers: bool = False

    def add(self, step: Step, *of: Made, **made: Any) -> bool:
        """Adds a step that is made of others; ``made``: what it makes, see `Made`; if left out, nothing."""
        for each in of:
            each.used += 1
        self.steps.append(step)
        if made:
            named = [step["topic"], *step.get("more", ())] if "topic" in step else []
            topics = frozenset(named).union(*(each.topics for each in of))
            apart = sum(len(each.topics) for each in of) <= len(topics)
            once = apart and all(each.once for each in of) and step["op"] not in _SEVERAL
            a_key = once or (apart and _gives_one_a_key(step, of))
            self.pool.append(Made(len(self.steps) - 1, topics=topics, once=once, once_a_key=a_key, **made))
        return True

    def one(self, *kinds: str, where: Callable[[Made], bool] = lambda _: True) -> Made | None:
        """One of those that there are; None: there are none."""
        fitting = [made for made in self.pool if made.kind in kinds and where(made)]
        if self.rng.random() < _CHANCE_OF_SUPPRESSED:
            fitting = [made for made in fitting if made.suppressed] or fitting
        if self.windows_first and self.rng.random() < _CHANCE_OF_WINDOWS:
            fitting = [made for made in fitting if made.windows] or fitting
        return self.rng.choice(fitting) if fitting else None

    def store(self, chance: float = 0.4, of: Made | None = None, *, versions: bool = True) -> dict[str, Any]:
        """A store for the next step, if chance wants it and what it is made of can have one; ``versions``: or of them.

        A versioned one has a ``retention``.
        """
        if (of is not None and of.kind != "table") or self.rng.random() >= chance:
            return {}
        store: dict[str, Any] = {"store": f"s{len(self.steps)}"}
        if versions and self.rng.random() < (0.5 if self.versions_first else _CHANCE_OF_VERSIONS):
            store["retention"] = self.rng.choice([0, 5, 20, 1000])
        return store

    def by_key(self, made: Made) -> int:
        """The realm in which something that needs its key is."""
        return self.realms.behind(made.realm) if made.key_changed else made.realm

    def may_meet(self, one: Made, other: Made) -> bool:
        """Whether both may come together, their keys as they are."""
        return one.windows == other.windows and self.realms.may_meet(one.realm, other.realm)


def longer(step: Step, scale: int) -> Step:
    """A step whose times are ``scale`` times as long."""
    return {
        name: longer(item, scale) if isinstance(item, dict) else item * scale if name in _TIMES else item
        for name, item in step.items()
    }


def like(made: Made, store: dict[str, Any] | None = None, **other: Any) -> dict[str, Any]:
    """What is made, if it is as this one is; ``store``: if it has one of its own."""
    same = {
        "kind": made.kind, "realm": made.realm, "windows": made.windows, "is_text": made.is_text,
        "key_changed": made.key_changed, "versioned": "retention" in store if store else made.versioned,
        "forgets": made.forgets and not store, "hidden": made.hidden and not store, "known": made.known,
        "suppressed": made.suppressed and not store, "closes": made.closes,
    }  # fmt: skip
    if other.get("kind", "table") != made.kind:  # it has a store, or none
        same |= {"forgets": False, "hidden": False, "known": None, "suppressed": False}
    return same | other


def _gives_one_a_key(step: Step, of: tuple[Made, ...]) -> bool:
    """Whether a record gives each key one result at most, since it gives so to those that this is made ``of``."""
    if step["op"] in {
        "windowed",
        "cogroup_windowed",
    }:  # a session that is extended has the one before deleted, which may be the same one
        return step["windows"]["kind"] != "sessions" and all(each.once for each in of)
    return step["op"] in _KEEPS_KEYS and all(each.once_a_key for each in of)
