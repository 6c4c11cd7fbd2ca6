"""Steps of random programs that are made of tables, or of either: each adds itself if it fits, and says whether."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.making import like
from tests.differential.stores_of_processors import with_store

if TYPE_CHECKING:
    from random import Random

    from tests.differential.making import Made, Making
    from tests.differential.program import Step
    from tests.differential.realms import Realms

_OF_TABLES = {"map_values", "filter", "filter_not", "suppress", "table_join"}
_TWICE = 2


def map_values(making: Making) -> bool:
    """Of a stream or a table; with the key in the value or not."""
    made = making.one("stream", "table")
    if made is None:
        return False
    store = making.store(of=made)
    step = {"op": "map_values", "of": made.step, "suffix": making.rng.choice("xyz"), **store}
    if len(made.windows) <= 1 and making.rng.random() < 0.3:
        step["with_key"] = bool(made.windows)
    return making.add(step, made, **like(made, store, is_text=True))


def filter_(making: Making) -> bool:
    """Of a stream or a table."""
    made = making.one("stream", "table")
    if made is None:
        return False
    store = making.store(0.25, of=made)
    modulus = making.rng.choice([2, 2, 3])
    op = making.rng.choice(["filter", "filter", "filter_not"])
    step = {"op": op, "of": made.step, "modulus": modulus, "rest": making.rng.randrange(modulus), **store}
    if making.rng.random() < 0.3:
        step["nullable"] = True
    return making.add(step, made, **like(made, store))


def transform_values(making: Making) -> bool:
    """As `map_values`, of nulls too; maybe with a store, which processors may use as well."""
    made = making.one("table")
    if made is None:
        return False
    store = making.store(of=made)
    step: Step = {"op": "transform_values", "of": made.step, "suffix": "T", **store}
    realm = made.realm
    if store and made.kind == "table" and not made.versioned:
        realm = with_store(making, made, step)
    return making.add(step, made, **like(made, store, is_text=True, realm=realm))


def table_join(making: Making) -> bool:
    """Two tables by key."""
    left = making.one("table", where=lambda made: not made.hidden)
    right = left and making.one("table", where=lambda made: not made.hidden and making.may_meet(made, left))
    if left is None or right is None:
        return False
    store = making.store(0.3)
    how = making.rng.choice(["inner", "inner", "left", "outer"])
    step = {"op": "table_join", "how": how, "of": left.step, "with": right.step, **store}
    realm = making.realms.meet(left.realm, right.realm)
    forgets = not store and (left.forgets or right.forgets)
    versioned, closes = "retention" in store, left.closes and right.closes
    return making.add(
        step,
        left,
        right,
        **like(left, realm=realm, is_text=True, versioned=versioned, forgets=forgets, known=None, closes=closes),
    )


def foreign_key_join(making: Making) -> bool:
    """Rows that refer to others, under plain keys or windowed ones that are known."""
    realms = making.realms
    left = making.one(
        "table",
        where=lambda made: made.once_a_key and not made.forgets and _suppressions(making, made.step) < _TWICE,
    )
    right = left and making.one(
        "table",
        where=lambda made: (
            not made.hidden and (not made.windows or made.known is not None) and _may_refer(realms, left, made)
        ),
    )
    if left is None or right is None or realms.is_fed_by_repartitions(right.realm):
        return False
    if realms.leads(right.realm, left.realm) and not realms.circles:
        return False
    foreign = realms.behind(left.realm)
    realm = realms.behind(realms.meet(right.realm, foreign))
    step = {"op": "foreign_key_join", "how": making.rng.choice(["inner", "left"]), "of": left.step, "with": right.step}
    store = making.store()
    step |= {"shift": making.rng.randrange(3), **store}
    if right.known is not None:
        step |= {"window": right.known, "how": "inner"}
    return making.add(
        step, left, right, **like(left, realm=realm, is_text=True, versioned="retention" in store, known=None)
    )


def _suppressions(making: Making, number: int) -> int:
    """How many suppressions are above one another behind a table: the second gets old values that the first has not."""
    step = making.steps[number]
    if step["op"] not in _OF_TABLES:
        return 0
    above = [_suppressions(making, step[name]) for name in ("of", "with") if name in step]
    return max(above, default=0) + (step["op"] == "suppress")


def _may_refer(realms: Realms, left: Made, right: Made) -> bool:
    """Whether rows may refer to those of another table: no record changes both, or a changed row would be answered."""
    if realms.circles:
        return left.topics.isdisjoint(right.topics)
    return realms.root(right.realm) != realms.root(left.realm)


def group_by(making: Making) -> bool:
    """By another key, a plain one: made of the value, or a windowed key without its window."""
    made = making.one("table")
    if made is None:
        return False
    function = making.rng.choice(["count", "reduce", "aggregate"] if made.is_text else ["count", "aggregate"])
    store = making.store()
    step = {"op": "group_by", "of": made.step, "function": function, **store}
    if len(made.windows) == 1 and making.rng.random() < 0.4:
        step["of_window"] = True
    else:
        step["shift"] = making.rng.randrange(3)
    realm = making.realms.behind(made.realm)
    return making.add(
        step, made, kind="table", realm=realm, is_text=function != "count", versioned="retention" in store
    )


def to_stream(making: Making) -> bool:
    """Each change."""
    made = making.one("table")
    if made is None:
        return False
    step: Step = {"op": "to_stream", "of": made.step}
    if making.rng.random() < 0.85:
        return making.add(step, made, **like(made, kind="stream", versioned=False))
    step["shift"] = making.rng.randrange(3)
    if making.rng.random() < 0.4:
        step["none"] = making.rng.randrange(4)
    return making.add(step, made, **like(made, kind="stream", versioned=False, key_changed=True, windows=()))


def suppress(making: Making) -> bool:
    """The latest change, after a time."""
    made = making.one("table", where=lambda made: not made.versioned)
    if made is None:
        return False
    step = {"op": "suppress", "of": made.step, "limit": making.rng.choice([0, 5, 20]), **bounds(making.rng)}
    rng = making.rng
    if rng.random() < 0.5:
        step |= {"full": "early", "most": rng.choice([1, 2])}
    if not made.windows and rng.random() < 0.3:  # the bytes of windowed keys are others here
        step |= {"full": "early", "bytes": rng.randrange(40, 300)}
    return making.add(step, made, **like(made, suppressed=True))


def bounds(rng: Random) -> Step:
    """Those of a buffer that never emits early: none, or such as are never met."""
    match rng.choice(["unbounded", "no bound", "strict", "strict", "strict"]):
        case "unbounded":
            return {}
        case "no bound":
            return {"full": "no bound", "most": 1}
        case _:
            return {"full": "strict", rng.choice(["most", "bytes"]): 1_000_000}
