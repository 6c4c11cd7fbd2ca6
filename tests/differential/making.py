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
_SEVERAL = {
    "flat_map", "flat_map_values", "group_by", "stream_join", "foreign_key_join", "suppress", "windowed",
    "suppress_windows", "cogroup_windowed",
}  # fmt: skip
"""Steps of which one record may give several results."""


@dataclass
class Made:
    """A stream or table of a program.

    Attributes:
        step: Its number.
        kind: ``stream``, ``table``, ``global``: a global table, or ``windowed``: a windowed aggregation's table.
        realm: The sub-topology that it is in, to be asked for by `Realms.root`.
        windows: Of its keys.
        is_text: Whether values are strings; else they are counts (False), or counts of streams (None).
        key_changed: Whether what needs its key repartitions it.
        versioned: Whether it is a versioned table.
        lookups: Whether a table can be looked into.
        topics: What it is made of.
        once: Whether a record gives one result at most.
        used: How often others are made of it.
    """

    step: int
    kind: str
    realm: int
    windows: Windows = ()
    is_text: bool | None = True
    key_changed: bool = False
    versioned: bool = False
    lookups: bool = True
    topics: frozenset[str] = frozenset()
    once: bool = True
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
        windows_first: Whether what has windowed keys is chosen more often than what has not.
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
    windows_first: bool = False

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
            self.pool.append(Made(len(self.steps) - 1, topics=topics, once=once, **made))
        return True

    def one(self, *kinds: str, where: Callable[[Made], bool] = lambda _: True) -> Made | None:
        """One of those that there are; None: there are none."""
        fitting = [made for made in self.pool if made.kind in kinds and where(made)]
        if self.windows_first and self.rng.random() < _CHANCE_OF_WINDOWS:
            fitting = [made for made in fitting if made.windows] or fitting
        return self.rng.choice(fitting) if fitting else None

    def store(self, chance: float = 0.4, of: Made | None = None) -> dict[str, str]:
        """A store for the next step, if chance wants it and what it is made of can have one."""
        has_one = (of is None or of.kind == "table") and self.rng.random() < chance
        return {"store": f"s{len(self.steps)}"} if has_one else {}

    def by_key(self, made: Made) -> int:
        """The realm in which something that needs its key is."""
        return self.realms.behind(made.realm) if made.key_changed else made.realm

    def may_meet(self, one: Made, other: Made) -> bool:
        """Whether both may come together, their keys as they are."""
        return one.windows == other.windows and self.realms.may_meet(one.realm, other.realm)


def like(made: Made, store: dict[str, str] | None = None, **other: Any) -> dict[str, Any]:
    """What is made, if it is as this one is; ``store``: if it has one of its own."""
    same = {
        "kind": made.kind, "realm": made.realm, "windows": made.windows, "is_text": made.is_text,
        "key_changed": made.key_changed, "versioned": made.versioned and not store,
        "lookups": made.lookups or bool(store),
    }  # fmt: skip
    return same | other
